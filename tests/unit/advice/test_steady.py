"""Stable figures: a gain moves only when its new range excludes the old one, and what ended a run stays its
headline."""

from __future__ import annotations

import msgspec
import pytest

from monitor.advice.confirmation import is_steady
from monitor.advice.engine import Engine
from monitor.model.finding import Finding, Speedup
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot
from tests.unit.advice.build import NOW, hot, run_of, snapshot_of
from tests.unit.advice.shapes import starved

LOOP = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}


def logging_run(seconds: float) -> Run:
    return run_of(LOOP | {"log": seconds})


def gain(judged: Snapshot, id: str) -> Speedup:
    found = next(one.speedup for one in judged.findings if one.id == id)
    assert found is not None
    return found


def test_a_figure_stays_while_the_new_range_allows_it_and_moves_when_it_does_not() -> None:
    """GIVEN a shown gain WHEN the share wobbles THEN it stays; WHEN the cause grows sixfold THEN it moves."""
    engine, id = Engine(), "compute.logging_too_often"
    engine.evaluate(snapshot_of(logging_run(0.004)))
    first = gain(engine.evaluate(snapshot_of(logging_run(0.004))), id)
    wobbled = [
        gain(engine.evaluate(snapshot_of(logging_run(0.004 * by))), id) for by in (1.05, 0.97, 1.02, 0.96)
    ]
    assert {one.likely for one in wobbled} == {first.likely}
    moved = engine.evaluate(snapshot_of(logging_run(0.024)))
    assert gain(moved, id).likely > 1.5 * first.likely
    combined = moved.runs[0].combined
    assert combined is not None and combined.likely >= gain(moved, id).likely


def test_that_nothing_was_found_is_never_shown_beside_a_cause() -> None:
    """GIVEN a run of which no check fired WHEN a cause begins, and ends THEN each is shown alone."""
    engine = Engine()
    shown = [
        [one.id for one in engine.evaluate(snapshot_of(logging_run(seconds))).findings]
        for seconds in (*[0.0] * 4, *[0.004] * 8, *[0.0] * 8)
    ]
    assert all(len(ids) <= 1 for ids in shown), shown
    assert shown[3] == shown[-1] == ["healthy.ok"] and shown[11] == ["compute.logging_too_often"]


def test_a_line_that_is_found_later_is_shown_though_the_gain_stays() -> None:
    """GIVEN a shown finding without its line WHEN sampling names the line THEN so does the finding."""
    engine, id = Engine(), "input.slow_getitem"
    for _ in range(2):
        found = engine.evaluate(snapshot_of(starved(0, [])))
    assert all("hot_line" not in one.evidence for one in found.findings if one.id == id)
    later = engine.evaluate(
        snapshot_of(starved(0, [hot("fetch", "img = decode(blob)", function="Rows.decode")]))
    )
    assert [one.evidence["hot_line"] for one in later.findings if one.id == id] == ["train.py:7"]


def test_the_doubt_of_a_range_decides_also_where_a_limit_has_cut_it() -> None:
    new = Speedup(1.3, 1.5, 1.5, "the limit")
    assert is_steady(new, Speedup(1.2, 1.4, 1.8)) and is_steady(new, Speedup(1.5, 1.7, 1.8))
    assert not is_steady(new, Speedup(1.0, 1.2, 1.3)) and not is_steady(new, Speedup(1.6, 1.8, 2.0))
    assert not is_steady(new, None) and not is_steady(None, new)


def test_nearly_all_of_a_step_does_not_jump_from_one_figure_to_the_next() -> None:
    """GIVEN a cause that takes 97 to 98 % of the step WHEN that wobbles THEN ×18 does not become ×25."""
    engine, shown = Engine(), set()
    for seconds in (0.32, 0.32, 0.36, 0.30, 0.42, 0.35):
        found = engine.evaluate(snapshot_of(logging_run(seconds)))
        shown |= {one.speedup.likely for one in found.findings if one.speedup}
    assert len(shown) == 1 and min(shown) > 10


