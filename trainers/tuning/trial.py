"""Two sets of switches, a few training steps of each in turns: which is faster here?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from trainers.datasets.source import Batch, ResidentSource, batch_length
from trainers.tuning.optimizers import make_optimizer
from trainers.tuning.precision import Precision

if TYPE_CHECKING:
    from trainers.recipe import Data, Recipe

ROUNDS = 3, 9
"""Rounds at least and at most: clear cases are known after three."""
ROUND_SECONDS = 0.05
"""A round is at least this long: short enough for seconds in all, long enough for the clock."""
MOST_SECONDS = 6.0
"""After so long the rounds there are must do."""
LONG_STEP = 0.3
"""Seconds; a longer step is timed over a part of its batch."""
PAYS = 1.01
"""A product is worth having from here on; less is noise, and not having it is simpler."""
CLEAR = 1.05
"""All rounds beyond this, on one side: no more are needed."""


@dataclass(frozen=True)
class Ratio:
    """Seconds before over seconds after, round by round."""

    rounds: tuple[float, ...]

    @property
    def middle(self) -> float:
        return statistics.median(self.rounds)

    @property
    def pays(self) -> bool:
        """Faster in the middle, and in three rounds of four."""
        faster = sum(value > 1 for value in self.rounds)
        return self.middle >= PAYS and 4 * faster >= 3 * len(self.rounds)

    @property
    def clear(self) -> bool:
        return min(self.rounds) > CLEAR or max(self.rounds) < 1 / CLEAR


def ratio(recipe: Recipe[Any], data: Data, before: frozenset[str], after: frozenset[str]) -> Ratio:
    """How many times faster the steps are with the switches `after`."""
    arms = Arm(recipe, data, before), Arm(recipe, data, after)
    share = LONG_STEP / max(LONG_STEP, timed(arms[0], 1))
    for arm in arms:
        arm.use(share)
        arm()  # the first step of each kind pays for set-up
    return interleaved(*arms)


def interleaved(before: Callable[[], None], after: Callable[[], None]) -> Ratio:
    """Rounds of both in turns: what disturbs one disturbs the other."""
    begun = time.perf_counter()
    before()
    count = max(1, round(ROUND_SECONDS / max(1e-6, time.perf_counter() - begun)))
    found: list[float] = []
    while len(found) < ROUNDS[1]:
        found.append(timed(before, count) / timed(after, count))
        known = Ratio(tuple(found)).clear or time.perf_counter() - begun > MOST_SECONDS
        if len(found) >= ROUNDS[0] and known:
            break
    return Ratio(tuple(found))


def timed(step: Callable[[], None], count: int) -> float:
    begun = now()
    for _ in range(count):
        step()
    return now() - begun


def now() -> float:
    """Seconds of this thread's own when it does all the work: what others take of its core is not counted."""
    alone = torch.get_num_threads() == 1 and not torch.cuda.is_available()
    return time.thread_time() if alone else time.perf_counter()


class Arm:
    """Training steps of a throw-away model over one batch of the data, with these switches."""

    def __init__(self, recipe: Recipe[Any], data: Data, switches: frozenset[str]) -> None:
        self.recipe, self.data, self.switches = recipe, data, switches
        recipe.switches = switches
        config, device = recipe.config, recipe.device
        self.model = recipe.build_model().to(device).train()
        self.optimizer = make_optimizer(
            self.model, lr=config.lr, weight_decay=config.weight_decay, fused=recipe.on("fused")
        )
        self.precision = Precision(mixed=recipe.on("amp"), dtype=config.amp_dtype, device=device)
        self.kept: Batch | None = None
        """The batch to use again and again; None: gathered anew, since gathering depends on switches."""
        self.use(1.0)

    def use(self, share: float) -> None:
        """Step over so much of the batch; all of it where its tensors are not one row a sample."""
        if share == 1.0 and isinstance(self.data.train, ResidentSource):
            return
        batch = self.batch()
        samples = batch_length(batch)
        count = max(2, round(samples * share))
        if all(len(part) == samples for part in batch.values()):
            batch = {key: part[:count] for key, part in batch.items()}
        self.kept = batch

    def batch(self) -> Batch:
        self.recipe.switches = self.switches
        if self.kept is not None:
            return self.kept
        batch = next(iter(self.data.train.epoch(0)))
        return {key: part.to(self.recipe.device) for key, part in batch.items()}

    def __call__(self) -> None:
        batch = self.batch()
        with self.precision.autocast():
            loss = self.recipe.loss(self.model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.recipe.device.type == "cuda":
            torch.cuda.synchronize()
