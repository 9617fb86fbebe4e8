"""A row of a ladder with its trainer, in a process of its own.

What a trainer sets for its whole process (how freed memory is kept, for one) must not reach the other rows.
The processes wait while another row is measured: one row works at a time.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.benchmarks.trainers import left
from tests.benchmarks.trainers.ladders import Ladder, Row
from trainers.datasets.source import batch_length
from trainers.engine import checkpoint
from trainers.engine.marks import RecordedMarks
from trainers.loop import Trainer

COMPARED = 4
"""First steps whose losses must agree; they are the warm-up, too. A head that begins at zero hides the rest
of the model in the first one."""


class Subject:
    """The trainer, warmed up, in the process that runs it."""

    def __init__(self, ladder: Ladder, row: Row, size: dict[str, Any], folder: Path) -> None:
        self.batches: Iterator[Any] | None = None
        self.epoch = 100
        begun = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):
            self.trainer = make(ladder, row, size, folder)
            self.trainer.train_steps(COMPARED)
        self.build_seconds = time.perf_counter() - begun

    def facts(self) -> dict[str, Any]:
        """What the other side wants to know about it."""
        trainer = self.trainer
        loader = getattr(trainer.data.train, "loader", None)
        return {
            "losses": list(trainer.result.losses[:COMPARED]),
            "build_seconds": self.build_seconds,
            "batch_size": trainer.config.batch_size,
            "switches": sorted(trainer.recipe.switches),
            "queue": loader.num_workers * loader.prefetch_factor if loader and loader.num_workers else 0,
            "compiled": trainer.compiled.failed is None and trainer.compiled.graphs > 0,
            "said": trainer.compiled.sentence(),
        }

    def steps(self, count: int) -> float:
        """Seconds of so many training steps."""
        with contextlib.redirect_stderr(io.StringIO()):
            begun = time.perf_counter()
            self.trainer.train_steps(count)
            return time.perf_counter() - begun

    def fetch(self, count: int) -> tuple[int, float]:
        """Samples and seconds of so many batches, without a model."""
        begun = time.perf_counter()
        samples = sum(self._next_batch() for _ in range(count))
        return samples, time.perf_counter() - begun

    def _next_batch(self) -> int:
        while True:
            if self.batches is None:
                self.batches = iter(self.trainer.data.train.epoch(self.epoch))
            with contextlib.suppress(StopIteration):
                return batch_length(next(self.batches))
            self.batches, self.epoch = None, self.epoch + 1

    def phases(self, count: int) -> dict[str, float]:
        """Where a step's time goes, as shares, from the SDK's own marks."""
        marks, trainer = RecordedMarks("profile", self.trainer.config.batch_size), self.trainer
        trainer.marks = marks
        with marks, contextlib.redirect_stderr(io.StringIO()):
            trainer.train_steps(count)
            shares: dict[str, float] = marks.monitor.get_summary()["phases"]
        return {name: round(share, 3) for name, share in shares.items()}

    def left(self, count: int) -> dict[str, float]:
        """Where a step's time goes, as shares, from the profiler."""
        with contextlib.redirect_stderr(io.StringIO()):
            return left.shares(self.trainer, count)

    def arithmetic(self) -> dict[str, float]:
        """Operations of a sample's training step, and how many a second a large product does here: no kernel
        in this number format takes less time than their ratio."""
        with (
            warnings.catch_warnings(action="ignore"),  # about number formats of other devices
            torch.backends.mkldnn.flags(enabled=False),  # the library's LSTM is one operator nobody counts
            FlopCounterMode(display=False) as counter,
            contextlib.redirect_stderr(io.StringIO()),
        ):
            self.trainer.train_steps(1)
        matrix = torch.rand(1024, 1024)
        seconds = []
        for _ in range(8):
            begun = time.perf_counter()
            matrix @ matrix
            seconds.append(time.perf_counter() - begun)
        return {
            "operations_a_sample": counter.get_total_flops() / self.trainer.config.batch_size,
            "operations_a_second": 2 * len(matrix) ** 3 / min(seconds),
        }


def make(ladder: Ladder, row: Row, size: dict[str, Any], folder: Path) -> Trainer:
    """A trainer of this row."""
    options = {"epochs": 100_000, **size, **row.options}
    torch.set_num_threads(options.get("threads", 1))
    if ladder.name == "graph":
        options["cache_dir"] = str(folder / "graphs")
    config = ladder.recipe.config_class(
        synthetic=True, out=str(folder), monitor=False, device="cpu", quiet=True, **options
    )
    recipe = ladder.recipe(config, torch.device("cpu"))
    checkpoint.seed_everything(config.seed)
    trainer = Trainer(recipe)
    # The naive rung logs every step: let it, into a buffer, as a job's log would take it.
    trainer.progress.quiet = recipe.on("throttle")
    return trainer


def serve(pipe: Connection, *arguments: Any) -> None:
    """The other process: build the subject, then do what is asked until nothing more is."""
    subject = Subject(*arguments)
    pipe.send(subject.facts())
    with contextlib.suppress(EOFError):
        while (asked := pipe.recv()) is not None:
            pipe.send(getattr(subject, asked[0])(*asked[1:]))


class Apart:
    """This side of a subject: its facts, and the rounds that were measured."""

    def __init__(self, ladder: Ladder, row: Row, size: dict[str, Any], folder: Path) -> None:
        self.row = row
        self.pipe, other = get_context("fork").Pipe()
        self.process = get_context("fork").Process(target=serve, args=(other, ladder, row, size, folder))
        self.process.start()
        other.close()
        self.facts: dict[str, Any] = self._answer()
        self.data_seconds: list[float] = []
        self.step_seconds: list[float] = []

    def ask(self, what: str, *arguments: Any) -> Any:
        self.pipe.send((what, *arguments))
        return self._answer()

    def _answer(self) -> Any:
        try:
            return self.pipe.recv()
        except EOFError:
            raise RuntimeError(f"{self.row.label}: its process has ended") from None

    @property
    def longer(self) -> int:
        """Loader processes need a longer stretch: their queue fills while others are measured, and
        has to fill again whenever the loop starts anew."""
        return 5 if self.facts["queue"] else 1

    def drain(self) -> None:
        """Take what workers have prepared while nobody was looking."""
        self.ask("fetch", self.facts["queue"])

    def settle(self, batch_seconds: float) -> None:
        """Wait until its workers have filled their queue: they must not disturb the next row."""
        time.sleep(min(3.0, 1.2 * batch_seconds * self.facts["queue"]))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.process.join()
