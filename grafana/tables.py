"""Tables: several instant queries joined by one label, a few chosen columns, in a chosen order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.builders.common import TableFooterOptions
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue, ValueMap

from grafana.panels import Builder, Q, basis
from grafana.style import Steps


@dataclass(frozen=True, slots=True)
class Column:
    """A field of the joined answer (`Value #A` or a label) as a column."""

    field: str
    title: str
    unit: str = "none"
    width: int | None = None
    mapping: ValueMap | None = None
    steps: Steps | None = None
    gauge: bool = False
    url: str | None = None
    decimals: int | None = None


def ask(expr: str) -> Q:
    """A query for a table: instant, with labels as columns."""
    return Q(expr, instant=True, format="table")


def grid(
    title: str, about: str, join: str, queries: Sequence[Q], columns: Sequence[Column], *,
    sort: str | None = None, descending: bool = True,
) -> Builder:  # fmt: skip
    panel = basis(table.Panel(), title, about, "none", queries).show_header(True)
    panel = panel.footer(TableFooterOptions().show(False)).no_value("–")
    for step in _transformations(join, queries, columns, sort, descending):
        panel = panel.with_transformation(step)
    for column in columns:
        panel = panel.override_by_name(column.title, _properties(column))
    return panel


def _transformations(
    join: str, queries: Sequence[Q], columns: Sequence[Column], sort: str | None, descending: bool
) -> list[DataTransformerConfig]:
    order = {column.field: at for at, column in enumerate(columns)}
    names = {column.field: column.title for column in columns}
    found = []
    if len(queries) > 1:
        found.append(DataTransformerConfig("joinByField", options={"byField": join, "mode": "outer"}))
    found.append(DataTransformerConfig("filterFieldsByName", options={"include": {"names": list(names)}}))
    found.append(
        DataTransformerConfig(
            "organize", options={"indexByName": order, "renameByName": names, "excludeByName": {}}
        )
    )
    if sort:
        found.append(DataTransformerConfig("sortBy", options={"sort": [{"field": sort, "desc": descending}]}))
    return found


def _properties(column: Column) -> list[DynamicConfigValue]:
    found = [DynamicConfigValue(id_val="unit", value=column.unit)]
    if column.width:
        found.append(DynamicConfigValue(id_val="custom.width", value=column.width))
    if column.decimals is not None:
        found.append(DynamicConfigValue(id_val="decimals", value=column.decimals))
    if column.mapping:
        found.append(DynamicConfigValue(id_val="mappings", value=[column.mapping]))
    if column.url:
        shown = {"title": "Open", "url": column.url}
        found.append(DynamicConfigValue(id_val="links", value=[shown]))
    return found + _cell(column)


def _coloured(mapping: ValueMap | None) -> bool:
    return mapping is not None and any(result.color for result in mapping.options.values())


def _cell(column: Column) -> list[DynamicConfigValue]:
    """How the cell shows its value: as text, coloured text or a bar."""
    if column.steps is None and not _coloured(column.mapping):
        return []
    cell = {"type": "gauge", "mode": "basic"} if column.gauge else {"type": "color-text"}
    found = [DynamicConfigValue(id_val="custom.cellOptions", value=cell)]
    if column.steps is not None:
        steps = [{"value": value, "color": color} for value, color in column.steps]
        found.append(DynamicConfigValue(id_val="thresholds", value={"mode": "absolute", "steps": steps}))
        found.append(DynamicConfigValue(id_val="color", value={"mode": "thresholds"}))
    if column.gauge:
        found += [DynamicConfigValue(id_val="min", value=0), DynamicConfigValue(id_val="max", value=1)]
    return found
