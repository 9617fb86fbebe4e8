"""The process beside a notebook's cell (started by gpumon/notebook/): ``python -m monitor.cli.cell RUN``.

It writes one JSON object per line: ``line`` while the cell runs; ``text`` and ``html``, the report, once a
line on stdin (or its end) says that the cell is over.
"""

from __future__ import annotations

import argparse
import json
import sys

from monitor.cli import run_source
from monitor.model.errors import UserError
from monitor.model.run import Run
from monitor.report.milestones import Seen
from monitor.report.report import Report
from monitor.report.watch import RunWatcher

COLUMNS = 110
"""Chosen: what fits below a cell on a common screen."""


class CellLine:
    """The state of the run, as a line the notebook shows."""

    def draw(self, run: Run | None) -> None:
        from monitor.report.live_line import line  # only when there is a first reading

        if run is not None and run.steps:
            _tell(line=line(run, COLUMNS))

    def close(self) -> None:
        return


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m monitor.cli.cell")
    parser.add_argument("run", metavar="RUN")
    run_source.configure(parser, json=False)
    args = parser.parse_args()
    watcher = RunWatcher(args.run, connect=args.connect, line=CellLine)
    watcher.start()
    sys.stdin.readline()
    try:
        _report(watcher.finish(), args)
    except UserError as error:
        _tell(text=f"gpumon: {error.sentence}")
    return 0


def _report(report: Report, args: argparse.Namespace) -> None:
    if report.run is None or not report.run.steps:
        seen = report.seen if report.seen is Seen.SWITCHED_OFF else Seen.UNKNOWN
        _tell(text=f"gpumon: no training was seen in this cell: {seen.sentence()}.")
        return
    from monitor.report.text import WIDEST, render

    _tell(text="\n".join(render(report, WIDEST)), html=_html(report.run.id, args))


def _html(run: str, args: argparse.Namespace) -> str:
    from monitor.catalog.dossier import gather
    from monitor.document.run_page import run_fragment

    with run_source.open_runs(args) as source:
        return run_fragment(gather(source, run))


def _tell(**what: str) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    sys.exit(main())
