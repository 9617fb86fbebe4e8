"""What the comparison found, as a table."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, field

from tests.frameworks.environment import ROOT
from tests.frameworks.reference import PHASES

LIMIT = 0.03
"""A share may differ from the reference by three points."""


@dataclass
class Result:
    """One training, seen in one way."""

    name: str
    way: str
    steps: int = 0
    updates: int = 0
    framework: str | None = None
    ours: dict[str, float] = field(default_factory=dict)
    reference: dict[str, float] = field(default_factory=dict)
    failure: str | None = None
    version: str = ""

    def differences(self) -> dict[str, float]:
        """Phase → our share less the reference's. What is copied to a device belongs to nobody here."""
        return {phase: self.ours.get(phase, 0.0) - self.reference.get(phase, 0.0) for phase in PHASES}

    @property
    def largest(self) -> tuple[str, float]:
        phase, found = max(self.differences().items(), key=lambda item: abs(item[1]))
        return phase, found

    @property
    def agrees(self) -> bool:
        return self.failure is None and abs(self.largest[1]) <= LIMIT and self.steps == self.updates

    def line(self) -> str:
        if self.failure:
            return f"{self.name} {self.way}: {self.failure}"
        phase, found = self.largest
        state = "ok" if self.agrees else "DIFFERS"
        shown = {name: f"{self.ours.get(name, 0):.1%}/{self.reference.get(name, 0):.1%}" for name in PHASES}
        head = f"{self.name} {self.way}: {state}, {self.steps} of {self.updates} steps"
        return f"{head}, {phase} {found:+.1%} {shown}"

    def row(self) -> str:
        head = f"| {self.name} {self.version} | {self.way} | {self.framework or '—'} "
        if self.failure:
            return f"{head}| {self.failure} |" + " |" * (len(PHASES) + 1)
        cells = [self._cell(phase) for phase in PHASES]
        return f"{head}| {self.steps} of {self.updates} | " + " | ".join(cells) + f" | {self._largest()} |"

    def _cell(self, phase: str) -> str:
        ours, reference = self.ours.get(phase, 0.0), self.reference.get(phase, 0.0)
        return "" if max(ours, reference) < 0.0005 else f"{100 * ours:.1f} / {100 * reference:.1f}"

    def _largest(self) -> str:
        phase, found = self.largest
        return f"{100 * found:+.1f} {phase}"


def write(results: list[Result]) -> None:
    within = sum(result.agrees for result in results)
    today, python = time.strftime("%Y-%m-%d"), platform.python_version()
    lines = [
        "# Frameworks",
        "",
        f"`python -m tests.frameworks`, {today}, Python {python}, torch on the CPU. Every framework trains",
        "for real, in a process of its own; its steps and shares of time as gpumon records them, beside",
        "clock stamps taken in the same process at the framework's own functions.",
        "",
        f"Steps: recorded, of the updates that were made. Shares in %: gpumon / stamps. {within} of",
        f"{len(results)} agree in every step and within 3 points of every share.",
        "",
        "| framework | seen by | named | steps | " + " | ".join(PHASES) + " | largest difference |",
        "|" + "---|" * (len(PHASES) + 5),
        *(result.row() for result in results),
        "",
        "torchvision has no build that fits a torch for the CPU only: timm, ultralytics and Lightning",
        "(through torchmetrics) run with its Python part; the operator detectors use is a few lines of",
        "Python in `tests/frameworks/torchvision_operators.py`. gpumon has callbacks for Lightning and",
        "Hugging Face.",
        "",
    ]
    (ROOT / "docs" / "frameworks.md").write_text("\n".join(lines))
