"""The answer of `gpumon try` in words: what was tried line by line, what is best, and how to keep it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from monitor.experiments.arm import FREE, Arm
from monitor.experiments.experiment import Result
from monitor.experiments.study import Answer
from monitor.model.finding import EFFECT_WORDS
from monitor.model.units import gain_range, seconds, signed_size, small_percent, whole
from monitor.terminal import table, wrapped
from sdk.knobs.catalog import KNOBS

CEILING_WORDS = {
    "free.data=on": "if data were free",
    "free.passes=on": "if the passes were free",
    "free.evaluation=on": "if evaluation were free",
    "free.checkpoints=on": "if checkpoints were free",
    "free.logging=on": "if logging were free",
}
INDENT = "   "
INTERVAL = "×2 is twice as fast; in brackets its range, right 19 times out of 20"


def knob_lines() -> Iterator[str]:
    rows = [
        (
            knob.name,
            knob.takes,
            EFFECT_WORDS[Arm({knob.name: ""}).effect] + (f"; not if {knob.unless}" if knob.unless else ""),
        )
        for knob in KNOBS.values()
    ]
    yield table(("knob", "takes", "what it does to the training"), rows)


def answer_lines(answer: Answer, width: int | None) -> Iterator[str]:
    """What was tried, what it brought, what is best, and how to keep it."""
    yield f"── gpumon try  {_name(Path(answer.script or 'the script'))}"
    period = f"{seconds(answer.step_seconds)} a step as it is" if answer.step_seconds is not None else ""
    runs = f" ({_runs(answer.baseline_runs)} of {whole(answer.steps)} steps)." if period else ""
    yield from wrapped(f"{period}{runs} {answer.verdict}".strip(), width, hang="")
    if answer.interrupted:
        yield "Interrupted: these are the results so far."
    yield ""
    yield from _tried(answer, width)
    yield from _not_tried(answer, width)
    yield from _ladder(answer)
    yield from _best(answer, width)


def _name(script: Path) -> str:
    return script.parent.name if script.name == "__main__.py" else script.name


def _runs(count: int) -> str:
    return f"{count} run{'s'[: count != 1]}"


# ── what was tried ───────────────────────────────────────────────────────────────────────────────────


def _tried(answer: Answer, width: int | None) -> Iterator[str]:
    if not answer.results:
        yield from wrapped(
            "Nothing that was found can be fixed from outside; --set names a knob to try, "
            "--knobs lists them.", width, hang="",
        )  # fmt: skip
        yield ""
        return
    yield from wrapped(f"Tried ({INTERVAL}):", width, hang="")
    for count, one in enumerate(answer.results, 1):
        yield from wrapped(f"{count}. {one.arm.label}", width, hang=INDENT)
        yield from _said(one, width)
    if answer.together is not None:
        yield from wrapped(f"Together: {answer.together.arm.label}", width, hang=INDENT)
        yield from _said(answer.together, width)
    yield ""


def _said(result: Result, width: int | None) -> Iterator[str]:
    """Why it was tried, what it brought, and what it did to the training."""
    if result.arm.finding is not None:
        yield from wrapped(result.arm.finding.title, width, INDENT, "")
    for line in (_brought(result), _training(result)) if result.ratio is not None else (result.problem,):
        yield from wrapped(line, width, INDENT, "")


def _brought(result: Result) -> str:
    promise = result.arm.finding.speedup if result.arm.finding is not None else None
    if promise is None:
        return f"{_verdict(result)} {_ratio(result)}"
    predicted = gain_range(promise.low, promise.likely, promise.high)
    return f"{_verdict(result)} {_ratio(result)}, predicted {predicted}"


def _verdict(result: Result) -> str:
    if result.ratio is None or result.ratio.gains:
        return "faster"
    if result.ratio.loses:
        return "slower"
    return "no change" if result.ratio.clear else "not clear"


def _ratio(result: Result) -> str:
    ratio = result.ratio
    return gain_range(ratio.low, ratio.likely, ratio.high) if ratio is not None else result.problem


def _training(result: Result) -> str:
    more = result.device_memory_bytes if result.device_memory_bytes is not None else result.memory_bytes
    memory = f"memory {signed_size(more)}; " if more is not None else ""
    return f"{memory}{_losses(result)}: {EFFECT_WORDS[result.effect]}"


def _losses(result: Result) -> str:
    found = result.losses
    if found.same == "unknown":
        return "losses cannot be compared"
    if found.same == "equal":
        return f"{whole(found.compared)} losses equal"
    if found.same == "rounding":
        return "losses differ by rounding only"
    return f"losses differ by {small_percent(found.largest)}" if found.largest else "losses differ"


def _not_tried(answer: Answer, width: int | None) -> Iterator[str]:
    lines = [
        f"{arm.label}: {EFFECT_WORDS[arm.effect]}; --allow-numerics tries it" for arm in answer.not_tried
    ]
    lines += [
        f"{one.arm.label} is faster, but {EFFECT_WORDS[one.effect]}: --allow-numerics accepts it"
        for one in answer.results
        if one.ratio is not None and one.ratio.gains and one.effect not in FREE and answer.best is not one
    ]
    for line in lines:
        yield from wrapped(f"Not done: {line}", width, hang=INDENT)
    if lines:
        yield ""


def _ladder(answer: Answer) -> Iterator[str]:
    """What each part could bring at the most, the largest first; then what cannot be known, and why."""
    known = sorted(
        (one for one in answer.ceilings if one.ratio is not None),
        key=lambda one: -(one.ratio.likely if one.ratio is not None else 0.0),
    )
    if answer.ceilings:
        yield "At most:"
    for one in (*known, *(one for one in answer.ceilings if one.ratio is None)):
        yield f"{INDENT}{CEILING_WORDS[one.arm.label]:<26}{_ratio(one)}"
    if answer.ceilings:
        yield ""


# ── what is best ─────────────────────────────────────────────────────────────────────────────────────


def _best(answer: Answer, width: int | None) -> Iterator[str]:
    best = answer.best
    if best is None or best.ratio is None:
        for sentence in _nothing(answer):
            yield from wrapped(sentence, width, hang="")
        return
    yield from wrapped(f"Best: {best.arm.label}", width, hang=INDENT)
    yield from wrapped(f"{_ratio(best)}; {EFFECT_WORDS[best.effect]}.", width, INDENT, "")
    if best.settings:
        yield "To keep it in the script:"
    for name, value in best.settings.items():
        yield from wrapped(KNOBS[name].words(value), width, INDENT)
    yield from _changes(answer)
    if best.arm.options:
        yield from wrapped(f"To keep it, add {' '.join(best.arm.words)}; --save FILE writes it down,", width)
    yield from wrapped("or run it with `gpumon boost -- COMMAND`, which edits nothing.", width, hang="")


def _nothing(answer: Answer) -> Iterator[str]:
    """That nothing is clearly faster may be the machine's doing."""
    if answer.interrupted:
        yield "Nothing is clear yet."
        return
    yield "Best: leave it as it is; nothing that was tried is clearly faster."
    open_ = any(one.ratio is not None and not one.ratio.clear for one in answer.results)
    if open_ and answer.noise is not None:
        yield (
            "Not everything is clear: runs with the same settings differ by about "
            f"{small_percent(answer.noise)} here. More --blocks, or less beside it on this machine, would "
            "tell."
        )


def _changes(answer: Answer) -> Iterator[str]:
    """The advice's own changes of the script, where they are what was tried."""
    best = answer.best
    settings = best.arm.settings if best is not None else {}
    for one in answer.results:
        change = one.arm.finding.remedy.change if one.arm.finding is not None else ""
        if change and all(settings.get(name) == value for name, value in one.arm.settings.items()):
            yield textwrap.indent(change, INDENT)
