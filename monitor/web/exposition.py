"""Writes families as Prometheus text or OpenMetrics, byte for byte as prometheus-client would.

The client builds objects and takes 7–9 µs per series; here lines are kept between renderings, so a series
costs a lookup, plus formatting a number if it changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, zip_longest

from prometheus_client.utils import floatToGoString

from monitor.model.run import Exemplar
from monitor.web.families.base import Distribution, Family, Labels, Scene

Line = tuple[str, float, str]
"""The text before the value, the value, and the whole line."""
EOF = "# EOF\n"
LEAST_PLAIN, MOST_PLAIN = -1e300, 1e6
"""Between these the client formats as Python does."""
MOST_EXEMPLAR_LETTERS = 128
"""OpenMetrics' limit on all label names and values of an exemplar together."""


class Writer:
    """Renders scenes in one format. Keeps only the lines of the last rendering: a series that vanishes is
    forgotten with its line."""

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
            parts.append(EOF)
        return "".join(parts).encode()

    def _samples(self, family: Family, scene: Scene, parts: list[str]) -> None:
        """Most readings equal those of a second ago: their whole line is reused."""
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
            totals = [number(total) for total in accumulate(one.counts)]
            exemplars = one.exemplars if self.openmetrics else ()
            for prefix, total, exemplar in zip_longest(prefixes[:-2], totals, exemplars):
                parts.append(f"{prefix}{total}{_example(one, exemplar) if exemplar else ''}\n")
            parts.append(f"{prefixes[-2]}{totals[-1]}\n{prefixes[-1]}{number(one.sum)}\n")
        self._buckets[family.name] = kept


def _example(one: Distribution, exemplar: Exemplar) -> str:
    """`` # {run="…",step="…"} seconds time`` after a bucket, in OpenMetrics only."""
    labels = exemplar_labels(one, exemplar)
    if not labels:
        return ""
    names, values = zip(*labels, strict=True)
    return f" # {braces(names, values)} {number(exemplar.seconds)} {round(exemplar.time, 3)}"


def exemplar_labels(one: Distribution, exemplar: Exemplar) -> tuple[tuple[str, str], ...]:
    """The labels of a bucket's exemplar; none if they are too long."""
    pairs = (*one.exemplar_labels, ("step", str(exemplar.step)))
    labels = tuple((name, clean(value)) for name, value in pairs)
    return labels if sum(len(name) + len(value) for name, value in labels) <= MOST_EXEMPLAR_LETTERS else ()


def number(value: float) -> str:
    """A value as Prometheus reads it, formatted as the client formats it."""
    value = float(value)
    return repr(value) if LEAST_PLAIN < value < MOST_PLAIN else str(floatToGoString(value))


def braces(names: tuple[str, ...], values: Labels) -> str:
    """Labels in the order of their names, as the client writes them."""
    if not names:
        return ""
    pairs = sorted(zip(names, values, strict=True))
    return "{" + ",".join(f'{name}="{escape(clean(value))}"' for name, value in pairs) + "}"


def clean(value: str) -> str:
    """A label value with non-text replaced: strangers name runs and scalars."""
    if value.isprintable():
        return value
    return value.encode("utf-8", "replace").decode().replace("\r", " ").replace("\0", " ")


def escape(value: str) -> str:
    """Backslash, quote and newline escaped."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def bucket_bounds(family: Family) -> list[str]:
    return [*(number(bound) for bound in family.bounds), "+Inf"]


def _bucket_prefixes(family: Family, labels: Labels) -> tuple[str, ...]:
    """One per bound, then +Inf, then count and sum."""
    names = (*family.labels, "le")
    bounds = bucket_bounds(family)
    buckets = [f"{family.name}_bucket{braces(names, (*labels, bound))} " for bound in bounds]
    plain = braces(family.labels, labels)
    return (*buckets, f"{family.name}_count{plain} ", f"{family.name}_sum{plain} ")


def _kind(family: Family, openmetrics: bool) -> str:
    """Prometheus text has no "info"; OpenMetrics does not allow another exporter's counter without _total."""
    if family.kind == "info" and not openmetrics:
        return "gauge"
    foreign = family.kind == "counter" and not family.name.endswith("_total")
    return "unknown" if foreign and openmetrics else family.kind


def _header(family: Family, openmetrics: bool) -> str:
    name = family.base if openmetrics else family.name
    kind = _kind(family, openmetrics)
    text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    if openmetrics:
        text = text.replace('"', '\\"')
    unit = f"# UNIT {name} {family.unit}\n" if openmetrics and family.unit else ""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{unit}"
