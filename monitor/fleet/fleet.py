"""Runs over many machines, by id, as a list, or as a snapshot for a screen."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from monitor.advice.context.run import RunContext
from monitor.catalog.rows import RunRow, find, row
from monitor.fleet import questions
from monitor.fleet.api import Api
from monitor.fleet.cards import MOST, cards_of
from monitor.fleet.findings import findings_of
from monitor.fleet.join import make_run
from monitor.fleet.nodes import nodes_of, waste_of
from monitor.fleet.told import RunKey, Told, by_run
from monitor.model import facts
from monitor.model.clock import Moment
from monitor.model.errors import UserError
from monitor.model.finding import Finding
from monitor.model.gpu import Source
from monitor.model.history import RunRecord
from monitor.model.host import Host
from monitor.model.policy import DEFAULT_POLICY, Policy
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot

SINCE_SECONDS = 6 * 3600.0
"""How far back is looked unless the user says otherwise: at a thousand machines that fits Prometheus's limit
of samples a query."""
REFRESH_SECONDS = 15.0
"""How often a screen asks: Prometheus has nothing new sooner, as it is usually set up."""
AFTERGLOW_SECONDS = 60.0
"""How long after its end a run is looked at: a scrape later its final counters are there."""
NONE_YET = "each machine needs `gpumon daemon` and a place among Prometheus's targets: docs/many-machines.md"


class Fleet:
    """The runs a Prometheus knows. Raises `UserError` with one clear sentence."""

    def __init__(
        self,
        url: str,
        *,
        since: float = SINCE_SECONDS,
        policy: Policy = DEFAULT_POLICY,
        now: float | None = None,
    ) -> None:
        self.api = Api(url)
        self._since, self._policy, self._now = since, policy, now

    @property
    def notes(self) -> Sequence[str]:
        """What Prometheus said about its own answers."""
        return list(self.api.notes)

    def records(self) -> list[RunRecord]:
        """All runs of the time range, the newest first. Past ones without what only holds while they run."""
        at = self._moment()
        found = self._records(questions.everything(self.api, questions.ALL_RUNS, at, self._since))
        if not found:
            self._check_scraped(at)
        return sorted(found, key=lambda record: -record.run.started)

    def record(self, wanted: str) -> RunRecord:
        """One run, by id, its beginning, name or ``last``; one that is over as it was at its end."""
        now = self._moment()
        runs = [make_run(key, told) for key, told in by_run(self._known(questions.ALL_RUNS, now)).items()]
        if not runs:
            self._check_scraped(now)
        chosen = find([row(RunRecord(run)) for run in runs], wanted).run
        at, since = _span(next(run for run in runs if run.id == chosen), now)
        made = self._records(questions.everything(self.api, questions.one_run(chosen), at, since))
        return max(made, key=lambda record: record.run.started)

    def rows(self, *, limit: int, state: str | None = None) -> list[tuple[RunRow, Run]]:
        """What a list shows of each run."""
        found = [(row(record), record.run) for record in self.records()]
        return [pair for pair in found if state is None or pair[1].state == state][:limit]

    def snapshot(self, seq: int = 0) -> Snapshot:
        """All runs of the time range as one picture, with the GPUs they are on."""
        at = self._moment()
        answers = questions.everything(self.api, questions.ALL_RUNS, at, self._since, cards=True)
        records, cards = self._records(answers), cards_of(answers.cards)
        made = replace(
            _empty(at, seq, self.api.url),
            gpus=cards[:MOST],
            runs=tuple(record.run for record in records),
            findings=tuple(one for record in records for one in record.findings),
            dropped={"gpus": len(cards) - MOST} if len(cards) > MOST else {},
        )
        return facts.complete(made, self._policy)

    def _records(self, answers: questions.Answers) -> list[RunRecord]:
        return [self._record(key, told) for key, told in by_run(answers).items()]

    def _record(self, key: RunKey, told: Told) -> RunRecord:
        """The run as its machines tell it, then its machines compared, then what follows from that."""
        made = replace(_empty(told.at, 0, self.api.url), runs=(make_run(key, told),))
        run = facts.join(made).runs[0]
        context = RunContext(made, run, self._policy)
        run = replace(run, nodes=nodes_of(context, told), waste=waste_of(context, told))
        found: tuple[Finding, ...] = findings_of(RunContext(made, run, self._policy), told)
        return facts.complete_record(RunRecord(run, found, told.at), self._policy)

    def _known(self, which: str, at: float) -> questions.Answers:
        """Enough to find a run and to tell whether it is over."""
        known = questions.known(self.api, which, at, self._since)
        return questions.Answers(at, known, self.api.ask(f"gpumon_run_info{{{which}}}", at))

    def _check_scraped(self, at: float) -> None:
        """No run may mean that nothing has trained; no daemon at all means that something is not set up."""
        if not self.api.ask("count(gpumon_build_info)", at):
            raise UserError(f"{self.api.url} scrapes no gpumon daemon", hint=NONE_YET)

    def _moment(self) -> float:
        return time.time() if self._now is None else self._now


def _span(run: Run, now: float) -> tuple[float, float]:
    """The moment to look at a run, and how far back it began: now while it lasts, else its end."""
    at = now if run.ended is None else min(now, run.ended + AFTERGLOW_SECONDS)
    return at, max(float(questions.WINDOW_SECONDS), at - run.started)


def _empty(at: float, seq: int, url: str) -> Snapshot:
    """A picture with nothing in it yet: figures come from Prometheus, and no machine is this one."""
    return Snapshot(
        seq=seq,
        time=at,
        monotonic=Moment.now().monotonic,
        interval_seconds=REFRESH_SECONDS,
        source=Source("nvml", detail=f"from {url}"),
        host=Host(url.partition("://")[2]),
    )
