"""A page for every rule: what it looks at, why it matters, the remedy and its price, how the gain is predicted,
and how often it was right on the benchmark's scripts. All of it is read from the rule and from files on disk."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

from monitor.advice.docs import AREAS
from monitor.advice.rule import Rule, all_rules
from monitor.model.finding import EFFECT_WORDS, Effect
from monitor.model.units import gain, gain_range

RESULTS = Path(__file__).parents[2] / "benchmarks"
PARTS = {
    "Looks at": "Evidence",
    "Why": "Why it matters",
    "Remedy": "Remedy",
}
"""Part of a rule's docstring → heading of the page."""


def pages() -> dict[str, str]:
    """Path on the site → text."""
    made = {f"findings/{rule.id}.md": "\n".join(_page(rule)) + "\n" for rule in all_rules()}
    return {"findings/index.md": "\n".join(_index()) + "\n", **made}


def menu() -> list[object]:
    """What the site's menu lists under Findings."""
    entries: list[object] = [{"All findings": "findings/index.md"}, {"Rules and thresholds": "rules.md"}]
    for area, title in AREAS.items():
        entries.append({title: [{rule.id: f"findings/{rule.id}.md"} for rule in _of(area)]})
    return entries


def _of(area: str) -> list[Rule]:
    return [rule for rule in all_rules() if rule.id.partition(".")[0] == area]


def _index() -> Iterator[str]:
    yield from ("# Findings", "", f"What gpumon can name: {len(all_rules())} findings, a page each.", "")
    for area, title in AREAS.items():
        yield from (f"## {title}", "", "| finding | what it says |", "|---|---|")
        yield from (f"| [`{rule.id}`]({rule.id}.md) | {rule.doc['What']} |" for rule in _of(area))
        yield ""


def _page(rule: Rule) -> Iterator[str]:
    yield from (f"# {rule.cause}", "", f"`{rule.id}`", "", rule.doc["What"], "")
    for part, heading in PARTS.items():
        if part in rule.doc:
            yield from (f"## {heading}", "", _sentence(rule.doc[part]), "")
    yield from _price(rule)
    yield from ("## How the gain is predicted", "", _sentence(rule.doc.get("Gain", "none.")), "")
    yield "See [what a prediction is](../advice.md#what-a-prediction-is)."
    yield from ("", "## Track record", "", *_record(rule), "")
    yield from ("## When it is silent", "", *_silence(rule))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _price(rule: Rule) -> Iterator[str]:
    """What the remedy does to the training, what it costs and what not to do, as the rule's code says it."""
    said = {name: _constants(rule, name) for name in ("effect", "price", "avoid")}
    effects = [EFFECT_WORDS[one] for one in get_args(Effect) if one in said["effect"]]
    if not any(said.values()):
        return
    yield from ("## Price", "")
    if effects:
        yield f"- Effect: {', or '.join(effects)}."
    yield from (f"- {_sentence(one).rstrip('.')}." for one in said["price"])
    yield from (f"- Not: {one[:1].lower()}{one[1:].rstrip('.')}." for one in said["avoid"])
    yield ""


def _constants(rule: Rule, name: str) -> list[str]:
    """Texts that the rule's file gives as this keyword."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(rule.check) or rule.check))
    given = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == name]
    texts = [node.value for value in given for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return list(dict.fromkeys(text for text in texts if isinstance(text, str) and text))


@cache
def _results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _record(rule: Rule) -> Iterator[str]:
    """Its cases in the diagnosis benchmark; a file with another date says another thing."""
    results = _results("diagnosis")
    cases = [case for case in results["cases"] if rule.id in case["expected"]]
    device = [
        name for name, case in _results("diagnosis-gpu")["cases"].items() if case["expected"] == rule.id
    ]
    if not cases and not device:
        yield "No script of the benchmark has this cause: it is covered by unit tests only."
        return
    if cases:
        yield f"On the scripts of the [diagnosis benchmark](../benchmarks/diagnosis.md), {results['date']}:"
        yield from (
            "",
            "| script | named first | predicted | realised | inside the range |",
            "|---|---|---|---|---|",
        )
        yield from map(_case, cases)
    if device:
        yield from ("", f"With the NVML stand-in: named in {', '.join(device)}; no real GPU was measured.")


def _case(case: dict[str, Any]) -> str:
    promised = case["predicted"]
    predicted = gain_range(promised["low"], promised["likely"], promised["high"]) if promised else "–"
    inside = {True: "yes", False: "no", None: "–"}[case["inside"]]
    held = " (held out)" if case["held_out"] else ""
    first = "yes" if case["top1"] else "no"
    realised = gain(case["realised"]) if case["realised"] else "–"
    return f"| {case['script']}{held} | {first} | {predicted} | {realised} | {inside} |"


def _silence(rule: Rule) -> Iterator[str]:
    if rule.steps:
        yield "Until enough steady steps were read, or when too many were lost."
    else:
        yield "It needs no step times; it is silent where a reading it needs is missing."
    if rule.suppresses:
        yield from ("", f"When it speaks, it silences {', '.join(f'`{one}`' for one in rule.suppresses)}.")
