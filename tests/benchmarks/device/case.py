"""What is known about a script before gpumon sees it: cause, findings that name it, the device's speeds."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
from dataclasses import dataclass, field
from pathlib import Path

from tests.device import Speeds

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, slots=True)
class Case:
    """One script on the stand-in. `expected`: ids that name its cause; empty for a healthy one."""

    script: str
    cause: str
    expected: tuple[str, ...] = ()
    speeds: Speeds = field(default_factory=Speeds)
    device: int = 0
    """Index of the device it trains on."""
    work: float = 1.0
    """Samples in a step of the fixed script for each sample in a step of the naive one."""
    launch_bound: bool = False
    """The device waits for small launches: its idle share is judged as a class and a bound."""
    least_idle: float = 0.0
    """A sick run has at least this idle share; 0 where the cause keeps the device busy."""
    needs: str = ""
    """A library that the script imports and that may not be installed."""
    quick: bool = False
    """In the short selection of `--quick`."""

    @property
    def path(self) -> Path:
        return SCRIPTS / f"{self.script}.py"

    @property
    def healthy(self) -> bool:
        return not self.expected

    @property
    def missing(self) -> str:
        """Why it cannot be run here, or nothing."""
        absent = self.needs and importlib.util.find_spec(self.needs) is None
        return f"{self.needs} is not installed" if absent else ""

    def digest(self) -> str:
        """Changes with the script, with what is expected of it, and with the device it runs on."""
        told = [self.expected, dataclasses.asdict(self.speeds), self.device, self.work, self.launch_bound]
        return hashlib.sha256(self.path.read_bytes() + json.dumps(told).encode()).hexdigest()[:16]
