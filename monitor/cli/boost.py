"""`gpumon boost -- COMMAND…`: the same script, faster, nothing edited.

It starts with the best settings `gpumon try` has verified for it here, or looks for some in blocks of steps
while the script runs. The command runs as always, its exit code is ours. Before and after it we say on stderr
what is done and what it brought.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monitor.cli.launch import command_words, launch_environment, run_child
from monitor.experiments.arm import FREE, Arm
from monitor.experiments.measure import measure
from monitor.experiments.memory import Verified, recall, remember_live
from monitor.experiments.process import Explored, Told, read_told
from monitor.model.errors import UserError
from monitor.model.finding import EFFECT_WORDS
from monitor.model.units import date, gain, gain_range, seconds
from monitor.terminal import Terminal, wrapped
from sdk.knobs.catalog import can_switch
from sdk.ring import default_directory


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "gpumon boost [options] -- COMMAND …"
    parser.add_argument(
        "--allow-numerics", action="store_true", help="also settings that change the training"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")


def run(args: argparse.Namespace) -> int:
    words = command_words(args.words, "boost")
    best = _verified(words, args.allow_numerics)
    _say(_promise(best))
    environment = launch_environment(None)
    with tempfile.TemporaryDirectory(prefix="gpumon-boost-") as folder:
        environment["GPUMON_TRIAL"] = json.dumps({"folder": folder, **_wanted(best)})
        code = run_child([*words, *_arm(best).words], environment)
        told = read_told(Path(folder))
        _say(*_came(best, told, environment["GPUMON_RUN_ID"], code))
    if best is None and told is not None and told.explored is not None:
        remember_live(words, told.explored)
    return code


def _verified(words: list[str], allow_numerics: bool) -> Verified | None:
    best = recall(words)
    if best is not None and best.effect not in FREE and not allow_numerics:
        raise UserError(
            f"{_arm(best).label}: {EFFECT_WORDS[best.effect]}", hint="--allow-numerics accepts that"
        )
    return best


def _wanted(best: Verified | None) -> dict[str, Any]:
    """All is set before the first step; what can be switched while it runs is also compared with none where
    that costs little."""
    if best is None:
        return {"live": []}
    live = [name for name in best.settings if can_switch(name)]
    return {"set": best.settings, "before": best.step_seconds, **({"live": live} if live else {})}


def _promise(best: Verified | None) -> str:
    if best is None:
        return (
            "nothing has been verified for this command here, or its script has changed since: trying "
            "settings while it runs. `gpumon try` finds more, beforehand."
        )
    measured = gain_range(best.low, best.ratio, best.high)
    verified = f"{measured} in trials of {date(best.when)}; {EFFECT_WORDS[best.effect]}"
    return f"{_arm(best).label}: {verified}"


def _arm(best: Verified | None) -> Arm:
    return Arm(best.settings, options=best.options) if best is not None else Arm()


def _came(best: Verified | None, told: Told | None, run_id: str, code: int) -> Iterator[str]:
    """What came of it; what was not applied this time, and why."""
    for name, one in (told.knobs if told is not None else {}).items():
        if one["state"] != "applied":
            yield f"{name} was not applied: {one['why']}"
    if told is not None and told.explored is not None:
        yield from _explored(told.explored, best)
    if code:
        yield f"it ended with exit code {code}; without gpumon it runs as it always did"
    if best is not None and best.step_seconds is not None:
        yield _against_trials(best.step_seconds, run_id)


def _explored(found: Explored, best: Verified | None) -> Iterator[str]:
    """What blocks of steps have shown; what verified settings brought is also said beside their trials."""
    yield from found.notes
    if found.together is not None and found.stays:
        likely, low, high = found.together
        yield f"{' '.join(found.stays)}: {gain_range(low, likely, high)} against blocks of steps without"
    elif best is not None and best.step_seconds is not None:
        return
    elif found.stays:
        yield f"{' '.join(found.stays)}: too few steps were made to say what it brought"
    elif found.tried:
        yield f"tried while it ran, none clearly faster: {', '.join(one['setting'] for one in found.tried)}"
    elif not found.notes:
        yield "too few steps were made to try anything, or nothing can be switched while it runs"


def _against_trials(before: float, run_id: str) -> str:
    measured = measure(Path(default_directory()), run_id)
    if measured is None:
        return "too few steps were made to say what it brought"
    faster = gain(measured.faster_than(before))
    return f"{seconds(measured.period)} a step, {seconds(before)} in the trials as it was: {faster}"


def _say(*lines: str) -> None:
    for line in lines:
        print("\n".join(wrapped(f"gpumon boost: {line}", Terminal(sys.stderr).width)), file=sys.stderr)
