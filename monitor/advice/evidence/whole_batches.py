"""The change that makes a loader take whole batches: written into the user's own `DataLoader(…)` call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits

NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
"""An expression that may stand twice: it names something and calls nothing."""
CALLED = re.compile(r"(?P<module>[A-Za-z_][\w.]*\.)?DataLoader\($")
ORDER = ("dataset", "batch_size", "shuffle")
"""Of the arguments by position."""
SAFE = {
    *ORDER, "sampler", "drop_last", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor",
    "timeout", "worker_init_fn",
}  # fmt: skip
"""With any other argument (a generator, a collate function) the call is described, not changed."""


def batch_sampler(run: RunContext) -> str:
    """The call with its batch size given to a batch sampler; empty where that cannot be written safely."""
    raw = run.setting("sites", "loader")
    if not isinstance(raw, Mapping):
        return ""
    places = edits.arguments(raw, ORDER)
    given = {name: edits.text_at(raw, place) for name, place in places.items()}
    module = _module(raw, places.get("dataset"))
    known = raw.get("arguments") == len(given) and given.keys() <= SAFE
    if not known or module is None or not NAME.fullmatch(given.get("dataset", "")):
        return ""
    values = _values(given, module)
    return edits.keywords(run, "loader", ORDER, **values) if values else ""


def _values(given: dict[str, str], module: str) -> dict[str, str]:
    """Argument → value in the changed call; nothing if the source does not show the order of the rows."""
    size, shuffle = given.get("batch_size", ""), given.get("shuffle", "False")
    if not size or shuffle not in ("True", "False"):
        return {}
    kind = "RandomSampler" if shuffle == "True" else "SequentialSampler"
    rows = given.get("sampler") or f"{module}{kind}({given['dataset']})"
    values = {
        "batch_size": "None",
        "sampler": f"{module}BatchSampler({rows}, {size}, {given.get('drop_last', 'False')})",
    }
    return values | {name: "False" for name in ("shuffle", "drop_last") if name in given}


def _module(raw: Mapping[str, Any], first: Any) -> str | None:
    """What stands before the samplers' names: the module of the user's own call, or that of his torch."""
    called = CALLED.search(edits.text_before(raw, first).rstrip())
    if called is None:
        return None
    if called["module"]:
        return str(called["module"])
    return f"{raw['torch']}.utils.data." if raw.get("torch") else None
