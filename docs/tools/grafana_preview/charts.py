"""Charts of the contact sheet: numbers, lines, bars, heatmaps and timelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from docs.tools.grafana_preview.units import shown

INK, FAINT, PANEL = "#d8d9da", "#8e9299", "#181b1f"
PALETTE = ("#73bf69", "#5794f2", "#f2cc0c", "#ff9830", "#b877d9", "#f2495c", "#8ab8ff", "#c0d8ff", "#96d98d")
Series = dict[str, Any]
Panel = Mapping[str, Any]


def defaults(panel: Panel) -> dict[str, Any]:
    return dict(panel["fieldConfig"]["defaults"])


def unit_of(panel: Panel) -> str:
    return str(defaults(panel).get("unit", "none"))


def step_color(steps: Sequence[Mapping[str, Any]], value: float) -> str:
    """The colour a threshold list gives a value."""
    color = INK
    for step in steps:
        if step["value"] is None or value >= step["value"]:
            color = step["color"]
    return color


def threshold_color(panel: Panel, value: float) -> str:
    return step_color(defaults(panel).get("thresholds", {}).get("steps", []), value)


def mapped(panel: Panel, value: float) -> tuple[str, str] | None:
    """Text and colour a value mapping gives."""
    for mapping in defaults(panel).get("mappings", []):
        found = mapping["options"].get(f"{value:g}")
        if found:
            return found.get("text", ""), found.get("color") or INK
    return None


def points(series: Series) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array([[float(at), float(value)] for at, value in series["values"]])
    return pairs[:, 0], pairs[:, 1]


def last(series: Series) -> float:
    return float(series["value"][1] if "value" in series else series["values"][-1][1])


def stat(axes: Axes, panel: Panel, found: list[list[Series]], span: tuple[float, float]) -> None:
    flat = [one for answer in found for one in answer]
    axes.axis("off")
    for at, series in enumerate(flat):
        value = last(series)
        text, color = mapped(panel, value) or (
            shown(value, unit_of(panel), defaults(panel).get("decimals")),
            threshold_color(panel, value),
        )
        x = (at + 0.5) / len(flat)
        axes.text(
            x,
            0.55,
            text,
            ha="center",
            va="center",
            color=color,
            fontsize=17,
            weight="bold",
            transform=axes.transAxes,
        )
        if len(flat) > 1:
            axes.text(x, 0.12, series["name"], ha="center", color=FAINT, fontsize=8, transform=axes.transAxes)
    if len(flat) == 1 and "values" in flat[0] and panel["options"].get("graphMode") == "area":
        _spark(axes, flat[0], threshold_color(panel, last(flat[0])))


def _spark(axes: Axes, series: Series, color: str) -> None:
    _, values = points(series)
    inner = axes.inset_axes((0.0, 0.0, 1.0, 0.3))
    inner.fill_between(range(len(values)), values, color=color, alpha=0.25, lw=0)
    inner.plot(values, color=color, lw=0.8)
    inner.set_ylim(0, max(1e-9, float(np.nanmax(values)) * 1.15))
    inner.set_xlim(0, max(1, len(values) - 1))
    inner.axis("off")


def colors_of(panel: Panel) -> dict[str, str]:
    found = {}
    for override in panel["fieldConfig"]["overrides"]:
        for item in override["properties"]:
            if item["id"] == "color" and item["value"].get("mode") == "fixed":
                found[override["matcher"]["options"]] = item["value"]["fixedColor"]
    return found


def right_axis(panel: Panel) -> set[str]:
    """Names of series that have the axis on the right."""
    wanted = {"id": "custom.axisPlacement", "value": "right"}
    return {
        one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"] if wanted in one["properties"]
    }


def _beside(axes: Axes, times: np.ndarray, values: np.ndarray, color: str, name: str) -> None:
    twin = axes.twinx()
    twin.plot(times, values, color=color, lw=1.0, ls="--")
    twin.set_ylim(0, max(1.0, float(values.max())) * 1.3)
    twin.tick_params(colors=FAINT, labelsize=6.5, length=0)
    for edge in twin.spines.values():
        edge.set_visible(False)
    axes.plot([], [], color=color, lw=1.0, ls="--", label=name)


def lines(axes: Axes, panel: Panel, found: list[list[Series]], span: tuple[float, float]) -> None:
    flat = [one for answer in found for one in answer]
    chosen = colors_of(panel)
    palette = [chosen.get(one["name"], PALETTE[at % len(PALETTE)]) for at, one in enumerate(flat)]
    custom = defaults(panel).get("custom", {})
    if custom.get("stacking", {}).get("mode") == "normal":
        _stack(axes, flat, palette, span)
    else:
        right = right_axis(panel)
        for series, color in zip(flat, palette, strict=True):
            times, values = points(series)
            if series["name"] in right:
                _beside(axes, times - span[0], values, color, series["name"])
                continue
            axes.plot(times - span[0], values, color=color, lw=1.3, label=series["name"])
            if defaults(panel).get("min") == 0:
                axes.fill_between(times - span[0], values, color=color, alpha=0.07, lw=0)
    low, high = defaults(panel).get("min"), defaults(panel).get("max")
    axes.set_ylim(bottom=low, top=high * 1.02 if high is not None else None)
    _finish(axes, unit_of(panel), span, panel["options"]["legend"]["placement"] == "right")


def _stack(axes: Axes, flat: list[Series], palette: list[str], span: tuple[float, float]) -> None:
    times = sorted({at for series in flat for at in points(series)[0]})
    rows = []
    for series in flat:
        known = dict(zip(*points(series), strict=True))
        rows.append([known.get(at, 0.0) for at in times])
    labels = [series["name"] for series in flat]
    axes.stackplot(np.array(times) - span[0], np.array(rows), colors=palette, labels=labels, alpha=0.8, lw=0)


def _finish(axes: Axes, unit: str, span: tuple[float, float], right: bool) -> None:
    axes.set_xlim(0, span[1] - span[0])
    axes.yaxis.set_major_locator(MaxNLocator(4))
    low, high = axes.get_ylim()
    decimals = 1 if unit == "percentunit" and high - low < 0.05 else None
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value, unit, decimals)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} s"))
    axes.grid(color="#2c3235", lw=0.5)
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    place: dict[str, Any] = (
        {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        if right
        else {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncol": min(5, len(labels))}
    )
    axes.legend(
        handles[:14],
        labels[:14],
        frameon=False,
        fontsize=6.5,
        labelcolor=INK,
        handlelength=1.0,
        columnspacing=1.0,
        **place,
    )


def bars(axes: Axes, panel: Panel, found: list[list[Series]], span: tuple[float, float]) -> None:
    flat = [one for answer in found for one in answer][:9]
    values = [last(one) for one in flat]
    top = defaults(panel).get("max") or max([*values, 1e-9])
    axes.axis("off")
    for at, (series, value) in enumerate(zip(flat, values, strict=True)):
        y = 1 - (at + 0.5) / max(len(flat), 4)
        height = 0.55 / max(len(flat), 4)
        axes.add_patch(Rectangle((0.36, y - height / 2), 0.48, height, color="#22252b"))
        axes.add_patch(
            Rectangle(
                (0.36, y - height / 2),
                0.48 * min(1.0, value / top),
                height,
                color=threshold_color(panel, value),
            )
        )
        axes.text(0.35, y, series["name"], ha="right", va="center", color=INK, fontsize=7.5)
        axes.text(
            0.855,
            y,
            shown(value, unit_of(panel), defaults(panel).get("decimals")),
            va="center",
            color=INK,
            fontsize=7.5,
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)


def heatmap(axes: Axes, panel: Panel, found: list[list[Series]], span: tuple[float, float]) -> None:
    flat = sorted(found[0], key=_bound)
    if panel["targets"][0]["format"] == "heatmap":
        flat = _apart(flat)
    times = sorted({at for series in flat for at in points(series)[0]})
    cells = np.full((len(flat), len(times)), np.nan)
    where = {at: column for column, at in enumerate(times)}
    for row, series in enumerate(flat):
        for at, value in zip(*points(series), strict=True):
            cells[row, where[at]] = value if value > 0 else np.nan
    scheme = panel["options"]["color"]["scheme"]
    axes.imshow(cells, aspect="auto", origin="lower", cmap=f"{scheme}_r", interpolation="nearest",
                extent=(times[0] - span[0], times[-1] - span[0], -0.5, len(flat) - 0.5))  # fmt: skip
    unit = panel["options"]["yAxis"].get("unit", "none")
    names = [shown(_bound(one), "s") if unit == "s" else one["name"] for one in flat]
    axes.set_yticks(range(len(flat)), names, fontsize=6)
    axes.set_xlim(0, span[1] - span[0])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} s"))


def _bound(series: Series) -> float:
    text = series["metric"].get("le") or series["metric"].get("use") or "0"
    return float("inf") if text == "+Inf" else float(text)


def _apart(flat: list[Series]) -> list[Series]:
    """Cumulative buckets into single ones, those without any step left out at both ends."""
    made: list[Series] = []
    before: dict[float, float] = {}
    for series in flat:
        times, values = points(series)
        own = [[at, value - before.get(at, 0.0)] for at, value in zip(times, values, strict=True)]
        before = dict(zip(times, values, strict=True))
        made.append({**series, "values": own})
    filled = [at for at, one in enumerate(made) if points(one)[1].max() > 1e-6]
    return made[max(0, filled[0] - 1) : filled[-1] + 2] if filled else made


def timeline(axes: Axes, panel: Panel, found: list[list[Series]], span: tuple[float, float]) -> None:
    flat = [one for answer in found for one in answer]
    for row, series in enumerate(reversed(flat)):
        times, values = points(series)
        width = span[1] - span[0]
        step = float(np.median(np.diff(times))) if len(times) > 1 else width
        for at, value in zip(times, values, strict=True):
            text = mapped(panel, value)
            color = text[1] if text else threshold_color(panel, value)
            axes.add_patch(Rectangle((at - span[0], row + 0.08), step * 1.02, 0.84, color=color, lw=0))
        text = mapped(panel, float(values[-1]))
        if text:
            axes.text(width * 0.99, row + 0.5, text[0], ha="right", va="center", fontsize=7, color="#ffffff")
    axes.set_ylim(0, max(1, len(flat)))
    axes.set_xlim(0, span[1] - span[0])
    axes.set_yticks(
        [row + 0.5 for row in range(len(flat))], [one["name"] for one in reversed(flat)], fontsize=7
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} s"))


DRAW: dict[str, Callable[[Axes, Panel, list[list[Series]], tuple[float, float]], None]] = {
    "stat": stat,
    "timeseries": lines,
    "bargauge": bars,
    "heatmap": heatmap,
    "state-timeline": timeline,
    "status-history": timeline,
}
