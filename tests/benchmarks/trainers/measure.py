"""Interleaved medians of the data path and of whole training steps, equality checked first."""

from __future__ import annotations

import contextlib
import io
import random
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.benchmarks.trainers.ladders import Ladder, Row
from trainers.datasets.source import batch_length
from trainers.engine import checkpoint
from trainers.engine.marks import RecordedMarks
from trainers.loop import Trainer

COMPARED = 4
"""First steps whose losses must agree; they are the warm-up, too. A head that begins at zero hides the rest
of the model in the first one."""


@dataclass
class Subject:
    """A row with its trainer, warmed up."""

    row: Row
    trainer: Trainer
    losses: list[float]
    build_seconds: float = 0.0
    """Until its first steps were done: data, model, products, compilation."""
    data_seconds: list[float] = field(default_factory=list)
    step_seconds: list[float] = field(default_factory=list)
    batches: Iterator[Any] | None = None
    epoch: int = 100

    @property
    def longer(self) -> int:
        """Loader processes need a longer stretch: their queue fills while others are measured, and
        has to fill again whenever the loop starts anew."""
        loader = getattr(self.trainer.data.train, "loader", None)
        return 5 if loader is not None and loader.num_workers else 1

    def drain(self) -> None:
        """Take what workers have prepared while nobody was looking."""
        if self.longer > 1:
            loader = self.trainer.data.train.loader  # type: ignore[attr-defined]
            for _ in range(loader.num_workers * loader.prefetch_factor):
                self.next_batch()

    def settle(self, batch_seconds: float) -> None:
        """Wait until its workers have filled their queue: they must not disturb the next row."""
        if self.longer > 1:
            loader = self.trainer.data.train.loader  # type: ignore[attr-defined]
            time.sleep(min(3.0, 1.2 * batch_seconds * loader.num_workers * loader.prefetch_factor))

    def next_batch(self) -> int:
        """Fetch one batch; samples in it."""
        while True:
            if self.batches is None:
                self.batches = iter(self.trainer.data.train.epoch(self.epoch))
            with contextlib.suppress(StopIteration):
                return batch_length(next(self.batches))
            self.batches, self.epoch = None, self.epoch + 1


def build(ladder: Ladder, row: Row, size: dict[str, Any], folder: Path) -> Subject:
    """A trainer of this row; its first steps give the losses and are the warm-up."""
    options = {"epochs": 100_000, **size, **row.options}
    if ladder.name == "graph":
        options["cache_dir"] = str(folder / "graphs")
    config = ladder.recipe.config_class(
        synthetic=True, out=str(folder), monitor=False, device="cpu", quiet=True, **options
    )
    recipe = ladder.recipe(config, torch.device("cpu"))
    checkpoint.seed_everything(config.seed)
    begun = time.perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):
        trainer = Trainer(recipe)
        # The naive rung logs every step: let it, into a buffer, as a job's log would take it.
        trainer.progress.quiet = recipe.on("throttle")
        trainer.train_steps(COMPARED)
    return Subject(row, trainer, list(trainer.result.losses), time.perf_counter() - begun)


def check_equal(subjects: list[Subject], tolerance: float) -> float:
    """Largest relative difference of any row's losses from the naive ones; raises above the bound."""
    reference, worst = subjects[0].losses, 0.0
    for subject in subjects:
        if not subject.row.compare:
            continue
        for mine, naive in zip(subject.losses, reference, strict=True):
            worst = max(worst, abs(mine - naive) / abs(naive))
        if worst > tolerance:
            raise AssertionError(f"{subject.row.label}: losses differ from the naive run by {worst:.2g}")
    return worst


ROUNDS = 7, 40
"""Rounds of a row: at least, at most."""
NARROW = 0.03
"""A ratio is known when its interval is no wider than this share of it on either side …"""


def measure_steps(subjects: list[Subject], steps: int, seconds: float) -> None:
    """Whole steps, one row after the other, round and round until every ratio is known or time is up."""
    end = time.perf_counter() + seconds
    for done in range(ROUNDS[1]):
        if done >= ROUNDS[0] and (all_known(subjects, "step_seconds") or time.perf_counter() > end):
            return
        for subject in subjects:
            count = steps * subject.longer
            with contextlib.redirect_stderr(io.StringIO()):
                begun = time.perf_counter()
                subject.trainer.train_steps(count)
                taken = time.perf_counter() - begun
            subject.step_seconds.append(taken / (count * subject.trainer.config.batch_size))
            subject.settle(taken / count)


def measure_data(subjects: list[Subject], steps: int, seconds: float) -> None:
    """Batches only, without a model."""
    for subject in subjects:
        subject.next_batch()
    end = time.perf_counter() + seconds
    for done in range(ROUNDS[1]):
        if done >= ROUNDS[0] and (all_known(subjects, "data_seconds") or time.perf_counter() > end):
            return
        for subject in subjects:
            subject.drain()
            begun = time.perf_counter()
            samples = sum(subject.next_batch() for _ in range(steps * subject.longer))
            taken = time.perf_counter() - begun
            subject.data_seconds.append(taken / samples)
            subject.settle(taken / steps)


def all_known(subjects: list[Subject], what: str) -> bool:
    """Whether every row's interval is narrow, or clearly on one side of 1."""
    for subject in subjects[1:]:
        low, middle, high = interval(getattr(subjects[0], what), getattr(subject, what))
        if (high - low) / 2 > NARROW * middle and low <= 1 <= high:
            return False
    return True


def median(values: list[float]) -> float:
    return statistics.median(values)


def interval(before: list[float], after: list[float]) -> tuple[float, float, float]:
    """Low, median and high of before/after, round by round: 95 % by resampling the rounds."""
    ratios = [b / a for b, a in zip(before, after, strict=True)]
    generator = random.Random(0)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(400))
    return medians[9], statistics.median(ratios), medians[-10]


def phases(ladder: Ladder, row: Row, size: dict[str, Any], folder: Path) -> dict[str, float]:
    """Where a step's time goes, as shares, from the SDK's own marks."""
    marked = Row(row.label, row.seed, {**row.options, "run_name": "profile"})
    subject = build(ladder, marked, size, folder)
    trainer = subject.trainer
    trainer.marks = RecordedMarks("profile", trainer.config.batch_size)
    with trainer.marks, contextlib.redirect_stderr(io.StringIO()):
        trainer.train_steps(4 * ladder.steps["default"])
        shares: dict[str, float] = trainer.marks.monitor.get_summary()["phases"]
    return {name: round(share, 3) for name, share in shares.items()}


def arithmetic(naive: Subject) -> dict[str, float]:
    """Operations of a sample's training step, and how many a second a large product does here: no kernel
    in this number format takes less time than their ratio."""
    trainer = naive.trainer
    with (
        warnings.catch_warnings(action="ignore"),  # about number formats of other devices
        torch.backends.mkldnn.flags(enabled=False),  # the library's LSTM is one operator nobody counts
        FlopCounterMode(display=False) as counter,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        trainer.train_steps(1)
    matrix = torch.rand(1024, 1024)
    seconds = []
    for _ in range(8):
        begun = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - begun)
    return {
        "operations_a_sample": counter.get_total_flops() / trainer.config.batch_size,
        "operations_a_second": 2 * len(matrix) ** 3 / min(seconds),
    }


def close(subjects: list[Subject]) -> None:
    """Let workers go."""
    for subject in subjects:
        subject.batches = None
        subject.trainer.data.train = subject.trainer.data.validation = None  # type: ignore[assignment]
