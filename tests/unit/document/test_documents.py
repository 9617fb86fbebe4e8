"""Reports and comparisons as documents: complete, safe, and loading nothing from outside."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from monitor import language
from monitor.comparison.compare_runs import compare
from monitor.document.compare_page import compare_page
from monitor.document.markdown import run_markdown
from monitor.document.run_page import run_page
from monitor.model.run import Run
from monitor.store.ledger import Entry
from tests.unit.document import made
from tests.unit.store import made as stored

VOID = {"meta", "br"}
HOSTILE = '</title><script>alert(1)</script>"><img src=x onerror=alert(2)>`**|\x1b[31m'


class Reader(HTMLParser):
    """The elements and words of a page; raises if they are not properly nested."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.words = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not {name for name, _ in attrs if name.startswith("on") or name in ("src", "href", "style")}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def comparison(before: Run, after: Run) -> str:
    found = compare(stored.record(before, stored.no_workers()), stored.record(after))
    return compare_page(found, made.dossier(before), made.dossier(after))


def page(run: Run) -> Reader:
    return Reader(run_page(made.dossier(run)))


def test_markdown_is_chinese_before_it_is_escaped() -> None:
    with language.speaking("zh"):
        text = run_markdown(made.dossier())
    assert "should give" not in text and "修复后预计约 ×1.8" in text and "预计下次运行提速" in text


def test_a_report_has_every_part() -> None:
    words = page(made.run()).words
    for part in (
        "Half of the step waits for data. Fixing it should give about ×1.8.",
        "Where every second went",
        "building the model",
        "What to change",
        "predicted for the next run: ×1.8 (1.4–2.0)",
        "Over time",
        "How step times are spread",
        "GPU, CPU and memory",
        "Loss",
        "Configuration",
    ):
        assert part in words


@pytest.mark.parametrize("state", ["killed", "failed", "stalled"])
def test_a_run_that_ended_badly_says_so_first(state: str) -> None:
    run = made.ended_as(state, live_phase="backward")
    assert "in backward of step 401, at 97 % of the GPU's memory. Half of the step" in page(run).words


@pytest.mark.parametrize(
    "run",
    [
        made.run(timeline=(), phases=(), stalls=(), config={}, verdict=None, combined=None),
        made.run(ranks=(), steps=0, timeline=(), phases=(), stalls=(), first_step_time=None),
        made.run(samples_per_second=None, batch_size=None, command=None, git_commit="0123456789abcdef"),
        replace(made.run(), ranks=made.run().ranks * 2, world_size=2),
    ],
    ids=["nothing known", "no step", "no samples", "two ranks"],
)
def test_what_is_not_known_is_left_out(run: Run) -> None:
    found = made.dossier(run)
    Reader(run_page(found))
    assert run_markdown(found).startswith("# demo")


def test_steps_that_no_figure_counts_are_shaded_not_left_empty() -> None:
    """GIVEN a run whose timeline has a hole THEN every chart shades it; one without a hole has no shade."""
    whole = made.run()
    holed = replace(whole, timeline=whole.timeline[:3] + whole.timeline[5:])
    assert "uncounted" not in _body(whole)
    assert _body(holed).count('class="uncounted"') == _body(whole).count('class="before"') > 2


def _body(run: Run) -> str:
    return run_page(made.dossier(run)).partition("</style>")[2]


def test_nothing_is_run_or_fetched() -> None:
    for text in (run_page(made.dossier()), comparison(made.run(), stored.later())):
        seen = Reader(text).seen
        assert not seen & {"script", "link", "img", "iframe", "object", "base", "form"}
        assert "default-src &#x27;none&#x27;" in text
        assert not re.search(r"@import|url\(|https?:", text)


def test_names_of_other_people_stay_text() -> None:
    run = made.run(
        name=HOSTILE,
        command=HOSTILE,
        config={HOSTILE: HOSTILE, "hotspots": [{"code": HOSTILE, "seconds": 1}]},
    )
    found = made.dossier(run, made.finding(title=HOSTILE, evidence={HOSTILE: HOSTILE}))
    text = run_page(found)
    assert not Reader(text).seen & {"script", "img"}
    assert "\x1b" not in text
    assert "<script" not in run_markdown(found).replace("\\<", "")
    assert not Reader(comparison(run, replace(run, id="run-2", started=2000.0, ended=2040.0))).seen & {
        "script",
        "img",
    }


