"""One run out of what the daemons of its machines told about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from monitor.fleet.told import RankKey, RunKey, Told, rank_of
from monitor.model.nodes import NodeState
from monitor.model.policy import DEFAULT_POLICY
from monitor.model.run import Device, Phase, Rank, Run, RunState, Times

LIVE = ("running", "stalled")
BAD_FIRST: tuple[RunState, ...] = ("running", "stalled", "failed", "killed", "ended")
"""Which of its machines' states is the run's: it goes on while one of them does."""


def make_run(key: RunKey, told: Told) -> Run:
    """The run with its ranks; what compares its machines is added by `monitor.fleet.nodes`."""
    states = node_states(told)
    names = node_names(told)
    ranks = tuple(_ranks(told, states, names))
    label = _newest_info(told, states)
    state = _run_state(states.values())
    live = state in LIVE
    world = max([*map(int, told.by_instance("gpumon_run_world_size").values()), len(ranks), 1])
    first = ranks[0] if ranks else None
    return Run(
        id=key[2],
        name=label.get("name") or key[2],
        state=state,
        started=min(told.by_instance("gpumon_run_started_timestamp_seconds").values(), default=told.at),
        ended=None if live else _last(told),
        ranks=ranks,
        world_size=world,
        first_step_time=min(
            told.by_instance("gpumon_run_first_step_timestamp_seconds").values(), default=None
        ),
        user=label.get("user") or None,
        hostname=label.get("hostname") or None,
        pod=label.get("pod") or None,
        namespace=label.get("namespace") or None,
        slurm_job=label.get("slurm_job") or None,
        git_commit=label.get("git_commit") or None,
        way=label.get("way") or None,
        steps=max((rank.steps for rank in ranks), default=0),
        lost=sum(rank.lost for rank in ranks),
        batch_size=_first(map(int, told.by_instance("gpumon_run_batch_size").values())),
        iterations_per_second=_least(rank.iterations_per_second for rank in ranks),
        samples_per_second=_sum(rank.samples_per_second for rank in ranks),
        tokens_per_second=_sum(rank.tokens_per_second for rank in ranks),
        step=_step(told, names, first),
        phases=first.phases if first else (),
        starved_ratio=_mean(rank.device_times.starved_ratio for rank in ranks),
        trend_ratio=min(told.by_instance("gpumon_run_trend_ratio").values(), default=None),
        gpu_uuids=tuple(sorted({one.labels["uuid"] for one in told.now.get("gpumon_gpu_run", ())})),
        missing_ranks=_missing(ranks, states, names, world) if live else (),
    )


# ── Machines ─────────────────────────────────────────────────────────────────────────────────────


def node_states(told: Told) -> dict[str, NodeState]:
    """Scrape target → what the run does there. A machine that was in a live run and tells no more is lost."""
    present = {one.labels.get("instance", "") for one in told.now.get("gpumon_run_info", ())}
    found: dict[str, NodeState] = {}
    for one in told.infos("gpumon_run_state"):
        if one.value == 1.0:
            instance, state = one.labels.get("instance", ""), one.labels.get("state", "")
            gone = state in LIVE and instance not in present
            found[instance] = "lost" if gone else _known(state)
    return found


def _known(state: str) -> RunState:
    return next((one for one in BAD_FIRST if one == state), "running")


def node_names(told: Told) -> dict[str, str]:
    """Scrape target → how to call it: without its port, where no two are called alike then."""
    instances = {one.labels.get("instance", "") for one in told.infos("gpumon_run_info")}
    short = {instance: instance.rpartition(":")[0] or instance for instance in instances}
    return short if len(set(short.values())) == len(short) else {instance: instance for instance in instances}


def _run_state(states: Iterable[NodeState]) -> RunState:
    """Nobody knows what became of a run all of whose machines are lost: it is not seen to move."""
    told = set(states)
    return next((state for state in BAD_FIRST if state in told), "stalled")


def _newest_info(told: Told, states: Mapping[str, NodeState]) -> Mapping[str, str]:
    """What the run is called, by a machine that still reports it if there is one."""
    infos = sorted(told.infos("gpumon_run_info"), key=lambda one: one.labels.get("instance", ""))
    there = [one for one in infos if states.get(one.labels.get("instance", "")) != "lost"]
    return next(iter([*there, *infos])).labels


def _last(told: Told) -> float | None:
    """When the run ended; where that is not told, its last step."""
    ended = told.by_instance("gpumon_run_ended_timestamp_seconds").values()
    steps = told.by_rank("gpumon_rank_last_step_timestamp_seconds").values()
    return max(ended, default=max(steps, default=None))


def _missing(
    ranks: Iterable[Rank], states: Mapping[str, NodeState], names: Mapping[str, str], world: int
) -> tuple[int, ...]:
    lost = {names.get(instance, instance) for instance, state in states.items() if state == "lost"}
    here = {rank.rank for rank in ranks if rank.hostname not in lost}
    return tuple(rank for rank in range(world) if rank not in here)


# ── Ranks ────────────────────────────────────────────────────────────────────────────────────────


def _ranks(told: Told, states: Mapping[str, NodeState], names: Mapping[str, str]) -> Iterable[Rank]:
    """By number. A rank that moved to another machine counts where it made its newest step."""
    newest = told.by_rank("gpumon_rank_last_step_timestamp_seconds")
    places = {key: one for one in told.infos("gpumon_rank_info") if (key := rank_of(one)) is not None}
    at: dict[int, RankKey] = {}
    for key in sorted(places, key=lambda key: newest.get(key, 0.0)):
        at[key[1]] = key
    make = _Ranks(told)
    for rank in sorted(at):
        key = at[rank]
        state = states.get(key[0], "running")
        yield make.rank(key, places[key].labels, state, names.get(key[0], key[0]))


class _Ranks:
    """Makes ranks; every series is sorted by rank once."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._up = told.by_rank("gpumon_rank_up")
        self._steps, self._more = told.by_rank("gpumon_rank_steps_total"), told.by_rank("steps")
        self._samples, self._more_samples = told.by_rank("gpumon_rank_samples_total"), told.by_rank("samples")
        self._more_tokens, self._lost = told.by_rank("tokens"), told.by_rank("gpumon_rank_lost_records_total")
        self._recent = told.by_phase("phases")
        self._totals = told.by_phase("gpumon_rank_phase_seconds_total")
        self._mean = told.by_rank("gpumon_rank_step_mean_seconds")
        self._live = told.by_phase("gpumon_rank_live_phase_seconds")
        self._last = told.by_rank("gpumon_rank_last_step_timestamp_seconds")
        self._loss, self._epoch = told.by_rank("gpumon_rank_loss"), told.by_rank("gpumon_rank_epoch")
        self._busy = told.by_rank("gpumon_rank_device_busy_ratio")
        self._starved = told.by_rank("gpumon_rank_starved_ratio")
        self._device = told.by_phase("gpumon_rank_device_phase_seconds")
        self._exchange = told.by_rank("gpumon_rank_exchange_seconds")

    def rank(self, key: RankKey, place: Mapping[str, str], state: NodeState, node: str) -> Rank:
        more, phases = self._phases(key)
        period = sum(phase.mean_seconds for phase in phases)
        inside = next(iter(self._live.get(key, {}).items()), (None, None))
        local = place.get("local_rank", "")
        epoch = self._epoch.get(key)
        return Rank(
            rank=key[1],
            state=self._state(key, state),
            pid=0,
            local_rank=int(local) if local.isdecimal() else None,
            hostname=node,
            gpu_uuid=place.get("uuid") or None,
            device=place.get("device") or None,
            steps=int(self._steps.get(key, 0)),
            lost=int(self._lost.get(key, 0)),
            samples=int(self._samples.get(key, 0)),
            epoch=None if epoch is None else int(epoch),
            live_phase=inside[0],
            live_seconds=inside[1],
            last_step_time=self._last.get(key),
            step=Times(count=int(more), mean=self._mean.get(key)),
            phases=phases,
            iterations_per_second=1 / period if period else None,
            samples_per_second=self._rate(self._more_samples, key, period),
            tokens_per_second=self._rate(self._more_tokens, key, period),
            device_times=self._device_times(key),
            loss=self._loss.get(key),
        )

    def _state(self, key: RankKey, node: NodeState) -> RunState:
        """A rank of a lost machine is not seen to move; one that died while others there live is gone."""
        if node == "lost":
            return "stalled"
        return "killed" if node in LIVE and self._up.get(key) == 0.0 else node

    def _phases(self, key: RankKey) -> tuple[float, tuple[Phase, ...]]:
        """Steps, and seconds a step, over the last minutes; where those had too few, of the whole run."""
        totals, steps = self._totals.get(key, {}), self._more.get(key, 0.0)
        recent = self._recent.get(key, {})
        if steps < DEFAULT_POLICY.min_steps:
            recent, steps = totals, self._steps.get(key, 0.0)
        whole = sum(recent.values())
        if not steps or not whole:
            return 0.0, ()
        return steps, tuple(
            Phase(name, seconds / whole, seconds / steps, total_seconds=totals.get(name, 0.0))
            for name, seconds in sorted(recent.items(), key=lambda pair: -pair[1])
            if seconds > 0
        )

    def _rate(self, counted: Mapping[RankKey, float], key: RankKey, period: float) -> float | None:
        """Over the time of the steps: a window that began before the run would make it seem slower."""
        more, steps = counted.get(key), self._more.get(key)
        return more / (steps * period) if more and steps and period else None

    def _device_times(self, key: RankKey) -> Device:
        return Device(
            busy_ratio=self._busy.get(key),
            starved_ratio=self._starved.get(key),
            time=self._device.get(key, {}),
            exchange_seconds=self._exchange.get(key),
        )


def _step(told: Told, names: Mapping[str, str], first: Rank | None) -> Times:
    """The usual step, as the machine of the first rank tells it."""
    if first is None:
        return Times()
    own = {
        one.labels.get("percentile", ""): one.value
        for one in told.now.get("gpumon_run_step_percentile_seconds", ())
        if names.get(one.labels.get("instance", "")) == first.hostname
    }
    return Times(first.step.count, first.step.mean, own.get("50"), own.get("95"), own.get("99"))


def _first(values: Iterable[int]) -> int | None:
    return next(iter(values), None)


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _sum(values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) if told else None


def _mean(values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) / len(told) if told else None
