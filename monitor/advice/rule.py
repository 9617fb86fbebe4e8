"""What a rule is: a file with a docstring and one pure function; being in the folder registers it.

The docstring has a first sentence (what it finds) and the parts ``Looks at:``, ``Why:``, ``Remedy:`` and
``Gain:``; docs/rules.md and the findings' own "why" are generated from it.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from monitor.advice.context.machine import MachineContext
from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Outcomes
from monitor.model.finding import Effect, Finding, Severity, Speedup

Scope = Literal["run", "machine", "closing"]
PARTS = ("Looks at", "Why", "Remedy", "Gain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a rule returns when it fires; the engine turns it into a `Finding`."""

    title: str
    """One clause, without a full stop: what is wrong, with this run's own figures."""
    remedy: str
    detail: str = ""
    """A second clause of the title, shown if there is room for it."""
    change: str = ""
    """The remedy as an applicable diff or a command; empty if only words will do."""
    knobs: Mapping[str, str] = field(default_factory=dict)
    """The remedy as settings that `gpumon try` can make from outside; empty if there are none."""
    effect: Effect | None = None
    """What the remedy does to the training."""
    price: str = ""
    avoid: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    gain: Outcomes | None = None
    """The remedy in terms of the step model, from which the engine predicts."""
    because: str = ""
    """Why the prediction is what it is, as a clause."""
    speedup: Speedup | None = None
    """A prediction made without the step model; it counts only with a `share`."""
    share: float | None = None
    """Share of the step (for set-up: of the run) that the evidence names. No gain exceeds 1 / (1 - share);
    None: the most that `gain` removes."""
    severity: Severity | None = None
    """Fixed severity; None: by predicted gain."""
    rank: int | None = None
    gpu: str | None = None


RunCheck = Callable[[RunContext], "Advice | None"]
MachineCheck = Callable[[MachineContext], "list[Advice]"]
ClosingCheck = Callable[[RunContext, "list[Finding]"], "Advice | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A registered rule."""

    id: str
    cause: str
    """A short name for the cause, for a list or a group: "Memory errors"."""
    scope: Scope
    check: Any
    doc: Mapping[str, str]
    steps: bool
    """About step time: silent until enough steady steps were read without loss."""
    suppresses: tuple[str, ...]
    """Ids (or areas, "input.*") this rule makes redundant when it fires."""
    rank_bonus: float
    """Extra weight in the ranking for a cause that is more specific than its neighbours."""
    settings: tuple[str, ...] = ()
    """What the remedy changes in the configuration probe ("loader.num_workers")."""


def rule(
    id: str,
    cause: str,
    *,
    settings: tuple[str, ...] = (),
    steps: bool = True,
    suppresses: tuple[str, ...] = (),
    bonus: float = 0.0,
) -> Callable[[RunCheck], Rule]:
    """Register a rule about one run."""
    return lambda check: Rule(id, cause, "run", check, _doc(check), steps, suppresses, bonus, settings)


def machine_rule(id: str, cause: str, *, suppresses: tuple[str, ...] = ()) -> Callable[[MachineCheck], Rule]:
    """Register a rule about the machine: GPUs, host, jobs."""
    return lambda check: Rule(id, cause, "machine", check, _doc(check), False, suppresses, 0.0)


def closing_rule(id: str, cause: str) -> Callable[[ClosingCheck], Rule]:
    """Register a rule that runs after the others and knows what they found."""
    return lambda check: Rule(id, cause, "closing", check, _doc(check), True, (), 0.0)


def _doc(check: Callable[..., Any]) -> dict[str, str]:
    """The parts of the docstring of the rule's file."""
    text = sys.modules[check.__module__].__doc__ or ""
    return parse_doc(text)


def parse_doc(text: str) -> dict[str, str]:
    """``{"What": …, "Looks at": …, …}`` from a rule's docstring, each as a single line of text."""
    parts: dict[str, list[str]] = {"What": []}
    current = "What"
    for line in text.strip().splitlines():
        head, colon, tail = line.partition(":")
        if colon and head.strip() in PARTS:
            current = head.strip()
            line = tail
        parts.setdefault(current, []).append(line.strip())
    return {name: " ".join(" ".join(lines).split()) for name, lines in parts.items()}


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule under `monitor.advice.rules`, by id."""
    package = importlib.import_module("monitor.advice.rules")
    found = []
    for module in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        found += [value for value in vars(loaded).values() if isinstance(value, Rule)]
    return tuple(sorted(found, key=lambda one: one.id))
