"""``python -m grafana.build``: writes dashboards (`json/`), Prometheus rules (`rules/*.yaml`), their page
(docs/alerts.md), and the copies in the Helm chart (a chart cannot reach outside its folder).

``--check`` writes nothing and fails if a file in the checkout is not what the code would write.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.dashboards import DASHBOARDS
from grafana.rules import alerts_gpu, alerts_monitor, alerts_run, recording
from grafana.rules.model import groups
from grafana.rules.page import page

HERE = Path(__file__).parent
CHART = HERE.parent / "deploy" / "helm" / "gpumon" / "files"
NOTE = "# Written by `python -m grafana.build`; change grafana/rules/*.py instead.\n"


OF_INTERVALS = ("auto", "auto_count", "auto_min")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grafana.build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which files are stale")
    check = parser.parse_args(arguments).check
    stale = [path for path, text in outputs() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print(f"{'stale' if check else 'written'}: {path.relative_to(HERE.parent)}")
    if not check:
        for path, text in outputs():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def outputs() -> Iterator[tuple[Path, str]]:
    """Every generated file and its content."""
    for path, text in _sources():
        yield path, text
        yield CHART / path.name, _compact(text) if path.suffix == ".json" else text
    yield HERE.parent / "docs" / "alerts.md", page()


def _compact(text: str) -> str:
    """A ConfigMap for `kubectl apply` must fit into an annotation of 262,144 bytes."""
    return json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"


def _sources() -> Iterator[tuple[Path, str]]:
    for name, build in DASHBOARDS.items():
        board = without_strays(json.loads(json.dumps(build(), cls=JSONEncoder)))
        body = json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False)
        yield HERE / "json" / f"{name}.json", body + "\n"
    yield HERE / "rules" / "recording.yaml", NOTE + _yaml(recording_groups())
    yield HERE / "rules" / "alerts.yaml", NOTE + _yaml(alert_groups())


def without_strays(board: dict[str, Any]) -> dict[str, Any]:
    """The SDK gives every variable what only an interval variable has."""
    for one in board["templating"]["list"]:
        for key in OF_INTERVALS:
            one.pop(key, None)
    return board


def recording_groups() -> dict[str, Any]:
    return groups({"gpumon.recording.gpu": recording.GPU, "gpumon.recording.runs": recording.RUNS})


def alert_groups() -> dict[str, Any]:
    parts = {"gpu": alerts_gpu, "run": alerts_run, "monitor": alerts_monitor}
    return groups({f"gpumon.alerts.{name}": part.ALERTS for name, part in parts.items()})


class _Dumper(yaml.SafeDumper):
    """Keeps multi-line expressions readable."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _yaml(data: dict[str, Any]) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
