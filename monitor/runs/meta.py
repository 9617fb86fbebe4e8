"""The meta JSON of a ring, sanitized: right types, bounded lengths, nothing else."""

from __future__ import annotations

import math
import string
from typing import Any

from msgspec import Struct, field

from monitor.runs.criticality import Places, read_places
from sdk import ring

_TEXT = 512
_ITEMS = 256
"""Our choices: how many characters of a text and entries of a list are kept."""
_ID = frozenset(string.ascii_letters + string.digits + "._-:")


class Meta(Struct, frozen=True):
    run: str
    kind: str
    rank: int
    name: str
    world: int = 1
    local_rank: int | None = None
    batch_size: int | None = None
    worker_id: int | None = None
    texts: dict[str, str] = field(default_factory=dict)
    phase_names: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    delays: Places = ()
    """What a probe's delays have shown."""

    def text(self, key: str) -> str | None:
        return self.texts.get(key)


EVALUATING, PLAYING = "validate", "rollout"

TEXTS = (
    "host", "container", "pod", "slurm_job", "git_commit", "command", "script", "sdk_version", "way",
    "framework",
    "device", "device_uuid", "error",
)  # fmt: skip


def parse_meta(raw: dict[str, Any]) -> Meta:
    """Raises `RingError` when there is no usable run id; everything else is optional."""
    run = raw.get("run")
    if not isinstance(run, str) or not 0 < len(run) <= 128 or not set(run) <= _ID:
        raise ring.RingError("meta without a usable run id")
    kind = ring.KIND_WORKER if raw.get("kind") == ring.KIND_WORKER else ring.KIND_TRAINER
    config = raw.get("config")
    return Meta(
        run=run,
        kind=kind,
        rank=_whole(raw.get("rank"), 1 << 20) or 0,
        name=_text(raw.get("name")) or run,
        world=_whole(raw.get("world"), 1 << 20) or 1,
        local_rank=_whole(raw.get("local_rank"), 1 << 20),
        batch_size=_whole(raw.get("batch_size"), 1 << 40),
        worker_id=_whole(raw.get("worker_id"), 1 << 20),
        texts={key: text for key in TEXTS if (text := _text(raw.get(key)))},
        phase_names=_phase_names(kind, raw.get("phases"), config),
        scalars=_names(raw.get("scalars"), ring.SCALARS),
        config=clean(config) if isinstance(config, dict) else {},
        delays=read_places(raw.get("delays")),
    )


def clean(value: Any, depth: int = 8) -> Any:
    """Untrusted JSON, made safe to encode again: no lone surrogates, huge numbers or deep nesting."""
    if isinstance(value, dict) and depth:
        pairs = list(value.items())[:_ITEMS]
        return {_text(key, 128) or "": clean(inner, depth - 1) for key, inner in pairs}
    if isinstance(value, list) and depth:
        return [clean(inner, depth - 1) for inner in value[:_ITEMS]]
    if isinstance(value, str):
        return _text(value, 4 * _TEXT) or ""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else None
    return None


def _whole(value: Any, limit: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        return None
    return value


def _text(value: Any, limit: int = _TEXT) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    clean = "".join(char if char.isprintable() else " " for char in value[: 4 * limit])
    return clean.encode("utf-8", "replace").decode()[:limit].strip() or None


def _names(value: Any, limit: int) -> tuple[str, ...]:
    """Names in table order; an unusable one still keeps its place."""
    if not isinstance(value, list):
        return ()
    return tuple(_text(name, 64) or f"unnamed_{at}" for at, name in enumerate(value[:limit]))


def _phase_names(kind: str, own: Any, config: Any) -> tuple[str, ...]:
    """A name for each of the 16 phase ids; user-defined phases start at 12. What was recorded as evaluation
    is called what it is if the training learns from all of it: an agent plays in a hand-made environment."""
    fixed = ring.WORKER_PHASES if kind == ring.KIND_WORKER else ring.PHASES
    names = [*fixed, *(f"phase_{at}" for at in range(len(fixed), ring.PHASE_SLOTS))]
    if kind == ring.KIND_TRAINER:
        for at, name in enumerate(_names(own, ring.PHASE_SLOTS - len(ring.PHASES))):
            names[len(ring.PHASES) + at] = name
        if PLAYING not in names and _feeds(config):
            names[names.index(EVALUATING)] = PLAYING
    return tuple(names)


def _feeds(config: Any) -> bool:
    """Whether all calls of a model in evaluations that were seen lead to the loss of a later step."""
    work = config.get("work") if isinstance(config, dict) else None
    pieces = [one for one in work if isinstance(one, dict)] if isinstance(work, list) else []
    asked = [one for one in pieces if one.get("phase") == EVALUATING and one.get("module") is True]
    return bool(asked) and all(one.get("feeds") is True for one in asked)
