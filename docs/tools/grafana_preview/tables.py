"""Tables of the contact sheet: the dashboard's own join, columns, mappings and colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from docs.tools.grafana_preview.charts import FAINT, INK, Panel, Series, step_color
from docs.tools.grafana_preview.units import shown

Row = dict[str, Any]
LINE = 0.105
FREE_WIDTH = 330


def rows_of(panel: Panel, found: list[list[Series]]) -> list[Row]:
    """What Grafana's joinByField and organize make of the answers."""
    steps = {one["id"]: one["options"] for one in panel["transformations"]}
    key = steps.get("joinByField", {}).get("byField")
    rows: dict[str, Row] = {}
    for at, answer in enumerate(found):
        field = f"Value #{chr(ord('A') + at)}" if len(found) > 1 else "Value"
        for number, series in enumerate(answer):
            identity = series["metric"].get(key, "") if key else str(number)
            row = rows.setdefault(identity, {})
            row |= {name: text for name, text in series["metric"].items() if name not in row}
            row[field] = float(series["value"][1])
    names = steps["organize"]["renameByName"]
    made = [{title: row.get(field) for field, title in names.items()} for row in rows.values()]
    return _sorted(made, steps.get("sortBy"))


def _sorted(rows: list[Row], options: Mapping[str, Any] | None) -> list[Row]:
    if options is None:
        return rows
    field, down = options["sort"][0]["field"], options["sort"][0]["desc"]
    known = [row for row in rows if row[field] is not None]
    return sorted(known, key=lambda row: row[field], reverse=down) + [
        row for row in rows if row[field] is None
    ]


def overrides(panel: Panel) -> dict[str, dict[str, Any]]:
    return {
        one["matcher"]["options"]: {item["id"]: item.get("value") for item in one["properties"]}
        for one in panel["fieldConfig"]["overrides"]
    }


def widths(columns: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Column → share of the table's width; columns without a width share what is left."""
    wanted = {title: float(look.get("custom.width") or FREE_WIDTH) for title, look in columns.items()}
    whole = sum(wanted.values())
    return {title: width / whole for title, width in wanted.items()}


def table(axes: Axes, panel: Panel, found: list[list[Series]], now: float) -> None:
    axes.axis("off")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    columns = overrides(panel)
    height = LINE * 8 / panel["gridPos"]["h"]
    rows = rows_of(panel, found)[: int(1 / height) - 1]
    left = 0.0
    for title, width in widths(columns).items():
        axes.text(left + 0.004, 1 - height / 2, title, va="center", color=FAINT, fontsize=7, weight="bold")
        for at, row in enumerate(rows):
            y = 1 - height * (at + 1.5)
            _cell(axes, (left, y, width, height), row[title], columns[title], now, panel["gridPos"]["w"])
        left += width
    for at in range(len(rows) + 1):
        axes.plot([0, 1], [1 - height * (at + 1)] * 2, color="#2c3235", lw=0.6)


def _cell(
    axes: Axes,
    box: tuple[float, float, float, float],
    value: Any,
    look: Mapping[str, Any],
    now: float,
    span: int,
) -> None:
    left, y, width, height = box
    text, color = _text(value, look, now)
    if isinstance(value, float) and look.get("custom.cellOptions", {}).get("type") == "gauge":
        axes.add_patch(Rectangle((left, y - height * 0.3), width * 0.62, height * 0.6, color="#22252b"))
        axes.add_patch(
            Rectangle((left, y - height * 0.3), width * 0.62 * min(1.0, value), height * 0.6, color=color)
        )
        left += width * 0.64
    room = max(4, int(width * span * 12))
    axes.text(
        left + 0.004,
        y,
        text if len(text) <= room else text[: room - 1] + "…",
        va="center",
        color=color,
        fontsize=7,
    )


def _text(value: Any, look: Mapping[str, Any], now: float) -> tuple[str, str]:
    if value is None or value == "":
        return "–", FAINT
    raw = f"{value:g}" if isinstance(value, float) else str(value)
    steps = look.get("thresholds", {}).get("steps")
    color = step_color(steps, value) if steps and isinstance(value, float) else INK
    for mapping in look.get("mappings", []):
        if raw in mapping["options"]:
            found = mapping["options"][raw]
            return found.get("text", raw), found.get("color") or color
    if isinstance(value, float):
        return shown(value, look.get("unit", "none"), look.get("decimals"), now), color
    return raw, color
