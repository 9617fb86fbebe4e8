"""What is tried: scripts, loops of libraries and naive twins of the trainers, and the fix made by hand."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass

from tests.benchmarks.diagnosis.catalog import LIBRARIES, SCRIPTS
from tests.frameworks.environment import python_with_frameworks


@dataclass(frozen=True, slots=True)
class Case:
    """A command, what is wrong with it, and the words that mend it by hand."""

    name: str
    wrong: str
    fix: tuple[str, ...] = ("--fixed",)

    def command(self) -> list[str]:
        return [sys.executable, str(SCRIPTS / f"{self.name}.py")]

    def source(self) -> str:
        """What a row of this case was made of."""
        return (SCRIPTS / f"{self.name}.py").read_text()

    @property
    def kind(self) -> str:
        return "script"


class Library(Case):
    """The loop is a library's; its Python has the libraries."""

    def command(self) -> list[str]:
        return [str(python_with_frameworks()), str(LIBRARIES / f"{self.name}.py")]

    def source(self) -> str:
        return (LIBRARIES / f"{self.name}.py").read_text()

    @property
    def kind(self) -> str:
        return "library loop"


@dataclass(frozen=True, slots=True)
class Twin(Case):
    """The naive rung of a trainer. Most of what its document mends is code; loader processes an option."""

    fix: tuple[str, ...] = ("--num_workers=2",)
    size: tuple[str, ...] = ()
    """Small models, as in the tests: it is the data path that a knob can mend."""

    def command(self) -> list[str]:
        common = ("--synthetic", "--rung=naive", "--epochs=100000", "--validation_interval=100000")
        recipe = self.name.removesuffix("_twin")
        return [sys.executable, "-m", f"trainers.{recipe}", *common, "--out=trained", *self.size]

    def source(self) -> str:
        return " ".join(self.command()[1:])

    @property
    def kind(self) -> str:
        return "naive twin"


CASES = {
    case.name: case
    for case in (
        Case("augmented_photos", "no workers, random augmentation"),
        Case("object_store", "no workers, samples wait"),
        Case("packed_tiles", "no workers, random crops"),
        Case("traffic_lights", "no workers, samples wait"),
        Case("lidar_frames", "one worker"),
        Case("remote_scans", "two workers, slow line"),
        Case("click_through", "8 workers for cheap rows"),
        Case("forum_votes", "6 workers for cheap rows"),
        Case("short_epochs", "workers restarted"),
        Case("nightly_refit", "workers restarted"),
        Case("season_fit", "workers restarted"),
        Case("plain_adam", "optimizer unfused"),
        Case("many_hands", "10 threads"),
        Case("shared_cores", "6 threads"),
        Case("drum_loops", "anomaly mode"),
        Case("nan_hunt", "anomaly mode"),
        Case("tidy_memory", "gc.collect"),
        Case("claims_cleanup", "gc.collect every step"),
        Library("lightning_anomaly", "detect_anomaly=True"),
        Library("lightning_loader", "num_workers=0"),
        Library("ultralytics_workers", "workers=0"),
        Library("geometric_workers", "num_workers=6 for cheap graphs"),
        Library("skorch_optimizer", "optimizer__foreach=False"),
        Twin("tcn_twin", "scaler in every sample", size=("--channels=8", "--batch_size=32")),
        Twin(
            "tom500_twin", "volumes read in every sample",
            size=("--width=2", "--depth=2", "--batch_size=2", "--synthetic_size=0.01"),
        ),
        Twin(
            "reid_twin", "sampler scans all", size=("--width=8", "--batch_size=16", "--synthetic_size=0.02")
        ),
        Twin(
            "graph_twin", "kNN in every sample",
            size=("--hidden_channels=16", "--batch_size=8", "--synthetic_size=0.5"),
        ),
        Twin(
            "sequence_twin", "windows cut one by one",
            size=("--hidden_size=8", "--sequence_length=30", "--batch_size=64"),
        ),
    )
}  # fmt: skip
"""Scripts and library loops of the diagnosis benchmark whose fix is a knob (chosen by that alone), and all
five twins: where loader processes bring less than 5 % there is nothing to find with a knob."""


MISSED = ("plain_adam", "many_hands", "packed_tiles", "nan_hunt", "nightly_refit", "drum_loops")
"""Of the round before, below what was asked for or just at it: they are the first to be measured again."""


def in_order() -> list[str]:
    """What is measured first: what a budget leaves out should be what is known best."""
    new = [case.name for case in CASES.values() if case.kind != "script"]
    return list(dict.fromkeys((*MISSED, *new, *CASES)))


def digest(case: Case, lengths: str) -> str:
    """Of what is fixed before the first run."""
    return hashlib.sha256(f"{case.source()}{' '.join(case.fix)}{lengths}".encode()).hexdigest()[:12]
