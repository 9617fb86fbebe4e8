"""The experiment: baseline and arms in turn, back and forth, until every ratio is clear or time is up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from monitor.experiments.arm import FREE, Arm, is_ceiling, together, worst
from monitor.experiments.losses import Agreement, agreement
from monitor.experiments.runner import Runner, Trial
from monitor.experiments.spread import Ratio, noise, ratio_of
from monitor.model.errors import EXIT_FAILED, UserError
from monitor.model.finding import Effect

BASELINE = Arm()
PATIENCE, LEAST_LIMIT = 10.0, 300.0
"""A trial may take so many times what the first look took, and at least so many seconds: compiling takes a
while."""
_OBSERVED: dict[str, Effect] = {"equal": "identical", "rounding": "rounding", "differ": "in_expectation"}


class Result(msgspec.Struct, frozen=True):
    """What is known of an arm."""

    arm: Arm
    runs: int
    ratio: Ratio | None
    problem: str
    """Why there is no ratio; empty when there is."""
    losses: Agreement
    effect: Effect
    """What it does to the training, as its knobs say and its losses show."""
    memory_bytes: int | None = None
    """More (or less) than the baseline, at the peak."""
    device_memory_bytes: int | None = None
    idle: tuple[str, ...] = ()
    """Knobs of the arm that had nothing to change in this script."""

    @property
    def settings(self) -> dict[str, str]:
        """What made the difference."""
        return {name: value for name, value in self.arm.settings.items() if name not in self.idle}


class Progress(msgspec.Struct, frozen=True):
    """What runs now."""

    label: str
    done: int
    left: int
    seconds_left: float | None


class Experiment:
    """Trials of some arms against the baseline."""

    def __init__(
        self, runner: Runner, steps: int, first_seconds: float, tell: Callable[[Progress], None]
    ) -> None:
        self._runner = runner
        self.steps = steps
        self._limit = max(LEAST_LIMIT, PATIENCE * first_seconds)
        self._first_seconds = first_seconds
        self._tell = tell
        self.trials: list[Trial] = []

    # ── trials ──

    def run(self, arms: Sequence[Arm], blocks: int) -> None:
        """Up to so many blocks; an arm that is clear, or that failed, is left out of the next."""
        for block in range(blocks):
            open_arms = [arm for arm in arms if not self._is_settled(arm)]
            if not open_arms:
                return
            order = [BASELINE, *open_arms]
            order += order[::-1]
            for at, arm in enumerate(order):
                if not self._problem(arm):
                    self._tell_progress(arm, len(order) - at + (blocks - block - 1) * len(order))
                    self._one(arm)

    def _one(self, arm: Arm) -> None:
        trial = self._runner.trial(arm, limit=self._limit, steps=self.steps)
        self.trials.append(trial)
        if arm == BASELINE and trial.problem:
            raise failed_as_it_is(trial.failure or trial.problem)

    def _tell_progress(self, arm: Arm, left: int) -> None:
        spent = [trial.seconds for trial in self.trials] or [self._first_seconds]
        self._tell(Progress(arm.label, len(self.trials), left, left * sum(spent) / len(spent)))

    # ── what they show ──

    def of(self, arm: Arm) -> list[Trial]:
        return [trial for trial in self.trials if trial.arm == arm]

    def _problem(self, arm: Arm) -> str:
        return next((trial.problem for trial in self.of(arm) if trial.problem), "")

    def _is_settled(self, arm: Arm) -> bool:
        ratio = self.ratio(arm)
        return bool(self._problem(arm)) or (ratio is not None and ratio.clear)

    def ratio(self, arm: Arm) -> Ratio | None:
        if self._problem(arm):
            return None
        by_sample = not is_ceiling(arm) and all(
            trial.measured.samples for trial in self.trials if trial.measured is not None
        )
        costs = self._all_costs(by_sample)
        deviation, freedom = noise(list(costs.values()))
        return ratio_of(costs.get(BASELINE.label, []), costs.get(arm.label, []), deviation, freedom)

    def noise(self) -> float | None:
        """By how much runs of the same arm differ, as a share."""
        deviation, freedom = noise(list(self._all_costs(by_sample=False).values()))
        return math.expm1(deviation) if freedom else None

    def _all_costs(self, by_sample: bool) -> dict[str, list[float]]:
        return {one.label: self._costs(one, by_sample) for one in self._arms()}

    def _arms(self) -> Iterator[Arm]:
        seen: dict[str, Arm] = {trial.arm.label: trial.arm for trial in self.trials}
        return iter(seen.values())

    def _costs(self, arm: Arm, by_sample: bool) -> list[float]:
        return [one.measured.cost(by_sample) for one in self.of(arm) if one.measured is not None]

    def baseline_period(self) -> float | None:
        costs = self._costs(BASELINE, False)
        return sum(costs) / len(costs) if costs else None

    def result(self, arm: Arm) -> Result:
        losses = self._agreement(arm)
        observed = _OBSERVED.get(losses.same, "identical")
        problem, ratio = self._problem(arm), self.ratio(arm)
        return Result(
            arm=arm,
            runs=len(self.of(arm)),
            ratio=ratio,
            problem=problem or ("" if ratio is not None else "not tried long enough"),
            losses=losses,
            effect=worst((arm.effect, observed)),
            memory_bytes=self._more(arm, "memory_bytes"),
            device_memory_bytes=self._more(arm, "device_memory_bytes"),
            idle=tuple(name for name in arm.settings if not self._applied(arm, name)),
        )

    def _applied(self, arm: Arm, name: str) -> bool:
        told = (trial.ended.told for trial in self.of(arm))
        return any(one.knobs.get(name, {}).get("state") == "applied" for one in told if one is not None)

    def _agreement(self, arm: Arm) -> Agreement:
        """With the baseline's losses; where two runs of the baseline differ, nothing can be said."""
        own, base = self._losses(arm), self._losses(BASELINE)
        if len(base) < 2 or not own or agreement(base[0], base[1]).same == "differ":
            return Agreement("unknown")
        found = [agreement(base[0], one) for one in own]
        return max(found, key=lambda one: ("equal", "unknown", "rounding", "differ").index(one.same))

    def _losses(self, arm: Arm) -> list[tuple[float, ...]]:
        told = (trial.ended.told for trial in self.of(arm) if not trial.problem)
        return [one.losses for one in told if one is not None]

    def _more(self, arm: Arm, name: str) -> int | None:
        own, base = self._peak(arm, name), self._peak(BASELINE, name)
        return None if own is None or base is None else own - base

    def _peak(self, arm: Arm, name: str) -> int | None:
        told = (trial.ended.told for trial in self.of(arm))
        found = [getattr(one, name) for one in told if one is not None]
        return max((value for value in found if value is not None), default=None)


def failed_as_it_is(why: str) -> UserError:
    """There is nothing to compare with."""
    asks = why.startswith("EOFError")
    hint = "nobody answers a trial: let the script read what it asks for from an argument" if asks else None
    return UserError(f"the script as it is failed: {why}", hint=hint, code=EXIT_FAILED)


def winners(results: Sequence[Result], allowed: Sequence[Effect] = FREE) -> list[Result]:
    """Clearly faster and allowed, the fastest first."""
    found = [one for one in results if one.ratio is not None and one.ratio.gains and one.effect in allowed]
    return sorted(found, key=lambda one: -(one.ratio.likely if one.ratio is not None else 0.0))


def combined(results: Sequence[Result], allowed: Sequence[Effect] = FREE) -> Arm | None:
    """All that win, together; None when there is nothing to combine."""
    chosen = winners(results, allowed)
    arm = together([one.arm for one in chosen])
    return arm if len(chosen) > 1 and arm.label != chosen[0].arm.label else None
