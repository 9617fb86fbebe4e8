"""Whether a remedy was applied between two runs. Only an *observed* difference counts: a setting of the
configuration probe, or the code of the function the finding points at."""

from __future__ import annotations

import os
from typing import Any

from msgspec import Struct

from monitor.comparison.arguments import differing
from monitor.comparison.settings import setting
from monitor.model.finding import Finding
from monitor.model.run import Run


class Applied(Struct, frozen=True):
    """What was observed of a remedy."""

    seen: bool | None
    """None: cannot be determined."""
    what: str = ""
    """What differs: "loader.num_workers 0 → 4", "the code of step (train.py)"."""


def applied(finding: Finding, a: Run, b: Run) -> Applied:
    """Judged by the settings the remedy changes or, if none of them is known, by the code."""
    by_settings = _settings(finding, a, b)
    return by_settings if by_settings.seen is not None else _code(finding, a, b)


def _settings(finding: Finding, a: Run, b: Run) -> Applied:
    pairs = {
        path: tuple(setting(run, *path.split(".")) for run in (a, b)) for path in finding.remedy.settings
    }
    for path, (before, after) in pairs.items():
        if before != after and after is not None:
            return Applied(True, f"{path} {before} → {after}")
    return Applied(False if any(before is not None for before, _ in pairs.values()) else None)


def _code(finding: Finding, a: Run, b: Run) -> Applied:
    """Compares digests of the script's functions: those containing the hot line, and their callers."""
    file = str(finding.evidence.get("hot_line") or "").partition(":")[0]
    then, now = (setting(run, "source", "functions") for run in (a, b))
    if not isinstance(then, dict) or not isinstance(now, dict) or file != os.path.basename(a.script or ""):
        return Applied(None)
    known = [name for name in _functions(finding, a) if name in then]
    for name in known:
        if then[name] != now.get(name):
            return Applied(True, f"the code of {name} ({file})")
    if differing(a, b):
        return Applied(None)  # an argument may have led past the same code
    return Applied(False if known else None)


def _functions(finding: Finding, run: Run) -> list[str]:
    """The function of the hot line, then its callers in the same file."""
    place, own = str(finding.evidence.get("hot_line")), str(finding.evidence.get("hot_function") or "")
    spots = setting(run, "hotspots")
    found = [own]
    for spot in spots if isinstance(spots, list) else []:
        if isinstance(spot, dict) and _place(spot) == place:
            found += [str(spot.get("function")), *_callers(spot)]
    return list(dict.fromkeys(name for name in found if name))


def _place(spot: dict[str, Any]) -> str:
    return f"{spot.get('file')}:{spot['line']}" if spot.get("line") else str(spot.get("file"))


def _callers(spot: dict[str, Any]) -> list[str]:
    callers = spot.get("callers")
    same = [one for one in callers if isinstance(one, dict)] if isinstance(callers, list) else []
    return [str(one.get("function")) for one in same if one.get("file") == spot.get("file")]
