"""Colours and terms shared by all dashboards. A busy GPU is good news: green is busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.models.dashboard import (
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)

from grafana.rules.model import DOCS, POLICY

CONDITION_COLORS = {
    "active": "#37a35c",
    "starved": "#f2902b",
    "held": "#a352cc",
    "free": "#4b7bab",
    "unknown": "#8e8e8e",
    "lost": "#d6293e",
}
STATE_COLORS = {
    "running": "#37a35c",
    "stalled": "#d6293e",
    "ended": "#4b7bab",
    "failed": "#d6293e",
    "killed": "#a352cc",
}
PHASE_COLORS = {
    "data": "#f2902b",
    "transfer": "#f2cc0c",
    "forward": "#6ea6ff",
    "backward": "#3a70d4",
    "optimizer": "#8f3bb8",
    "between": "#b3652b",
    "validate": "#2fa8a0",
    "checkpoint": "#8a6d3b",
    "log": "#e24d8b",
    "grad_norm": "#c15c17",
    "zero_grad": "#6d8fc9",
    "sync": "#d6293e",
    "other": "#8e8e8e",
}
SEVERITY_COLORS = {"critical": "#d6293e", "warning": "#f2902b", "hint": "#4b7bab", "healthy": "#37a35c"}

Steps = Sequence[tuple[float | None, str]]
BUSY: Steps = ((None, "#d6293e"), (0.3, "#f2902b"), (POLICY.gpu_busy_low, "#37a35c"))
"""For the use of a training GPU."""
FILL: Steps = ((None, "#37a35c"), (POLICY.memory_high, "#f2902b"), (POLICY.memory_full, "#d6293e"))
"""For what should not run full."""
WAIT: Steps = ((None, "#37a35c"), (POLICY.data_share, "#f2902b"), (0.4, "#d6293e"))
"""For a share of time that should be small."""
GAIN: Steps = (
    (None, "#8e8e8e"),
    (POLICY.hint_gain, "#4b7bab"),
    (POLICY.warning_gain, "#f2902b"),
    (1.5, "#d6293e"),
)
"""For a speed-up still available: the higher, the more is wrong now."""
ANY_IS_BAD: Steps = ((None, "#37a35c"), (1e-9, "#d6293e"))
SKEW: Steps = ((None, "#37a35c"), (POLICY.straggler_ratio, "#f2902b"), (1.5, "#d6293e"))
TREND: Steps = ((None, "#d6293e"), (POLICY.trend_ratio, "#f2902b"), (0.95, "#37a35c"))
PLAIN: Steps = ((None, "#4b7bab"),)


def thresholds(steps: Steps) -> ThresholdsConfig:
    found = [Threshold(value=value, color=color) for value, color in steps]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found)


def by_threshold() -> FieldColor:
    return FieldColor().mode(FieldColorModeId.THRESHOLDS)


def fixed(color: str) -> list[DynamicConfigValue]:
    """Override properties that give a series its colour."""
    return [DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": color})]


def words(texts: Mapping[str, str], colors: Mapping[str, str] | None = None) -> ValueMap:
    """A value mapping: raw value → displayed text."""
    pairs = {
        raw: ValueMappingResult(text=text, color=(colors or {}).get(raw), index=index)
        for index, (raw, text) in enumerate(texts.items())
    }
    return ValueMap(options=pairs)


def finding_words() -> ValueMap:
    """Advice rule id → what it finds, in its own words, so that no series has to carry them."""
    return words({id: doc["What"].rstrip(".") for id, doc in DOCS.items()})


def remedy_words() -> ValueMap:
    return words({id: _first_upper(doc["Remedy"]) for id, doc in DOCS.items()})


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
