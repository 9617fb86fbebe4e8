"""A script's arguments, and which of them differ between two runs."""

from __future__ import annotations

import os
from typing import Any

from monitor.comparison.settings import setting
from monitor.model.finding import Finding
from monitor.model.run import Run

Arguments = dict[str, str]
"""Option → its value ("" for a bare flag); positional words are named by their position."""


def arguments(run: Run) -> Arguments | None:
    """What follows the script on the command line; None if unknown."""
    if run.command is None or run.script is None:
        return None
    words = run.command.split()
    script = os.path.basename(run.script)
    at = next((place for place, word in enumerate(words) if os.path.basename(word) == script), None)
    return _parsed(words[at + 1 :] if at is not None else words[1:])


def _parsed(words: list[str]) -> Arguments:
    found: Arguments = {}
    option = ""
    for place, word in enumerate(words):
        if word.startswith("-"):
            option, _, value = word.partition("=")
            found[option] = value
            option = "" if value else option
        else:
            found[option or f"#{place}"] = word
            option = ""
    return found


def given(name: str, text: str) -> str:
    """As it stood on the command line: the position of a word is no part of it."""
    return text if name.startswith("#") else f"{name} {text}".strip()


def differing(a: Run, b: Run) -> dict[str, tuple[str | None, str | None]]:
    """Option → its value in each run, where they differ; empty if either run's are unknown."""
    before, after = arguments(a), arguments(b)
    if before is None or after is None:
        return {}
    names = dict.fromkeys([*before, *after])
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def made_by_remedy(finding: Finding, a: Run, b: Run) -> bool:
    """Whether all differing arguments are just the finding's own remedy: `--workers 4` where
    `loader.num_workers` became 4. How long a run trains is not a remedy."""
    paths = [path.split(".") for path in finding.remedy.settings]
    pairs = [(setting(a, *keys), setting(b, *keys)) for keys in paths]
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    return all(_gives(pair, changed) for pair in differing(a, b).values())


def _gives(pair: tuple[str | None, str | None], changed: list[tuple[Any, Any]]) -> bool:
    """An option missing on one side only gives the other's value; a flag switches something on or off."""
    before, after = pair
    if "" in pair:
        return any(isinstance(value, bool) for values in changed for value in values)
    return any(
        (before is None or before == str(one)) and (after is None or after == str(two))
        for one, two in changed
    )
