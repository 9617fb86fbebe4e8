"""Starting trainers as people do, with tiny sizes, and collecting what they said."""

from __future__ import annotations

import subprocess

from tests import warm
from tests.conftest import PATIENCE

TINY: dict[str, tuple[str, ...]] = {
    "tcn": ("--synthetic_size=0.01", "--seq_len=20", "--channels=4", "--batch_size=64"),
    "tom500": ("--synthetic_size=0.002", "--image_size=32", "--slices=6", "--width=4", "--depth=2"),
    "reid": (
        "--synthetic_size=0.001",
        "--image_height=16",
        "--image_width=8",
        "--width=4",
        "--batch_size=16",
    ),
    "graph": ("--synthetic_size=0.05", "--window_size=12", "--time_k=3", "--hidden_channels=8"),
    "sequence": ("--synthetic_size=0.02", "--sequence_length=10", "--hidden_size=8", "--batch_size=32"),
}


def torchrun() -> tuple[str, ...]:
    """What two ranks are started with, before `tiny`."""
    return ("-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "--no-python", warm.python())


def start(*words: str, python: str | None = None, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python or warm.python(), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )  # type: ignore[call-overload,no-any-return]


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def tiny(recipe: str, *words: str) -> tuple[str, ...]:
    """`-m trainers.RECIPE` on tiny generated data, without measuring first which products are worth it."""
    return (
        "-m",
        f"trainers.{recipe}",
        "--synthetic",
        "--num_workers=0",
        "--products=all",
        *TINY[recipe],
        *words,
    )
