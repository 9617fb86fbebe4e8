"""Each dashboard as one picture, drawn with matplotlib.

The panels are drawn from a real Prometheus's answers to the dashboards' own queries, at the dashboards' own
places. It is a preview, not a Grafana screenshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from docs.tools.grafana_preview.answers import Board, Prometheus, Span, answer, panels, settle
from docs.tools.grafana_preview.charts import DRAW, FAINT, INK, PANEL, right_axis
from docs.tools.grafana_preview.tables import table
from grafana.build import HERE

UNIT_W, UNIT_H, HEAD, DPI = 0.75, 0.36, 0.75, 80
GROUND = "#111217"
LABEL = "preview, not a Grafana screenshot: drawn with matplotlib from Prometheus's answers to this dashboard's queries"


def sheet(
    board: Board, prometheus: Prometheus, span: Span, chosen: Mapping[str, str], note: str = ""
) -> Figure:
    """The whole dashboard as one figure."""
    values = settle(board, prometheus, span, chosen)
    lines = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in [*board["panels"], *panels(board)])
    height = lines * UNIT_H + HEAD
    figure = plt.figure(figsize=(24 * UNIT_W, height), dpi=DPI, facecolor=GROUND)
    _head(figure, board, height, {**values, **chosen}, note)
    for panel in board["panels"]:
        if panel["type"] == "row":
            y = 1 - (HEAD + (panel["gridPos"]["y"] + 0.7) * UNIT_H) / height
            figure.text(0.006, y, f"▾ {panel['title']}", color=INK, fontsize=10, weight="bold")
    for panel in panels(board):
        found = [answer(target, prometheus, span, values) for target in panel["targets"]]
        _panel(figure, panel, found, span, height)
    return figure


def _head(figure: Figure, board: Board, height: float, values: Mapping[str, str], note: str) -> None:
    names = [one["name"] for one in board["templating"]["list"] if one["type"] == "query"]
    chosen = "   ".join(f"{name}: {values.get(name, '')}" for name in names).replace(".*", "All")
    figure.text(0.006, 1 - 0.32 / height, board["title"], color="#ffffff", fontsize=15, weight="bold")
    figure.text(0.006, 1 - 0.58 / height, chosen, color=FAINT, fontsize=9)
    figure.text(0.994, 1 - 0.30 / height, LABEL, color="#f2cc0c", fontsize=9, ha="right")
    figure.text(0.994, 1 - 0.55 / height, note, color="#f2cc0c", fontsize=9, ha="right")


def _panel(figure: Figure, panel: Mapping[str, Any], found: list[Any], span: Span, height: float) -> None:
    place = panel["gridPos"]
    left, width = place["x"] / 24, place["w"] / 24
    top = 1 - (HEAD + place["y"] * UNIT_H) / height
    tall = place["h"] * UNIT_H / height
    back = figure.add_axes((left + 0.001, top - tall + 0.04 / height, width - 0.002, tall - 0.08 / height))
    back.set_facecolor(PANEL)
    back.set(xticks=[], yticks=[])
    for edge in back.spines.values():
        edge.set_color("#24282e")
    figure.text(left + 0.005, top - 0.24 / height, panel["title"], color=INK, fontsize=8.5, weight="bold")
    axes = figure.add_axes(_inner(panel, left, top, width, tall, height))
    axes.set_facecolor(PANEL)
    axes.tick_params(colors=FAINT, labelsize=6.5, length=0)
    for edge in axes.spines.values():
        edge.set_visible(False)
    if not any(found):
        axes.axis("off")
        axes.text(0.5, 0.5, "No data", color=FAINT, ha="center", transform=axes.transAxes)
    elif panel["type"] == "table":
        table(axes, panel, found, span.end)
    else:
        DRAW[panel["type"]](axes, panel, found, (span.start, span.end))


def _inner(
    panel: Mapping[str, Any], left: float, top: float, width: float, tall: float, height: float
) -> tuple[float, float, float, float]:
    """Room for the drawing itself: axis labels on the left, a legend below or on the right."""
    head, inset, right, foot = 0.36, 0.006, 0.006, 0.10
    if panel["type"] in ("timeseries", "heatmap", "state-timeline", "status-history"):
        inset, foot = (0.036, 0.30)
        if panel["type"] in ("state-timeline", "status-history"):
            inset = 0.12 if any("reason" in t["expr"] for t in panel["targets"]) else 0.05
        if panel["type"] == "timeseries":
            beside = panel["options"]["legend"]["placement"] == "right"
            right, foot = (0.085, foot) if beside else (0.022 if right_axis(panel) else right, 0.52)
    return left + inset, top - tall + foot / height, width - inset - right, tall - (head + foot) / height


def write(
    folder: Path, prometheus: Prometheus, span: Span, chosen: Mapping[str, Mapping[str, str]], note: str = ""
) -> list[Path]:
    """One PNG a key: a dashboard's name, or that and a view of it (``run-ranks``)."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, values in chosen.items():
        board = json.loads((HERE / "json" / f"{name.partition('-')[0]}.json").read_text(encoding="utf-8"))
        figure = sheet(board, prometheus, span, values, note)
        made.append(folder / f"dashboard-{name}.png")
        figure.savefig(made[-1], facecolor=GROUND)
        plt.close(figure)
    return made
