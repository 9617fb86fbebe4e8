"""The frame of a dashboard: sections of rows on the 24-column grid, ids, variables, links, annotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    GridPos,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from grafana.panels import DATASOURCE, Builder, Q, target

COLUMNS = 24
SCHEMA_VERSION = 41
"""Of Grafana 11.6, which compose.yaml starts; older versions can read it, and newer ones migrate it."""
JOB = 'job=~"$job"'
MACHINE = f'{JOB}, instance=~"$instance"'
"""What the first two variables of every dashboard select. Recorded figures of a run have no instance."""
TITLES = {"cluster": "Cluster", "node": "Node and GPUs", "run": "Training run", "compare": "Compare two runs"}
CARRY = "${datasource:queryparam}&${__url_time_range}"
RUN_URL = "/d/gpumon-run?var-run=${__data.fields.Run}&" + CARRY
NODE_URL = "/d/gpumon-node?var-instance=${__data.fields.Machine}&" + CARRY


@dataclass(frozen=True, slots=True)
class Strip:
    """Panels side by side at one height, each with its width."""

    height: int
    panels: Sequence[tuple[int, Builder]]


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    strips: Sequence[Strip]
    collapsed: bool = False


def frame(
    name: str, about: str, sections: Sequence[Section], variables: Sequence[Any], notes: Sequence[Any], *,
    span: str = "now-1h",
) -> Any:  # fmt: skip
    """The whole dashboard, placed and numbered."""
    board = Dashboard(f"gpumon · {TITLES[name]}").uid(f"gpumon-{name}").description(about)
    board = board.tags(["gpumon"]).time(span, "now").refresh("10s").timezone("browser").readonly()
    board = board.tooltip(DashboardCursorSync.CROSSHAIR).version(1)
    board = board.variables([_datasource(), *variables]).annotations(list(notes)).links(list(_links(name)))
    made: Any = _place(board, sections).build()
    made.schema_version = SCHEMA_VERSION
    for shown in (*made.links, *made.annotations.list_val):
        shown.placement = None  # in the open, not inside the controls menu
    return made


def _place(board: Dashboard, sections: Sequence[Section]) -> Dashboard:
    line, number = 0, 1
    for section in sections:
        row = Row(section.title).id(number).grid_pos(GridPos(h=1, w=COLUMNS, x=0, y=line))
        row = row.collapsed(section.collapsed)
        line, number = line + 1, number + 1
        placed: list[Builder] = []
        for strip in section.strips:
            left = 0
            for width, panel in strip.panels:
                placed.append(panel.id(number).grid_pos(GridPos(h=strip.height, w=width, x=left, y=line)))
                left, number = left + width, number + 1
            line += strip.height
        if section.collapsed:
            for panel in placed:
                row = row.with_panel(panel)
            board = board.with_row(row)
        else:
            board = board.with_row(row)
            for panel in placed:
                board = board.with_panel(panel)
    return board


def _datasource() -> DatasourceVariable:
    return DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def scope(*, many: bool = True) -> list[QueryVariable]:
    """Scrape job and machine; with `many`, several machines at once."""
    machines = f"label_values(gpumon_build_info{{{JOB}}}, instance)"
    return [
        variable("job", "Scrape job", "label_values(gpumon_build_info, job)", many=True),
        variable("instance", "Machine", machines, many=many),
    ]


def variable(name: str, label: str, query: str, *, many: bool = False, about: str = "") -> QueryVariable:
    made = QueryVariable(name).label(label).query(query).datasource(DATASOURCE).definition(query)
    made = made.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)
    made = made.description(about) if about else made
    if not many:
        return made
    everything = VariableOption(selected=True, text="All", value="$__all")
    return made.multi(True).include_all(True).all_value(".*").current(everything)


def _links(own: str) -> list[DashboardLink]:
    return [
        DashboardLink(title)
        .type(DashboardLinkType.LINK)
        .url(f"/d/gpumon-{name}?${{datasource:queryparam}}")
        .keep_time(True)
        .icon("dashboard")
        .tooltip(f"gpumon: {title}")
        for name, title in TITLES.items()
        if name != own
    ]


def note(title: str, expr: str, text: str, color: str) -> AnnotationQuery:
    """Marks at the times that a query returns as values in milliseconds."""
    made = AnnotationQuery().name(title).datasource(DATASOURCE).enable(True).icon_color(color).expr(expr)
    made = made.use_value_for_time(True).title_format(title).text_format(text).step("10s")
    return made.target(target(Q(expr), "Anno"))