def test_what_came_of_a_promise_is_beside_it() -> None:
    entry = Entry(
        "run-1", "input.no_workers", "", "train.py", 1.4, 1.8, 2.0, 1040.0,
        after_run="run-2", realised=1.7, changed="loader.num_workers 0 → 4",
    )  # fmt: skip
    before = made.dossier(None, made.finding(), entries=(entry,))
    after = made.dossier(made.run(id="run-2"), made.finding(run="run-2"), entries=(entry,))
    assert "realised ×1.7 in run-2" in Reader(run_page(before)).words
    assert "realised ×1.7, inside the range · since run-1" in Reader(run_page(after)).words
    assert "realised ×1.7 in `run-2`" in run_markdown(before)


def test_a_comparison_has_every_part() -> None:
    before = stored.run(config=stored.workers(0))
    after = stored.later(rate=180.0, data=0.1, config=stored.workers(4))
    words = Reader(comparison(before, after)).words
    for part in (
        "B is faster: ×1.8",
        "The same work?",
        "Where every second went",
        "A step, by phase",
        "GPU use",
    ):
        assert part in words
    assert (
        "input.no_workers gone in B (loader.num_workers 0 → 4): predicted ×2.0 (1.5–2.5), realised ×1.8"
        in words
    )


def test_only_a_promise_that_was_kept_is_shown_as_one() -> None:
    """GIVEN a finding that is gone WHEN its remedy was not seen to be applied THEN its line lacks the colour
    of success."""
    before, workers = stored.run(config=stored.workers(0)), stored.workers(4)
    kept = comparison(before, stored.later(rate=180.0, data=0.1, config=workers))
    other = comparison(before, stored.later(rate=180.0, data=0.1, config=stored.workers(0)))
    assert 'class="promise"' in kept and 'class="promise open"' in other


def test_a_report_as_json_is_complete() -> None:
    plain = json.loads(json.dumps(made.dossier(made.ended_as("killed")).as_json()))
    assert plain["sentence"].startswith("Killed")
    assert {"run", "findings", "account", "end", "spread", "readings", "stretches"} <= set(plain)


def test_a_hot_line_outside_the_scripts_folder_keeps_room_for_its_code() -> None:
    spots = [
        {"file": "/home/ada/work/project/engine/loop.py", "line": 7, "code": "x = f(x)", "seconds": 0.1},
        {"file": "train.py", "line": 3, "code": "y = g(y)", "seconds": 0.2},
    ]
    found = page(made.run(config={"hotspots": spots}))
    assert "engine/loop.py:7" in found.words and "train.py:3" in found.words
    assert "/home/ada" not in found.words


def test_a_variable_of_the_environment_keeps_its_name() -> None:
    found = page(made.run(config={"env": {"OMP_NUM_THREADS": "1"}, "cpu_count": 8}))
    assert "OMP_NUM_THREADS" in found.words and "cpu count" in found.words


def test_a_phase_that_neither_run_has_is_no_row() -> None:
    """GIVEN runs without logging THEN their comparison has no row of zeros for it."""
    phases = tuple(
        replace(one, name="logging", mean_seconds=0.0) if at == 0 else one
        for at, one in enumerate(made.PHASES)
    )
    run = made.run(phases=phases)
    section = (
        comparison(run, replace(run, id="other")).partition("A step, by phase")[2].partition("</section>")[0]
    )
    assert "forward" in section and "logging" not in section


def test_a_figure_seen_once_is_no_chart() -> None:
    windows = made.run().timeline
    once = tuple(replace(one, rss_bytes=3e9 if at == 1 else None) for at, one in enumerate(windows))
    always = tuple(replace(one, rss_bytes=3e9) for one in windows)
    assert "Memory of the process" in page(made.run(timeline=always)).words
    assert "Memory of the process" not in page(made.run(timeline=once)).words
