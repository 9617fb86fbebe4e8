"""A long measurement in slices: every part is a file, and what is on file is not measured again.

A part belongs to the code it was measured with. When the trainers or the benchmark change, its file is
of no use any more, except to tell how long the part takes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "out" / "bench-trainers"
UNFINISHED = 3
"""Exit code of a call that stopped because its minutes were over."""


@dataclass(frozen=True)
class Part:
    """One measurement."""

    name: str
    code: str
    """The fingerprint of the code it measures."""
    measure: Callable[[], dict[str, Any]]
    seconds: float
    """About how long it takes, for want of an earlier one."""


class Slices:
    """The parts on file, and the time there is for more of them."""

    def __init__(self, folder: Path, minutes: float = math.inf) -> None:
        self.folder = folder
        self.end = time.monotonic() + 60 * minutes

    def found(self, part: Part) -> dict[str, Any] | None:
        """The figures of a part, when they are on file and of this code."""
        kept = self._read(part)
        return kept["figures"] if kept and kept["code"] == part.code else None

    def older(self, part: Part) -> dict[str, Any] | None:
        """The figures of a part on file that was measured with other code."""
        kept = self._read(part)
        return kept["figures"] if kept and kept["code"] != part.code else None

    def left(self, parts: Sequence[Part]) -> list[Part]:
        return [part for part in parts if self.found(part) is None]

    def expected(self, part: Part) -> float:
        """Seconds the part took the last time, or those it may take."""
        kept = self._read(part)
        return float(kept["seconds"]) if kept else part.seconds

    def measure(self, parts: Sequence[Part]) -> bool:
        """Measure what is not on file yet; whether everything is there now."""
        for part in self.left(parts):
            if time.monotonic() + self.expected(part) > self.end:
                return False
            print(f"measuring {part.name} …", flush=True)
            self._keep(part, os.getloadavg()[0])
        return True

    def _keep(self, part: Part, load: float) -> None:
        begun = time.monotonic()
        figures = {**part.measure(), "date": time.strftime("%Y-%m-%d"), "load_before": round(load, 2)}
        seconds = round(time.monotonic() - begun, 1)
        content = {"code": part.code, "seconds": seconds, "figures": figures}
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self._path(part).with_suffix(f".tmp{os.getpid()}")
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        temporary.replace(self._path(part))

    def seconds(self, parts: Sequence[Part]) -> float:
        """How long the measuring of these parts took."""
        return sum(self.expected(part) for part in parts)

    def sentence(self, parts: Sequence[Part]) -> str:
        """What is left to do."""
        left = self.left(parts)
        minutes = math.ceil(self.seconds(left) / 60)
        return f"{len(left)} of {len(parts)} parts left, about {minutes} min: the same command goes on"

    def _path(self, part: Part) -> Path:
        return self.folder / f"{part.name}.json"

    def _read(self, part: Part) -> dict[str, Any] | None:
        try:
            kept: dict[str, Any] = json.loads(self._path(part).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return kept


COMMANDS = ("attention", "benchmark", "grid")
"""Files of the recipes that no training imports."""


def fingerprint(recipe: str, settings: object) -> str:
    """Of all code that decides what is measured: not of a recipe's other commands, nor of a page's looks."""
    here, trainers = Path(__file__).parent, ROOT / "trainers"
    folders = [trainers / name for name in ("datasets", "engine", "tuning", recipe)]
    files = [*trainers.glob("*.py")]
    files += [path for folder in folders for path in folder.glob("*.py") if path.stem not in COMMANDS]
    files += [path for path in (trainers / "native").iterdir() if path.suffix in (".py", ".c", ".h")]
    files += [here / f"{name}.py" for name in ("measure", "one", "subject")]
    digest = hashlib.sha256(repr(settings).encode())
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
