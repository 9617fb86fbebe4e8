"""Asks a Prometheus what a dashboard would ask: variables filled, every panel, mark and variable.

Used by the proof that every query works and by the preview; Grafana itself is not needed.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Board = dict[str, Any]
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{(\w+)(?::\w+)?\})")
"""`$1` is not one: it is a group of label_replace."""
_LABEL_VALUES = re.compile(r"label_values\((?P<series>.+),\s*(?P<label>\w+)\)")


class QueryError(RuntimeError):
    """Prometheus refused a query; the message is its own."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time range a dashboard shows, and the rate interval that fits the scrape interval."""

    start: float
    end: float
    step: float
    rate: str = "10s"

    def builtin(self) -> dict[str, str]:
        seconds = max(1, round(self.end - self.start))
        return {
            "__range": f"{seconds}s",
            "__range_s": str(seconds),
            "__rate_interval": self.rate,
            "__interval": f"{max(1, round(self.step))}s",
        }


class Prometheus:
    """The questions Grafana asks."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def instant(self, expr: str, at: float) -> list[dict[str, Any]]:
        return list(self._get("query", query=expr, time=f"{at:.3f}")["result"])

    def range(self, expr: str, span: Span) -> list[dict[str, Any]]:
        times = {"start": f"{span.start:.3f}", "end": f"{span.end:.3f}", "step": f"{span.step:g}"}
        return list(self._get("query_range", query=expr, **times)["result"])

    def label_values(self, series: str, label: str, span: Span) -> list[str]:
        found = self._get(
            "series", **{"match[]": series, "start": f"{span.start:.3f}", "end": f"{span.end:.3f}"}
        )
        return sorted({one[label] for one in found if label in one})

    def exemplars(self, expr: str, span: Span) -> list[dict[str, Any]]:
        times = {"start": f"{span.start:.3f}", "end": f"{span.end:.3f}"}
        return list(self._get("query_exemplars", query=expr, **times))

    def alerts(self, name: str) -> list[dict[str, Any]]:
        """Alerts of that name that are pending or firing, with their texts."""
        return [one for one in self._get("alerts")["alerts"] if one["labels"]["alertname"] == name]

    def _get(self, path: str, **query: str) -> Any:
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(json.loads(error.read()).get("error", str(error))) from error


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with its variables replaced; one that nobody gave a value is a mistake."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in values:
            raise QueryError(f"nothing defines ${name}")
        return values[name]

    return _VARIABLE.sub(value, text)


def panels(board: Board) -> Iterator[dict[str, Any]]:
    """Every panel that shows something, those of collapsed rows too."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", [])
        else:
            yield panel


def settle(board: Board, prometheus: Prometheus, span: Span, chosen: Mapping[str, str]) -> dict[str, str]:
    """Values of all variables: the chosen one, "all", or the first the query gives."""
    values = {"datasource": "prometheus", **span.builtin()}
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        name = variable["name"]
        offered = options(variable, prometheus, span, values)
        if not offered:
            raise QueryError(f"the variable ${name} offers nothing: {variable['query']}")
        values[name] = chosen.get(name) or (variable["allValue"] if variable["includeAll"] else offered[0])
    return values


def options(
    variable: Mapping[str, Any], prometheus: Prometheus, span: Span, values: Mapping[str, str]
) -> list[str]:
    match = _LABEL_VALUES.fullmatch(variable["query"])
    if match is None:
        raise QueryError(f"not a label_values query: {variable['query']}")
    return prometheus.label_values(fill(match["series"], values), match["label"], span)


def answer(
    target: Mapping[str, Any], prometheus: Prometheus, span: Span, values: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What Prometheus says to one target of a panel; each series with ``name`` as its legend."""
    expr = fill(target["expr"], values)
    found = prometheus.instant(expr, span.end) if target.get("instant") else prometheus.range(expr, span)
    return [{**one, "name": legend(target, one["metric"])} for one in found]


def legend(target: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    template = target.get("legendFormat", "")
    if template in ("", "__auto"):
        return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), template)
