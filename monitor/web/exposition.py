"""Writes families as Prometheus text or OpenMetrics.

prometheus-client builds objects and costs 7–9 µs a series; here the lines are kept from one rendering
to the next, so a series costs a look-up, and a `repr` when it changed. The tests parse the result with
prometheus-client and `promtool`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from monitor.snapshot import Exemplar
from monitor.web.families.base import Distribution, Family, Labels, Scene

TEXT = "text/plain; version=0.0.4; charset=utf-8"
Line = tuple[str, float, str]
"""The text before the value, the value, the whole line."""
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Writer:
    """Renders scenes in one format. Keeps the lines of the series it wrote last, and only those: a
    series that vanishes is forgotten with its line."""

    def __init__(self, families: Iterable[Family], *, openmetrics: bool) -> None:
        self.openmetrics = openmetrics
        self._families = tuple(families)
        self._headers = {family.name: _header(family, openmetrics) for family in self._families}
        self._lines: dict[str, dict[Labels, Line]] = {family.name: {} for family in self._families}
        self._buckets: dict[str, dict[Labels, tuple[str, ...]]] = {}

    def render(self, scene: Scene) -> bytes:
        parts: list[str] = []
        for family in self._families:
            before = len(parts)
            parts.append(self._headers[family.name])
            if family.distributions is None:
                self._samples(family, scene, parts)
            else:
                self._histograms(family, family.distributions(scene), parts)
            if len(parts) == before + 1:
                del parts[before]
        if self.openmetrics:
            parts.append("# EOF\n")
        return "".join(parts).encode()

    def _samples(self, family: Family, scene: Scene, parts: list[str]) -> None:
        """Most readings are the same as a second ago: their whole line is used again."""
        old = self._lines[family.name]
        kept: dict[Labels, Line] = {}
        for labels, value in family.read(scene):
            if value is None:
                continue
            line = old.get(labels)
            if line is None:
                prefix = f"{family.name}{braces(family.labels, labels)} "
                line = (prefix, value, f"{prefix}{number(value)}\n")
            elif line[1] != value:
                line = (line[0], value, f"{line[0]}{number(value)}\n")
            kept[labels] = line
            parts.append(line[2])
        self._lines[family.name] = kept

    def _histograms(self, family: Family, distributions: Iterable[Distribution], parts: list[str]) -> None:
        old = self._buckets.get(family.name, {})
        kept: dict[Labels, tuple[str, ...]] = {}
        for one in distributions:
            prefixes = old.get(one.labels) or _bucket_prefixes(family, one.labels)
            kept[one.labels] = prefixes
            total = 0
            for index, count in enumerate(one.counts):
                total += count
                parts.append(f"{prefixes[index]}{total}{self._exemplar(one, index)}\n")
            parts.append(f"{prefixes[-2]}{number(one.sum)}\n{prefixes[-1]}{total}\n")
        self._buckets[family.name] = kept

    def _exemplar(self, one: Distribution, index: int) -> str:
        """`` # {run="…",step="…"} seconds time`` behind a bucket, in OpenMetrics only."""
        exemplar: Exemplar | None = (
            one.exemplars[index] if self.openmetrics and index < len(one.exemplars) else None
        )
        if exemplar is None:
            return ""
        labels = (*one.exemplar_labels, ("step", str(exemplar.step)))
        if sum(len(name) + len(value) for name, value in labels) > 128:
            return ""  # OpenMetrics allows 128 characters in all
        names, values = zip(*labels, strict=True)
        return f" # {braces(names, values)} {number(exemplar.seconds)} {exemplar.time:.3f}"


def number(value: float) -> str:
    """A value as Prometheus reads it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    return repr(value)


def braces(names: tuple[str, ...], values: Labels) -> str:
    if not names:
        return ""
    return "{" + ",".join(f'{n}="{escape(v)}"' for n, v in zip(names, values, strict=True)) + "}"


def escape(value: str) -> str:
    """A label value: backslash, quote and newline escaped, what is not text replaced."""
    if not value.isprintable() or "\\" in value or '"' in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        value = value.encode("utf-8", "replace").decode().replace("\r", " ").replace("\0", " ")
    return value


def _bucket_prefixes(family: Family, labels: Labels) -> tuple[str, ...]:
    """One per bound, then +Inf, then sum and count."""
    bounds = [*(repr(float(bound)) for bound in family.bounds), "+Inf"]
    names = (*family.labels, "le")
    buckets = [f"{family.name}_bucket{braces(names, (*labels, bound))} " for bound in bounds]
    plain = braces(family.labels, labels)
    return (*buckets, f"{family.name}_sum{plain} ", f"{family.name}_count{plain} ")


def _header(family: Family, openmetrics: bool) -> str:
    name = family.base if openmetrics else family.name
    kind = "gauge" if family.kind == "info" and not openmetrics else family.kind
    text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    if openmetrics:
        text = text.replace('"', '\\"')
    unit = f"# UNIT {name} {family.unit}\n" if openmetrics and family.unit else ""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{unit}"
