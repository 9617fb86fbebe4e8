"""Panels with shared conventions: a unit, a description, a legend, and the datasource variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grafana_foundation_sdk.builders import bargauge, heatmap, stat, statetimeline, statushistory, timeseries
from grafana_foundation_sdk.builders.common import (
    ReduceDataOptions,
    StackingConfig,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.builders.dashboard import DashboardLink
from grafana_foundation_sdk.builders.heatmap import HeatmapColorOptions, YAxisConfig
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    DataSourceRef,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import ValueMap
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from grafana.style import PLAIN, Steps, by_threshold, fixed, thresholds

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
Builder = Any
"""The SDK's panel builders share no base class beyond a generic one."""


@dataclass(frozen=True, slots=True)
class Q:
    """One query: its expression and the legend of its answer."""

    expr: str
    legend: str = ""
    instant: bool = False
    format: Literal["time_series", "table", "heatmap"] = "time_series"
    exemplar: bool = False


def target(query: Q, ref: str) -> Dataquery:
    made = Dataquery().expr(query.expr).ref_id(ref).datasource(DATASOURCE)
    made = made.format(PromQueryFormat(query.format)).legend_format(query.legend or "__auto")
    made = made.instant() if query.instant else made.range()
    return made.exemplar(True) if query.exemplar else made


def basis(panel: Builder, title: str, about: str, unit: str, queries: Sequence[Q]) -> Builder:
    """What every panel has."""
    panel = panel.title(title).description(about).datasource(DATASOURCE).unit(unit)
    return panel.targets([target(query, chr(ord("A") + at)) for at, query in enumerate(queries)])


def link(title: str, url: str) -> DashboardLink:
    return DashboardLink(title).url(url)


def number(
    title: str,
    about: str,
    unit: str,
    *queries: Q,
    steps: Steps = PLAIN,
    decimals: int | None = None,
    mapping: ValueMap | None = None,
    names: bool = False,
    url: str | None = None,
) -> Builder:
    """A big number; with a sparkline if the query is a range."""
    spark = any(not query.instant for query in queries) and mapping is None and not names
    panel = basis(stat.Panel(), title, about, unit, queries).thresholds(thresholds(steps))
    panel = panel.color_scheme(by_threshold()).color_mode(BigValueColorMode.VALUE)
    panel = panel.graph_mode(BigValueGraphMode.AREA if spark else BigValueGraphMode.NONE)
    panel = panel.reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
    panel = panel.text_mode(BigValueTextMode.VALUE_AND_NAME if names else BigValueTextMode.VALUE)
    if decimals is not None:
        panel = panel.decimals(decimals)
    if mapping is not None:
        panel = panel.mappings([mapping])
    return panel.data_links([link("Open", url)]) if url else panel


def lines(
    title: str,
    about: str,
    unit: str,
    *queries: Q,
    stack: bool = False,
    low: float | None = 0,
    high: float | None = None,
    colors: Mapping[str, str] | None = None,
    legend_right: bool = False,
    calcs: Sequence[str] = ("mean", "lastNotNull"),
) -> Builder:
    """Lines over time; stacked areas if they are parts of a whole."""
    panel = basis(timeseries.Panel(), title, about, unit, queries)
    panel = panel.line_width(1 if stack else 2).fill_opacity(70 if stack else 8)
    panel = panel.show_points(VisibilityMode.NEVER).span_nulls(False)
    legend = VizLegendOptions().display_mode(
        LegendDisplayMode.TABLE if legend_right else LegendDisplayMode.LIST
    )
    legend = legend.placement(LegendPlacement.RIGHT if legend_right else LegendPlacement.BOTTOM)
    panel = panel.legend(legend.show_legend(True).calcs(list(calcs) if legend_right else []))
    panel = panel.tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    if stack:
        panel = panel.stacking(StackingConfig().mode(StackingMode.NORMAL).group("A"))
    panel = panel.min(low) if low is not None else panel
    panel = panel.max(high) if high is not None else panel
    for name, color in (colors or {}).items():
        panel = panel.override_by_name(name, fixed(color))
    return panel


def bars(
    title: str, about: str, unit: str, *queries: Q, steps: Steps = PLAIN, mapping: ValueMap | None = None,
    low: float = 0, high: float | None = None, decimals: int | None = None,
) -> Builder:  # fmt: skip
    """Horizontal bars of instant values."""
    panel = basis(bargauge.Panel(), title, about, unit, queries).min(low)
    panel = panel.orientation(VizOrientation.HORIZONTAL).display_mode(BarGaugeDisplayMode.BASIC)
    panel = panel.thresholds(thresholds(steps)).color_scheme(by_threshold())
    panel = panel.reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
    panel = panel.max(high) if high is not None else panel
    panel = panel.decimals(decimals) if decimals is not None else panel
    return panel.mappings([mapping]) if mapping else panel


def heat(
    title: str, about: str, unit: str, query: Q, *, scheme: str = "Oranges", axis_unit: str | None = None
) -> Builder:
    """Buckets over time; the query returns one series per bucket."""
    panel = basis(heatmap.Panel(), title, about, unit, [query]).calculate(False)
    panel = panel.color(
        HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme(scheme).steps(64).fill("dark-orange")
    )
    return panel.y_axis(YAxisConfig().unit(axis_unit or unit)).show_legend().cell_gap(1)


def states(title: str, about: str, unit: str, *queries: Q, mapping: ValueMap) -> Builder:
    """One row per series, coloured by its state."""
    panel = basis(statetimeline.Panel(), title, about, unit, queries).mappings([mapping])
    panel = panel.merge_values(True).show_value(VisibilityMode.AUTO).row_height(0.85).fill_opacity(85)
    return panel.legend(VizLegendOptions().show_legend(True).placement(LegendPlacement.BOTTOM))


def tiles(title: str, about: str, unit: str, *queries: Q, steps: Steps) -> Builder:
    """One row per series, one tile per interval, coloured by value."""
    panel = basis(statushistory.Panel(), title, about, unit, queries).thresholds(thresholds(steps))
    panel = panel.color_scheme(by_threshold()).show_value(VisibilityMode.NEVER).row_height(0.9).min(0).max(1)
    return panel.legend(VizLegendOptions().show_legend(True).placement(LegendPlacement.BOTTOM))
