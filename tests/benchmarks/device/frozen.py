"""Which scripts were written down before gpumon first saw them, and when it did.

`python -m tests.benchmarks.device --freeze` adds new scripts to frozen.json. From then on a change of the
script, of what is expected of it or of the device's speeds shows, and so does a later look at known answers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from tests.benchmarks.device.case import Case

FILE = Path(__file__).parent / "frozen.json"


class Entry(TypedDict):
    digest: str
    frozen: str
    seen: str


def entries() -> dict[str, Entry]:
    told: dict[str, Entry] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return told


def freeze(cases: Iterable[Case]) -> list[str]:
    """Writes down the scripts that are not yet, and those that changed before gpumon saw them."""
    known, added = entries(), []
    for case in cases:
        entry = known.get(case.script)
        if entry is None or (not entry["seen"] and entry["digest"] != case.digest()):
            known[case.script] = {"digest": case.digest(), "frozen": _today(), "seen": ""}
            added.append(case.script)
    _write(known)
    return added


def look(case: Case) -> str:
    """What a run of gpumon on this script is worth now."""
    entry = entries().get(case.script)
    if entry is None:
        return "not frozen"
    if entry["digest"] != case.digest():
        return f"changed after {entry['seen'] or entry['frozen']}"
    return f"seen {entry['seen']}" if entry["seen"] else "first look"


def mark_seen(case: Case) -> None:
    known = entries()
    if case.script in known and not known[case.script]["seen"]:
        known[case.script]["seen"] = _today()
        _write(known)


def _write(known: dict[str, Entry]) -> None:
    lines = [f" {json.dumps(script)}: {json.dumps(entry)}" for script, entry in sorted(known.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _today() -> str:
    return time.strftime("%Y-%m-%d")
