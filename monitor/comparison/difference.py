"""Why two runs may not be comparable: what differs between them, or what is wrong with one of them."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from monitor.comparison.arguments import differing, given
from monitor.comparison.settings import setting
from monitor.model.history import RunRecord
from monitor.model.post_mortem import HUNG
from monitor.model.run import Run
from monitor.model.units import whole

DifferenceKind = Literal[
    "script",
    "name",
    "arguments",
    "ranks",
    "host",
    "device",
    "batch_size",
    "model",
    "parameters",
    "dataset",
    "dataset_size",
    "gpu",
]
NAMES: dict[DifferenceKind, str] = {
    "script": "the script",
    "name": "the name",
    "arguments": "the arguments",
    "ranks": "the number of ranks",
    "host": "the host",
    "device": "the device",
    "batch_size": "the batch size",
    "model": "the model",
    "parameters": "the number of parameters",
    "dataset": "the data set",
    "dataset_size": "the data set's size",
    "gpu": "the GPU",
}
PLURAL: frozenset[DifferenceKind] = frozenset(("arguments",))
SETTINGS: dict[DifferenceKind, tuple[str, ...]] = {
    "model": ("model", "class"),
    "parameters": ("model", "parameters"),
    "dataset": ("loader", "dataset"),
    "dataset_size": ("loader", "dataset_len"),
    "gpu": ("gpu_name",),
}
"""Where the configuration probe reports it."""
LOST_SHARE = 0.01
"""A run's figures are in doubt from this share of unseen steps."""


class Difference(Struct, frozen=True):
    """Something known about both runs that differs."""

    kind: DifferenceKind
    before: Any
    after: Any

    def text(self) -> str:
        name, before, after = NAMES[self.kind], _shown(self.before), _shown(self.after)
        several = self.kind in PLURAL
        return f"{name} differ: {before} → {after}" if several else f"{name} differs: {before} → {after}"


def _shown(value: Any) -> str:
    return whole(value) if isinstance(value, int) else str(value)


class Trouble(Struct, frozen=True):
    """Something about one run that casts doubt on its figures."""

    kind: Literal["steps_not_seen", "failed", "killed", "stalled", "hung"]
    run: str
    name: str
    lost: int = 0
    steps: int = 0

    def text(self) -> str:
        if self.kind == "steps_not_seen":
            return f"{whole(self.lost)} of {whole(self.steps)} steps of {self.name} were not read"
        who = f"{self.name} ({self.run})"
        return {
            "failed": f"{who} ended by an exception",
            "killed": f"{who} was killed",
            "stalled": f"{who} is stuck",
            "hung": f"{who} had stopped making steps before somebody ended it",
        }[self.kind]


def differences(a: Run, b: Run) -> tuple[Difference, ...]:
    """What differs; anything known about only one of them is not a difference."""
    pairs: dict[DifferenceKind, tuple[Any, Any]] = {
        "script": (a.script, b.script),
        "name": (a.name, b.name),
        "arguments": _arguments(a, b),
        "ranks": (len(a.ranks), len(b.ranks)),
        "host": (a.hostname, b.hostname),
        "device": (_device(a), _device(b)),
        "batch_size": (_batch(a), _batch(b)),
    }
    pairs |= {kind: (setting(a, *keys), setting(b, *keys)) for kind, keys in SETTINGS.items()}
    return tuple(
        Difference(kind, before, after)
        for kind, (before, after) in pairs.items()
        if before is not None and after is not None and before != after
    )


def troubles(record: RunRecord) -> list[Trouble]:
    run, found = record.run, []
    if run.steps and run.lost > LOST_SHARE * run.steps:
        found.append(Trouble("steps_not_seen", run.id, run.name, run.lost, run.steps))
    if run.state in ("failed", "killed", "stalled"):
        found.append(Trouble(run.state, run.id, run.name))
    elif any(finding.id == HUNG for finding in record.findings):
        found.append(Trouble("hung", run.id, run.name))
    return found


def _arguments(a: Run, b: Run) -> tuple[str | None, str | None]:
    """The arguments that differ, as given."""
    pairs = differing(a, b)
    one, two = (
        " ".join(given(name, text) for name, pair in pairs.items() if (text := pair[side]) is not None)
        for side in (0, 1)
    )
    return (one or "none", two or "none") if pairs else (None, None)


def _batch(run: Run) -> Any:
    return run.batch_size if run.batch_size is not None else setting(run, "loader", "batch_size")


def _device(run: Run) -> str | None:
    device = run.ranks[0].device if run.ranks else None
    return device.partition(":")[0] if device else None
