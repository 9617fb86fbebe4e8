"""Writes families as Prometheus text or OpenMetrics, byte for byte as prometheus-client would.

The client builds objects and takes 7–9 µs per series; here lines are kept between renderings, so a series
costs a lookup, plus formatting a number if it changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate, groupby, repeat, zip_longest
from operator import attrgetter
from typing import NamedTuple

from prometheus_client.utils import floatToGoString

from monitor.model.run import Exemplar
from monitor.web.families.base import Column, Distribution, Family, Labels, Sample, Scene

Seen = tuple[list[Labels], tuple[object, ...]]
"""A column: the labels of its rows, and its values."""
Line = tuple[str, float, str]
"""The text before the value, the value, and the whole line."""
EOF = "# EOF\n"
LEAST_PLAIN, MOST_PLAIN = -1e300, 1e6
"""Between these the client formats as Python does."""
MOST_EXEMPLAR_LETTERS = 128
"""OpenMetrics' limit on all label names and values of an exemplar together."""


class Kept(NamedTuple):
    """A family as last rendered."""

    seen: Seen | list[Sample]
    """What its text is made of: its column, or its samples if it has none."""
    lines: dict[Labels, Line]
    text: str


class Histogram(NamedTuple):
    """One histogram as last rendered."""

    distribution: Distribution
    prefixes: tuple[str, ...]
    """The text before each value."""
    text: str


class Table:
    """Fetches all columns of the GPUs, or of the ranks, by one call per row. Most are those of a second ago,
    and their families need not be read."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self._columns = tuple(columns)
        paths = [column.path for column in self._columns]
        self._get = attrgetter(*paths, paths[0])  # with a single path it would not return a tuple
        self._rows = attrgetter(self._columns[0].rows)
        self._labels: list[Labels] = []
        """The same object for as long as they are equal, which makes comparing them cheap."""

    def read(self, scene: Scene) -> dict[Column, Seen]:
        """Every column with the labels of its rows."""
        rows = self._rows(scene)
        labels = [labels for labels, _ in rows]
        if labels != self._labels:
            self._labels = labels
        columns = zip(*[self._get(row) for _, row in rows], strict=True) if rows else repeat(())
        return {one: (self._labels, column) for one, column in zip(self._columns, columns, strict=False)}


def _tables(families: Iterable[Family]) -> list[Table]:
    columns = sorted({family.column for family in families if family.column is not None})
    return [Table(group) for _, group in groupby(columns, attrgetter("rows"))]


class Writer:
    """Renders scenes in one format. Keeps only the lines of the last rendering: a series that vanishes is
    forgotten with its line."""

    def __init__(self, families: Iterable[Family], *, openmetrics: bool) -> None:
        self.openmetrics = openmetrics
        self._families = tuple(families)
        self._headers = {family.name: _header(family, openmetrics) for family in self._families}
        self._tables = _tables(self._families)
        self._kept: dict[str, Kept] = {}
        self._histograms: dict[str, dict[Labels, Histogram]] = {}
        self._without_runs = tuple(family for family in self._families if not family.of_runs)
        self._had_runs = True

    def render(self, scene: Scene) -> bytes:
        columns: dict[Column, Seen] = {}
        for table in self._tables:
            columns |= table.read(scene)
        parts = [self._text(family, scene, columns) for family in self._asked(scene)]
        if self.openmetrics:
            parts.append(EOF)
        return "".join(parts).encode()

    def _asked(self, scene: Scene) -> tuple[Family, ...]:
        """The families that may have series: a quarter are about runs, and a machine at rest has none."""
        if scene.runs:
            self._had_runs = True
            return self._families
        if self._had_runs:
            self._had_runs = False
            for family in self._families:
                if family.of_runs:
                    self._kept.pop(family.name, None)
                    self._histograms.pop(family.name, None)
        return self._without_runs

    def _text(self, family: Family, scene: Scene, columns: Mapping[Column, Seen]) -> str:
        """The family with its header; nothing if it has no series."""
        if family.distributions is not None:
            return self._histogram_text(family, family.distributions(scene))
        kept = self._kept.get(family.name)
        seen = columns[family.column] if family.column else list(family.read(scene))
        if kept is None or seen != kept.seen:
            samples = seen if isinstance(seen, list) else family.read(scene)
            kept = self._kept[family.name] = self._write(family, seen, samples, kept.lines if kept else {})
        return kept.text

    def _write(
        self,
        family: Family,
        seen: Seen | list[Sample],
        samples: Iterable[Sample],
        old: dict[Labels, Line],
    ) -> Kept:
        """Most readings equal those of a second ago: their whole line is reused."""
        lines: dict[Labels, Line] = {}
        for labels, value in samples:
            if value is None:
                continue
            line = old.get(labels)
            if line is None:
                prefix = f"{family.name}{braces(family.labels, labels)} "
                line = (prefix, value, f"{prefix}{number(value)}\n")
            elif line[1] != value:
                line = (line[0], value, f"{line[0]}{number(value)}\n")
            lines[labels] = line
        text = "".join([line[2] for line in lines.values()])
        return Kept(seen, lines, self._headers[family.name] + text if text else "")

    def _histogram_text(self, family: Family, distributions: Iterable[Distribution]) -> str:
        old = self._histograms.get(family.name, {})
        kept = {one.labels: self._histogram(family, one, old.get(one.labels)) for one in distributions}
        self._histograms[family.name] = kept
        return self._headers[family.name] + "".join([one.text for one in kept.values()]) if kept else ""

    def _histogram(self, family: Family, one: Distribution, before: Histogram | None) -> Histogram:
        if before is not None and before.distribution == one:
            return before
        prefixes = before.prefixes if before is not None else _bucket_prefixes(family, one.labels)
        totals = [number(total) for total in accumulate(one.counts)]
        exemplars = one.exemplars if self.openmetrics else ()
        parts = [
            f"{prefix}{total}{_example(one, exemplar) if exemplar else ''}\n"
            for prefix, total, exemplar in zip_longest(prefixes[:-2], totals, exemplars)
        ]
        ending = f"{prefixes[-2]}{totals[-1]}\n{prefixes[-1]}{number(one.sum)}\n"
        return Histogram(one, prefixes, "".join([*parts, ending]))


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
