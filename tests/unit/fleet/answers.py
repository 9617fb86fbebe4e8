"""What a Prometheus would tell about a made-up run over several machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monitor.fleet.api import Sample
from monitor.fleet.questions import Answers

NOW = 1_800_000_000.0


@dataclass
class MadeUp:
    """Nodes → their ranks; seconds a step of each rank by phase."""

    nodes: Mapping[str, Sequence[int]]
    phases: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    run: str = "llm-1"
    gone: Sequence[str] = ()
    """Nodes that reported the run once and no more."""
    states: Mapping[str, str] = field(default_factory=dict)
    steps: int = 100
    world: int | None = None
    device: str = "cpu"
    labels: Mapping[str, str] = field(default_factory=dict)
    more_now: list[Sample] = field(default_factory=list)
    down: Sequence[str] = ()
    recent: float = 0.5
    """Share of the steps that were made in the last minutes."""

    def answers(self) -> Answers:
        made = Answers(NOW)
        for node, ranks in self.nodes.items():
            self._node(made, node, ranks)
        made.now.extend(self.more_now)
        made.down.extend(Sample({"job": "gpumon", "instance": node}, 0.0) for node in self.down)
        return made

    def _node(self, made: Answers, node: str, ranks: Sequence[int]) -> None:
        here = node not in self.gone
        info = self.sample("gpumon_run_info", node, 1.0, name="llm", user="ada", hostname=f"host-{node}")
        world = self.world or sum(map(len, self.nodes.values()))
        made.known.extend(
            [
                info,
                self.sample("gpumon_run_started_timestamp_seconds", node, NOW - 600),
                self.sample("gpumon_run_world_size", node, world),
            ]
        )
        state = self.states.get(node, "running")
        for name in ("running", "stalled", "ended", "failed", "killed"):
            made.known.append(self.sample("gpumon_run_state", node, float(name == state), state=name))
        if here:
            made.now.append(info)
        for rank in ranks:
            self._rank(made, node, rank, here)

    def _rank(self, made: Answers, node: str, rank: int, here: bool) -> None:
        own = {"rank": str(rank)}
        last = NOW - 1 if here else NOW - 120
        made.known.extend(
            [
                self.sample("gpumon_rank_info", node, 1.0, device=self.device, local_rank="0", **own),
                self.sample("gpumon_rank_steps_total", node, self.steps, **own),
                self.sample("gpumon_rank_last_step_timestamp_seconds", node, last, **own),
            ]
        )
        if not here:
            return
        phases = self.phases.get(rank, {"data": 0.01, "forward": 0.02, "backward": 0.03})
        recent = self.recent * self.steps
        made.now.append(self.sample("gpumon_rank_up", node, 1.0, **own))
        made.now.extend(
            self.sample("gpumon_rank_phase_seconds_total", node, each * self.steps, phase=name, **own)
            for name, each in phases.items()
        )
        made.increases.setdefault("steps", []).append(self.sample("", node, recent, **own))
        made.increases.setdefault("phases", []).extend(
            self.sample("", node, each * recent, phase=name, **own) for name, each in phases.items()
        )

    def sample(self, series: str, node: str, value: float, **labels: str) -> Sample:
        common = {"__name__": series, "job": "gpumon", "instance": node, "run": self.run}
        return Sample({**common, **self.labels, **labels}, float(value))
