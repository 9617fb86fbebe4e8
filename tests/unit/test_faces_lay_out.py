"""Faces (screen, page, metrics, commands, closing report) only lay out: no joins, thresholds, arithmetic or
number formats of their own, and no decisions based on the words of a sentence.

Facts are derived from readings once, in `monitor/model/facts.py` and by advice; `units` formats quantities.
The tests read the syntax trees of the faces and the page's script.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.faces_walk import ROOT, formats_a_number, unexpected

ALLOWED = {
    "tui": {
        # the screen's own clock and connections
        "app.py:GpumonApp._age": "redraws when nothing else did for a second",
        "feed.py:Readers.stop": "how long to wait for each thread",
        "frame.py:_view": "how long ago this screen heard of the host",
        "frame.py:_link": "whether this screen's connection is stale: the daemon cannot know",
        "start.py:_export": "how long to watch before a screenshot",
        "signals.py:_process": "whether a pid is still the same process, at the moment of the signal",
        # which part of the past to ask for, and the position in a replay
        "archive.py:DaemonArchive.page": "numbers in a query string",
        "archive.py:_realised": "the order of the ledger's rows: this run's first",
        "feed.py:RemoteFeed._past": "the last minutes, from the time of the snapshot",
        "screens/history.py:HistoryScreen._replay_screen": "a reading a second over the run's time",
        "replay.py:Replay.seek": "moments of a recording",
        "replay.py:Replay._feed": "moments of a recording",
        "replay.py:Replay.frame": "the replay's speed, a setting",
        "screens/replay.py:ReplayScreen._bar": "the place on the bar, and the replay's speed",
        # positions on the screen
        "feed.py:past_of": "which column of a graph a recorded reading belongs to",
        "frame.py:_extend": "the graph of each GPU, by its uuid",
        "views/finding.py:scale": "where on a scale of cells the range of a gain begins and ends",
        "views/parts.py:back": "how far back a graph goes: readings times interval",
        "views/run_graphs.py:Axis.__init__": "how many cells of a graph a window has",
        "views/gpu.py:throttle": "the graph of this GPU, by its uuid",
        "views/gpu_text.py:is_odd_tick": "graphs move with every second reading",
        "views/history.py:_phases": "bars of two runs to one scale",
        "views/processes.py:_tree": "rows of children below their parent's",
        "views/run_graphs.py:Axis.held": "windows shorter than a tick repeat the reading before",
        "views/run_graphs.py:_times": "the label at the end of a time axis",
        "widgets/graph.py:_levels": "dots of a graph",
        "widgets/graph.py:round_up": "the top of a scale",
        "widgets/graph.py:bar": "cells of a bar",
        # colours
        "palette.py:is_dark": "brightness of a colour",
        "palette.py:blend": "a mixture of two colours",
        "palette.py:_phases": "brightness of a colour",
        "app.py:GpumonApp.get_system_commands": "Textual names its own command by its title",
    },
    "web": {
        # numbers for programs
        "endpoint.py:Parameter._number": "a parameter of a query and its bounds",
        "collector.py:_exemplar": "a number for a parser, not for people",
        "exposition.py:_example": "a number for a parser, not for people",
        "exposition.py:number": "a number for a parser, not for people",
        # how much is served, and to whom
        "otlp.py:_nanoseconds": "the time of a snapshot, for a parser",
        "families/base.py:make_scene": "how many series there may be, and how they are shared among owners",
        "families/base.py:_long_ended": "how long a series outlives its run",
        "families/ranks.py:_scalars": "how many series there may be",
        "families/runs.py:_gpu_memory": "the memory of each run, as the snapshot holds it",
        "feed.py:Feed.after": "which snapshot a client has already",
        "metrics.py:Metrics._made": "whether a page is as new as the snapshot",
        "login.py:_headers": "seconds to wait, in a header",
        "login.py:Failures._now": "the server's own clock",
        "privacy.py:owners": "whose things a snapshot holds",
    },
    "cli": {
        "compare.py:_bar": "whether the reader's own bar is a ratio at all",
        "analyze.py:_bottleneck": "the largest share, by name",
        "compare.py:_exit_code": "the bar the user gave",
        "tui.py:_seconds": "whether what the reader typed is a time to wait",
        "doctor.py:chosen": "checks by their id",
        "help.py:_rule": "rules by their id",
        "probe.py:environment": "the bounds of an option",
        "profile.py:_number": "the bounds of an option",
        "profile.py:_wait": "until when the user wants to wait",
        "trace_text.py:_bar": "cells of a bar",
        "trace_text.py:_queue": "blocks of a graph",
    },
    "document": {
        # positions in a picture, and the marks on its axes
        "charts.py:_anchor": "on which side of its place a word stands",
        "charts.py:_percent": "a place in a picture",
        "charts.py:_row": "a place in a picture",
        "charts.py:_short": "the digits of a coordinate",
        "charts.py:block": "corners of a rectangle",
        "charts.py:bar": "no bar is longer than its track",
        "charts.py:ranged": "places of a range on its scale",
        "compare_page.py:_time": "one scale for both runs",
        "compare_page.py:_phases": "one scale for all bars",
        "compare_page.py:_rates": "one scale for both runs",
        "compare_page.py:_nearest": "which point of a curve is the one pointed at",
        "scale.py:Scale.place": "a value's place on an axis",
        "scale.py:of_time": "marks of an axis",
        "scale.py:from_zero": "marks of an axis",
        "scale.py:between": "marks of an axis",
        "scale.py:logarithmic": "marks of an axis",
        "scale.py:_thinned": "marks that do not touch",
        "scale.py:_round_step": "a round number",
        "time_sections.py:_apart": "words that do not touch",
        "timed.py:plain_line": "the middle of an axis",
        "export.py:_event": "digits of a microsecond, for a parser",
        "timed.py:timed": "whether a mark is inside the picture",
    },
    "report": {
        "report.py:Report.as_json": "the first rank",
        "text.py:_record": "the track record of each rule",
    },
}
"""What a face may do, by file and function: drawing, timekeeping, and look-ups that join no run, GPU or
process."""


@pytest.mark.parametrize("face", ALLOWED)
def test_a_face_judges_joins_and_computes_nothing(face: str) -> None:
    assert unexpected(ROOT / "monitor" / face, ALLOWED[face]) == []


NOT_FOR_PEOPLE = {
    "monitor/advice/docs.py": "a threshold as one writes it in a policy file",
    "monitor/advice/finding.py": "evidence as data, with four digits",
    "monitor/gpu/scenario.py": "the user's own numbers, as written",
    "monitor/tui/archive.py": "numbers in a query string",
    "monitor/tui/replay.py": "the replay's speed, a setting",
    "monitor/tui/screens/replay.py": "the replay's speed, a setting",
    "monitor/web/endpoint.py": "a bound as the client has to write it",
    "trainers/datasets/cached_sampler.py": "the line as the seed document prints it",
    "trainers/engine/convergence.py": "losses: how many digits matter is not ours to say",
    "trainers/engine/progress.py": "losses",
    "trainers/engine/records.py": "losses and metrics",
}


def formatted(path: Path) -> Iterator[int]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        spec = node.format_spec if isinstance(node, ast.FormattedValue) else None
        if isinstance(spec, ast.JoinedStr) and formats_a_number(spec):
            yield spec.lineno


@pytest.mark.parametrize("package", ["monitor", "sdk", "trainers"])
def test_numbers_become_text_in_one_place(package: str) -> None:
    paths = [path for path in sorted((ROOT / package).rglob("*.py")) if path.name != "units.py"]
    found = {path.relative_to(ROOT).as_posix(): list(formatted(path)) for path in paths}
    used = {name: lines for name, lines in found.items() if lines}
    assert {name: lines for name, lines in used.items() if name not in NOT_FOR_PEOPLE} == {}
    assert {name for name in NOT_FOR_PEOPLE if name.startswith(f"{package}/")} <= set(used), (
        "no longer needed"
    )


READING = r"\.\w+_(?:bytes|seconds|ratio|watts|celsius|hertz|per_second|share)\b"


def test_the_page_lays_out_too() -> None:
    """No arithmetic on or comparison of a reading, no join by process, no number format in its script."""
    lines = (ROOT / "monitor/web/page/page.js").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if works_out(line) and "stale_after_seconds" not in line] == []


def works_out(line: str) -> bool:
    calculated = re.compile(rf"[\w)]{READING}\s*(?:[-+*/<>]|===)\s*[\w(]|[\w)]\s*[-+*/<>]=?\s*\w+{READING}")
    forbidden = re.compile(r"toPrecision|toLocaleString|\.pids\b|gpu_uuids|\.throttle\b")
    return bool(calculated.search(line) or forbidden.search(line))


@pytest.mark.parametrize(
    "line",
    [
        "const ratio = gpu.memory_used_bytes / gpu.memory_total_bytes;",
        "for (const disk of host.disks) if (disk.busy_ratio > 0.005) row.append(disk);",
        "size(host.memory.total_bytes - host.memory.available_bytes)",
        "String(+loss.toPrecision(4))",
    ],
)
def test_the_check_of_the_page_sees_what_it_is_for(line: str) -> None:
    assert works_out(line)
