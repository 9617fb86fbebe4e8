"""A study of a script: a first look, trials of what it suggests, the best of them together, the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from monitor.comparison.settings import setting
from monitor.experiments.arm import EFFECTS, FREE, Arm, ceilings
from monitor.experiments.candidates import candidates, from_findings
from monitor.experiments.experiment import (
    Experiment,
    Progress,
    Result,
    combined,
    failed_as_it_is,
    winners,
)
from monitor.experiments.measure import LEAST_STEPS, WARM_STEPS
from monitor.experiments.memory import forget, remember, write_pairs
from monitor.experiments.recipes import recipe_arms, recipe_of
from monitor.experiments.runner import Runner
from monitor.model.errors import EXIT_FAILED, UserError
from monitor.model.finding import Effect
from monitor.report.report import Report
from monitor.report.watch import RunWatcher

FIRST_LIMIT = 900.0
"""Seconds a first look may take, set-up included."""
NAME = "try"
MOST = 4


class Options(msgspec.Struct, frozen=True):
    """What the user asked for."""

    arms: tuple[Arm, ...] = ()
    """None: what the first look suggests."""
    steps: int | None = None
    seconds: float = 5.0
    blocks: int = 3
    most: int | None = None
    """Remedies that are tried; None: `MOST`, and every option of a trainer."""
    allow_numerics: bool = False
    ceilings: bool = False
    """Also: how fast if data, checkpoints or logging were free?"""

    @property
    def allowed(self) -> Sequence[Effect]:
        return EFFECTS if self.allow_numerics else FREE


class Answer(msgspec.Struct, frozen=True):
    """What the experiment showed."""

    script: str | None
    run: str
    verdict: str
    """Of the first look."""
    steps: int
    """Of each trial, warm-up included."""
    step_seconds: float | None
    """Of the script as it is."""
    results: tuple[Result, ...]
    together: Result | None
    """The best arms at once, where there are several."""
    best: Result | None
    """None: nothing that may be done is clearly faster."""
    not_tried: tuple[Arm, ...]
    """Would change the training, and nobody allowed that."""
    isolation: str
    ceilings: tuple[Result, ...] = ()
    """What parts of the loop could bring at the most."""
    baseline_runs: int = 0
    noise: float | None = None
    """By how much runs with the same settings differ; None: not known."""
    interrupted: bool = False


class Study:
    """One command, looked at and experimented with."""

    def __init__(self, runner: Runner, options: Options, tell: Callable[[Progress], None]) -> None:
        self._runner = runner
        self._options = options
        self._tell = tell

    def run(self, run_id: str, cores: int) -> Answer:
        self._tell(Progress("a first look", 0, 1, None))
        report, seconds, steps = self._first_look(run_id)
        arms, not_tried = self._arms(report, cores)
        experiment = Experiment(self._runner, self._options.steps or steps, seconds, self._tell)
        together: Arm | None = None
        interrupted = False
        try:
            if self._options.ceilings:
                experiment.run(ceilings(), self._options.blocks)
            experiment.run(arms, self._options.blocks)
            together = combined([experiment.result(arm) for arm in arms], self._options.allowed)
            if together is not None:
                experiment.run([together], self._options.blocks)
        except KeyboardInterrupt:
            interrupted = True
        answer = self._answer(report, experiment, arms, together, not_tried, interrupted)
        write_pairs(report, answer.results)
        return answer

    def _first_look(self, run_id: str) -> tuple[Report, float, int]:
        """The diagnosis, how long that took, and the steps of a trial."""
        watcher = RunWatcher(run_id)
        watcher.start()
        trial = self._runner.first_look(run_id, watcher.environment(), self._options.seconds, FIRST_LIMIT)
        report = watcher.finish(trial.ended.code)
        if trial.ended.code:
            raise failed_as_it_is(trial.failure)
        if report.run is None or not report.run.steps:
            raise UserError(report.verdict, code=EXIT_FAILED)
        if trial.failure or trial.ended.told is None:
            raise failed_as_it_is(trial.failure)
        made = report.run.steps
        if made < WARM_STEPS + LEAST_STEPS:
            raise UserError(
                f"the script made {made} steps, too few to compare: {WARM_STEPS} are warm-up, and "
                f"{LEAST_STEPS} more are needed",
                hint="start it with more steps",
                code=EXIT_FAILED,
            )
        return report, trial.seconds, trial.ended.told.steps

    def _arms(self, report: Report, cores: int) -> tuple[list[Arm], tuple[Arm, ...]]:
        """What is tried, and what would be if the training might change."""
        found = self._asked(report)
        if not found and report.run is not None and recipe_of(self._runner.words) is not None:
            workers = setting(report.run, "loader", "num_workers")
            found = recipe_arms(
                self._runner.words,
                cores,
                report.run.batch_size,
                workers if isinstance(workers, int) else None,
            )[: self._options.most]
        elif not found and report.run is not None:
            found = candidates(report.findings, report.run, cores, self._options.most or MOST)
        tried = [arm for arm in found if arm.effect in self._options.allowed]
        return tried, tuple(arm for arm in found if arm not in tried)

    def _asked(self, report: Report) -> list[Arm]:
        """The user's own arms; one that the advice has too comes with its promise."""
        known = {arm.label: arm for arm in from_findings(report.findings)}
        return [known.get(arm.label, arm) for arm in self._options.arms]

    def _answer(
        self,
        report: Report,
        experiment: Experiment,
        arms: list[Arm],
        together: Arm | None,
        not_tried: tuple[Arm, ...],
        interrupted: bool,
    ) -> Answer:
        results = tuple(experiment.result(arm) for arm in arms)
        joint = experiment.result(together) if together is not None and experiment.of(together) else None
        found = winners([*results, *([joint] if joint is not None else [])], self._options.allowed)
        answer = Answer(
            script=report.run.script if report.run is not None else None,
            run=report.run_id,
            verdict=report.verdict,
            steps=experiment.steps,
            step_seconds=experiment.baseline_period(),
            results=results,
            together=joint,
            best=found[0] if found else None,
            not_tried=not_tried,
            ceilings=tuple(experiment.result(arm) for arm in ceilings() if experiment.of(arm)),
            isolation=self._runner.isolation.sentence,
            baseline_runs=len(experiment.of(Arm())),
            noise=experiment.noise(),
            interrupted=interrupted,
        )
        if answer.best is not None:
            remember(self._runner.words, answer.best, answer.step_seconds)
        elif not interrupted:
            forget(self._runner.words)
        return answer
