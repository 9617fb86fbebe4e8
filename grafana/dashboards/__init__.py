"""The four dashboards: file name → the function that builds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grafana.dashboards import cluster, compare, node, run

DASHBOARDS: dict[str, Callable[[], Any]] = {
    "cluster": cluster.build,
    "node": node.build,
    "run": run.build,
    "compare": compare.build,
}
