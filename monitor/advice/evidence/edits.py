"""A remedy as a change to the user's own lines, where the SDK found that they can be changed.

Each hunk begins with "@@ file:line @@"; its lines are indented relative to the first, so that a reader sees
them as in the file and a program can apply them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.advice.context.run import RunContext
from monitor.advice.context.work import Lines, Work, lines

KEPT = "kept"
"""The name for a stored result; the SDK offers no change if the script already uses that name."""
DEEPER = "    "
Edit = tuple[int, int, int, str]
"""Row, column, number of characters to replace, and the replacement."""


def hunk(file: str, line: int, old: list[str], new: list[str]) -> str:
    """Lines of a file, replaced by others."""
    return "\n".join([f"@@ {file}:{line} @@", *(f"- {one}" for one in old), *(f"+ {one}" for one in new)])


def guarded(work: Work | None, every: int) -> str:
    """Does the work only every n-th step; empty if the SDK saw no safe way to write that."""
    if work is None or work.guard is None or not work.counter or work.needed != "no" or work.in_forward:
        return ""
    old = _texts(work.guard)
    new = [f"if {work.counter} % {every} == 0:", *(DEEPER + one for one in old)]
    return hunk(work.file, work.guard.line, old, new)


def hoisted(work: Work) -> str:
    """Makes a call once before the loop and uses its result inside."""
    move = work.hoist
    if move is None or work.in_forward:
        return ""
    before = hunk(work.file, move.loop_line, [move.loop], [f"{KEPT} = {move.call}", move.loop])
    after = hunk(work.file, work.line, [move.code], [move.code.replace(move.call, KEPT)])
    return f"{before}\n{after}"


def removed(file: str, line: int, code: str) -> str:
    return hunk(file, line, [code], [])


def keywords(run: RunContext, site: str, order: Sequence[str] = (), **values: str) -> str:
    """Sets keyword arguments of a call, replacing what is there (also by position, if the `order` is known);
    empty if the call is unknown."""
    raw = run.setting("sites", site)
    if not isinstance(raw, Mapping):
        return ""
    places = arguments(raw, order)
    return _rewritten(raw, [_keyword(raw, places.get(name), name, value) for name, value in values.items()])


def arguments(raw: Mapping[str, Any], order: Sequence[str] = ()) -> dict[str, Any]:
    """Name → place of each argument that stands on one line; by position only if their order is known."""
    by_position, by_name = raw.get("positional"), raw.get("keywords")
    found = dict(zip(order, by_position, strict=False)) if isinstance(by_position, list) else {}
    return found | (dict(by_name) if isinstance(by_name, Mapping) else {})


def text_at(raw: Mapping[str, Any], place: Any) -> str:
    """What stands at a place of a call; empty if it cannot be known."""
    known, at = lines(str(raw.get("file", "")), raw), _numbers(place)
    if known is None or len(at) != len(("row", "column", "width")) or not 0 <= at[0] < len(known.text):
        return ""
    row, column, width = at
    return _texts(known)[row][column : column + width]


def text_before(raw: Mapping[str, Any], place: Any) -> str:
    """What stands before a place, on its line."""
    at = _numbers(place)
    return text_at(raw, [at[0], 0, at[1]]) if at else ""


def first_argument(run: RunContext, site: str, value: str) -> str:
    """Replaces the argument of a call that has only one."""
    raw = run.setting("sites", site)
    given = raw.get("positional") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(given, list) or raw.get("arguments") != 1 or not given:
        return ""
    return _rewritten(raw, [_replacing(given[0], value)])


def _rewritten(raw: Mapping[str, Any], edits: list[Edit | None]) -> str:
    """A call with parts of it replaced; empty if one of them cannot be found."""
    known = lines(str(raw.get("file", "")), raw)
    if known is None or not all(edits):
        return ""
    old = _texts(known)
    new = list(old)
    for row, start, width, text in sorted((edit for edit in edits if edit), reverse=True):
        if not 0 <= row < len(new) or not 0 <= start <= start + width <= len(new[row]):
            return ""
        new[row] = new[row][:start] + text + new[row][start + width :]
    return hunk(known.file, known.line, old, new)


def _keyword(raw: Mapping[str, Any], place: Any, name: str, value: str) -> Edit | None:
    if place is not None:
        return _replacing(place, value)
    end = _numbers(raw.get("end"))
    comma = ", " if raw.get("arguments") else ""
    return (end[0], end[1], 0, f"{comma}{name}={value}") if len(end) == len(("row", "column")) else None


def _replacing(place: Any, value: str) -> Edit | None:
    at = _numbers(place)
    return (at[0], at[1], at[-1], value) if len(at) == len(("row", "column", "width")) else None


def inserted(run: RunContext, *code: str) -> str:
    """Inserts lines below the script's imports; `torch` is written the way the script names it."""
    raw = run.setting("sites", "top")
    if not isinstance(raw, Mapping) or not isinstance(raw.get("line"), int):
        return ""
    name = str(raw.get("torch") or "torch")
    new = [one.replace("torch.", f"{name}.", 1) for one in code]
    return hunk(str(raw.get("file", "")), raw["line"], [], new)


def _numbers(value: Any) -> tuple[int, ...]:
    whole = isinstance(value, list) and all(isinstance(one, int) for one in value)
    return tuple(value) if whole else ()


def _texts(known: Lines) -> list[str]:
    return [" " * max(0, spaces) + text for spaces, text in known.text]