def test_a_gain_around_a_threshold_does_not_flip_between_hint_and_warning() -> None:
    """GIVEN log lines that cost about 10 % WHEN their share wobbles THEN their severity stays."""
    engine, seen = Engine(), set()
    for by in (1.0, 1.0, 1.06, 0.97, 1.08, 0.99, 1.05, 0.96):
        run = run_of(LOOP | {"log": 0.0010 * by})
        found = engine.evaluate(snapshot_of(run)).findings
        seen |= {(one.id, one.severity) for one in found if one.id == "compute.logging_too_often"}
    assert len(seen) == 1


@pytest.mark.parametrize("state", ["failed", "killed"])
def test_what_ended_a_run_is_its_headline_and_nothing_is_promised(state: str) -> None:
    run = msgspec.structs.replace(starved(0), state=state)
    judged = Engine().evaluate(snapshot_of(run))
    verdict = judged.runs[0].verdict
    assert judged.findings[0].id == "trend.ended_abnormally"
    assert verdict is not None and verdict.rule == "trend.ended_abnormally"
    assert judged.runs[0].combined is None and not any(one.speedup for one in judged.findings)
    assert "×" not in verdict.text()


def test_a_run_that_ends_between_two_steps_is_not_said_to_end_in_one() -> None:
    rank = msgspec.structs.replace(starved(0).ranks[0], live_phase="between")
    between = msgspec.structs.replace(starved(0), state="killed", ranks=(rank,))
    assert first(between).title.startswith("Killed between two steps after ")
    stuck = hung(starved(0), 300.0, live_phase="between")
    assert first(stuck).title.startswith("Hung between two steps: ")
    assert first(stuck).remedy.summary.startswith("Between two steps: ")


def hung(run: Run, silent: float, *, live_phase: str = "backward", **changes: object) -> Run:
    rank = msgspec.structs.replace(run.ranks[0], last_step_time=NOW - silent, live_phase=live_phase)
    return msgspec.structs.replace(run, ranks=(rank,), **changes)


def first(run: Run) -> Finding:
    return Engine().evaluate(snapshot_of(run)).findings[0]


def test_a_hang_stays_the_headline_of_a_run_that_was_ended_by_hand() -> None:
    stuck = hung(starved(0), 300.0)
    assert first(stuck).id == "trend.hung"
    ended = hung(starved(0), 300.0, state="ended", ended=NOW, interrupted=True)
    assert first(ended).id == "trend.hung" and "5m" in first(ended).title.replace(" ", "")


def test_a_long_step_that_goes_from_phase_to_phase_is_no_hang() -> None:
    """An update may call the model again and again (LBFGS): its marks show that it goes on."""
    busy = hung(starved(0), 300.0)
    busy = msgspec.structs.replace(busy, ranks=(msgspec.structs.replace(busy.ranks[0], live_seconds=0.2),))
    assert "trend.hung" not in [one.id for one in Engine().evaluate(snapshot_of(busy)).findings]
    assert first(hung(starved(0), 40.0, state="ended", ended=NOW, interrupted=True)).id != "trend.hung"


def test_a_long_evaluation_after_the_last_step_is_no_hang() -> None:
    assert first(hung(starved(0), 300.0, state="ended", ended=NOW)).id == "input.slow_getitem"


def test_an_interrupt_in_the_middle_of_the_steps_is_no_failure() -> None:
    ended = hung(starved(0), 0.01, state="ended", ended=NOW, interrupted=True)
    assert first(ended).id == "input.slow_getitem"


def test_a_crash_of_compiled_code_names_its_signal() -> None:
    found = first(msgspec.structs.replace(starved(0), state="killed", error="SIGSEGV"))
    assert found.title.startswith("Killed by SIGSEGV") and "FAULTHANDLER" in found.remedy.change


def test_running_out_of_device_memory_is_said_as_such() -> None:
    found = first(msgspec.structs.replace(starved(0), state="failed", error="OutOfMemoryError"))
    assert found.id == "trend.ended_abnormally" and "Out of memory" in found.title
    assert "batch" in found.remedy.summary
