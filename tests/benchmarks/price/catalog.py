"""The programs, and how long each runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.device import Speeds

FOLDER = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Program:
    """A training script. Sizes were fixed before each recorded round, for 20 to 40 s on one core: before the
    second one three grew that took 17 s on a faster machine."""

    name: str
    size: tuple[str, ...]
    quick: tuple[str, ...]
    needs: str | None = None
    """The library it cannot do without."""
    device: Speeds | None = None
    """It runs on the stand-in device, this fast."""

    def words(self, quick: bool) -> list[str]:
        return [str(FOLDER / f"{self.name}.py"), *(self.quick if quick else self.size)]


MATRICES = Speeds(kernels_us={"addmm": 1000, "mm": 1000})
"""A millisecond for each product: a step of `device_steps` has 5 of them, one of `device_reads` 59."""

PROGRAMS = (
    Program("accelerate_images", ("--epochs", "14"), ("--epochs", "3", "--pictures", "1000"), "accelerate"),
    Program("hf_trainer", ("--steps", "400"), ("--steps", "60"), "transformers"),
    Program("resnet", ("--epochs", "3"), ("--pictures", "1024")),
    Program("nanogpt", ("--steps", "250"), ("--steps", "40")),
    Program("mingpt", ("--steps", "700"), ("--steps", "150")),
    Program("lightning_module", ("--epochs", "25"), ("--epochs", "4"), "lightning"),
    Program("many_items", ("--steps", "8000"), ("--steps", "400")),
    Program("short_epochs", ("--epochs", "320"), ("--epochs", "20")),
    Program("gnn", ("--epochs", "1500"), ("--epochs", "250"), "torch_geometric"),
    Program("python_loop", ("--steps", "8000"), ("--steps", "400")),
    Program("device_steps", ("--steps", "4000"), ("--steps", "600"), device=MATRICES),
    Program("device_reads", ("--steps", "400"), ("--steps", "60"), device=MATRICES),
)
