"""The dashboards as TypeScript, for the compiler to hold against Grafana's own types (`@grafana/schema`).

JSON knows no types: Grafana ignores a misspelt key, or an option that a panel does not have, without a word.
As literals of its published types such dashboards do not compile.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = "11.6.0"
"""The Grafana that grafana/compose.yaml starts; a test compares them."""
TYPESCRIPT = "5.7.3"
RAW = "./node_modules/@grafana/schema/dist/esm/raw"
PANELS = {
    "bargauge": ("BarGauge", False),
    "gauge": ("Gauge", False),
    "heatmap": ("Heatmap", True),
    "stat": ("Stat", False),
    "state-timeline": ("StateTimeline", True),
    "status-history": ("StatusHistory", True),
    "table": ("Table", True),
    "timeseries": ("TimeSeries", True),
}
"""Panel type → its name in the schema, and whether its fields have settings of their own."""
LOOSE = """
// Enums as the words they are in JSON, and nothing required: Grafana fills in its defaults.
type Loose<T> = T extends string ? (string extends T ? string : `${T}`)
  : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Loose<U>[]
  : unknown extends T ? T
  : T extends object ? { [K in keyof T]?: Loose<T[K]> } : T;
type Custom<F> = { defaults?: Loose<Omit<raw.FieldConfig, "custom">> & { custom?: Loose<F> };
  overrides?: Loose<raw.FieldConfigSource["overrides"]> };
type Of<O, F> = Loose<Omit<raw.Panel, "options" | "fieldConfig">>
  & { options?: Loose<O>; fieldConfig?: Custom<F> };
type None = Record<string, never>;
// What Grafana itself writes and its types leave out: a query variable's definition, and what a mark has that
// Prometheus answers. The type of its `target` is that of another data source, so it is not looked at.
type Variable = Loose<raw.VariableModel> & { definition?: string };
type Mark = Loose<Omit<raw.AnnotationQuery, "target">> & { target?: unknown; expr?: string; step?: string;
  titleFormat?: string; textFormat?: string; useValueForTime?: boolean };
type Board = Loose<Omit<raw.Dashboard, "panels" | "annotations" | "templating">>
  & { annotations?: { list?: Mark[] }; templating?: { list?: Variable[] } };
"""


def install(folder: Path) -> None:
    """The schema and the compiler, into a folder of their own."""
    packages = [f"@grafana/schema@{SCHEMA}", f"typescript@{TYPESCRIPT}"]
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
    subprocess.run([*command, *packages], check=True, capture_output=True, cwd=folder)


def complaints(folder: Path, boards: dict[str, dict[str, Any]]) -> list[str]:
    """What the compiler says about the dashboards, one line each; nothing when all is well."""
    for name, board in boards.items():
        (folder / f"{name}.ts").write_text("\n".join(source(board)), encoding="utf-8")
    compiler = str(folder / "node_modules" / "typescript" / "bin" / "tsc")
    flags = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "es2022"]
    flags += ["--moduleResolution", "bundler", "--pretty", "false"]
    files = [f"{name}.ts" for name in boards]
    done = subprocess.run(
        ["node", compiler, *flags, *files], capture_output=True, text=True, cwd=folder, check=False
    )
    return [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]


def source(board: dict[str, Any]) -> Iterator[str]:
    """One dashboard as a module: itself without its panels, then every panel by its own type."""
    yield f'import type * as raw from "{RAW}/dashboard/x/dashboard_types.gen";'
    for title, _ in PANELS.values():
        place = f"{RAW}/composable/{title.lower()}/panelcfg/x/{title}PanelCfg_types.gen"
        yield f'import type * as {title} from "{place}";'
    yield LOOSE
    whole = {key: value for key, value in board.items() if key != "panels"}
    yield f"export const board: Board = {json.dumps(whole, indent=1)};"
    for at, panel in enumerate(every_panel(board)):
        yield f"export const panel{at}: {_type(panel)} = {json.dumps(panel, indent=1)};"


def every_panel(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Those inside collapsed rows too."""
    for panel in board["panels"]:
        yield {key: value for key, value in panel.items() if key != "panels" or panel["type"] != "row"}
        yield from panel.get("panels", ())


def _type(panel: dict[str, Any]) -> str:
    if panel["type"] == "row":
        return "Loose<raw.RowPanel>"
    title, own = PANELS[panel["type"]]
    return f"Of<{title}.Options, {f'{title}.FieldConfig' if own else 'None'}>"
