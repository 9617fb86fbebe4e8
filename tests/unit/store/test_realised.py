"""Verified gains: what is credited to a remedy, and every way a finding can go away that proves nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.advice.rule import all_rules
from monitor.cli.compare import render
from monitor.comparison.compare_runs import Comparison, compare
from monitor.comparison.realised import Realised
from monitor.model.finding import Finding
from monitor.model.run import Run
from tests.unit.store.made import finding, later, no_workers, record, run, workers

ENVIRONMENT = (
    "compute.contention",
    "input.cpu_quota",
    "device.shared",
    "memory.swapping",
    "input.disk_bound",
)


def realised(before: Run, after: Run, *gone: Finding) -> Realised:
    return compare(record(before, *(gone or (no_workers(),))), record(after)).realised[0]


def test_a_setting_that_was_seen_to_change_is_credited() -> None:
    stays, new = finding("compute.amp_off", 1.1, 1.2, 1.3), finding("memory.leak", 1.0, 1.0, 1.0, "b")
    before, after = run(config=workers(0)), later(rate=190.0, config=workers(4))
    found = compare(record(before, no_workers(), stays), record(after, stays, new))
    (one,) = found.realised
    assert one.realised == pytest.approx(1.9, rel=0.01) and one.inside and not one.shared
    assert one.changed == "loader.num_workers 0 → 4" and one.not_credited is None
    assert found.remaining == ("compute.amp_off",) and found.new == ("memory.leak",)


def test_a_setting_given_as_an_argument_is_still_the_remedy() -> None:
    before = run(config=workers(0), command="python train.py --epochs 3 --workers 0")
    after = later(rate=190.0, config=workers(4), command="python train.py --epochs 3 --workers=4")
    assert realised(before, after).realised == pytest.approx(1.9, rel=0.01)
    added = later(rate=190.0, config=workers(4), command="python train.py --epochs 3 --workers 4")
    without = run(config=workers(0), command="python train.py --epochs 3")
    assert realised(without, added).realised is not None


def test_another_number_of_epochs_is_no_remedy() -> None:
    """GIVEN the same script WHEN only --epochs differs and the finding is gone THEN nothing gets credit."""
    before = run(config=workers(0), command="python train.py --epochs 3")
    after = later(rate=120.0, config=workers(0), command="python train.py --epochs 30")
    one = realised(before, after)
    assert (one.realised, one.not_credited) == (None, "unchanged")
    both = later(rate=120.0, config=workers(4), command="python train.py --epochs 30")
    assert realised(before, both).not_credited == "other_arguments"


@pytest.mark.parametrize("state", ["failed", "killed", "running", "stalled"])
def test_a_run_that_did_not_come_to_its_end_proves_nothing(state: str) -> None:
    before, after = run(config=workers(0)), later(rate=190.0, config=workers(4))
    broken: dict[str, Any] = {"state": state}
    assert realised(before, msgspec.structs.replace(after, **broken)).not_credited == "not_ended"
    assert realised(msgspec.structs.replace(before, **broken), after).not_credited == "not_ended"


def test_a_run_that_had_hung_proves_nothing() -> None:
    hung = finding("trend.hung", 1.0, 1.0, 1.0, "run-2")
    found = compare(record(run(config=workers(0)), no_workers()), record(later(config=workers(4)), hung))
    assert [one.kind for one in found.troubles] == ["hung"]
    assert found.realised[0].not_credited == "not_ended"


def test_runs_at_the_same_time_prove_nothing() -> None:
    before = run(config=workers(0), ended=2010.0)
    assert realised(before, later(rate=190.0, config=workers(4))).not_credited == "same_time"


def test_runs_in_the_wrong_order_prove_nothing() -> None:
    """GIVEN the later run as A THEN the reason is the order, not that they overlapped."""
    before, after = run(config=workers(0)), later(rate=190.0, config=workers(4))
    assert realised(after, before).not_credited == "b_before_a"


def test_neighbours_that_left_are_nobodys_merit() -> None:
    """GIVEN contention WHEN it is gone and the run is 18 times as fast THEN that is not a success."""
    contention = finding("compute.contention", 1.0, 1.3, 2.0)
    one = realised(run(), later(rate=1800.0), contention)
    assert (one.realised, one.not_credited) == (None, "cannot_tell")


@pytest.mark.parametrize(
    "rule", [rule for rule in all_rules() if rule.id in ENVIRONMENT or rule.scope == "machine"]
)
def test_no_rule_about_the_surroundings_has_a_setting_to_be_credited_for(rule: Any) -> None:
    assert rule.settings == ()


@pytest.mark.parametrize(
    "other",
    [
        {"script": "other.py"},
        {"name": "other"},
        {"hostname": "elsewhere"},
        {"batch_size": 64},
        {"config": workers(4) | {"model": {"class": "Big", "parameters": 11}}},
    ],
)
def test_other_work_proves_nothing(other: dict[str, Any]) -> None:
    before = run(config=workers(0), hostname="here")
    settings: dict[str, Any] = {"rate": 190.0, "config": workers(4), "hostname": "here"} | other
    after = later(**settings)
    assert realised(before, after).not_credited == "other_work"


def test_a_larger_batch_is_other_work_unless_it_is_the_remedy() -> None:
    small = finding("compute.small_batch", 1.5, 2.0, 2.5, settings=("loader.batch_size",))
    before = run(config=workers(0, batch_size=32), batch_size=32)
    after = later(rate=190.0, config=workers(0, batch_size=64), batch_size=64)
    assert realised(before, after, small).realised == pytest.approx(1.9, rel=0.01)


def test_no_change_beyond_noise_proves_nothing() -> None:
    before, after = run(config=workers(0)), later(rate=100.5, config=workers(4))
    assert realised(before, after).not_credited == "noise"
    short = later(rate=190.0, config=workers(4), timeline=run().timeline[:2])
    assert realised(before, short).not_credited == "too_short", "there is no interval"


def hot_line(function: str = "step") -> Finding:
    place = {"hot_line": "train.py:12", "hot_function": function}
    return msgspec.structs.replace(finding("compute.user_code", 1.3, 1.6, 2.0), evidence=place)


def sourced(**functions: str) -> dict[str, Any]:
    return {"source": {"functions": functions}}


@pytest.mark.parametrize(
    ("now", "expected"),
    [({"step": "b"}, None), ({"step": "a"}, "unchanged"), ({}, None)],
)
def test_code_counts_where_the_function_is_seen_to_differ(now: dict[str, str], expected: str | None) -> None:
    before, after = run(config=sourced(step="a")), later(rate=150.0, config=sourced(**now))
    assert realised(before, after, hot_line()).not_credited == expected


def test_the_same_code_under_other_arguments_may_have_been_led_past() -> None:
    """GIVEN a script that caches with `--cache` WHEN its code is the same and the finding is gone THEN nobody
    is told that the remedy was not applied."""
    before = run(config=sourced(step="a"), command="python train.py")
    after = later(rate=150.0, config=sourced(step="a"), command="python train.py --cache")
    assert realised(before, after, hot_line()).not_credited == "cannot_tell"


def test_the_caller_of_a_hot_line_may_be_what_was_changed() -> None:
    caller = {"function": "main", "file": "train.py", "line": 30, "code": "metrics()"}
    spot = {"file": "train.py", "line": 12, "function": "metrics", "callers": [caller]}
    before = run(config=sourced(metrics="m", main="a") | {"hotspots": [spot]})
    after = later(rate=150.0, config=sourced(metrics="m", main="b"))
    one = realised(before, after, hot_line("metrics"))
    assert one.realised is not None and one.changed == "the code of main (train.py)"


def test_code_that_nobody_saw_cannot_be_credited() -> None:
    assert realised(run(), later(rate=150.0), hot_line()).not_credited == "cannot_tell"
    elsewhere = msgspec.structs.replace(
        hot_line(), evidence={"hot_line": "model.py:3", "hot_function": "step"}
    )
    before, after = run(config=sourced(step="a")), later(rate=150.0, config=sourced(step="b"))
    assert realised(before, after, elsewhere).not_credited == "cannot_tell"


def test_a_finding_that_another_fix_resolved_gets_no_credit() -> None:
    """GIVEN slow samples without workers WHEN samples became cheap THEN workers gained nothing."""
    samples = msgspec.structs.replace(hot_line("get"), id="input.slow_getitem")
    before = run(config=workers(0) | sourced(get="a"))
    cheap = later(rate=290.0, config=workers(0) | sourced(get="b"))
    parts = {one.id: one for one in compare(record(before, no_workers(), samples), record(cheap)).realised}
    assert parts["input.no_workers"].not_credited == "unchanged"
    assert parts["input.slow_getitem"].realised == pytest.approx(2.9, rel=0.01)
    assert not parts["input.slow_getitem"].shared


def several() -> Comparison:
    first = no_workers(1.2, 1.4, 1.6)
    second = msgspec.structs.replace(first, id="b.b")
    small = finding("c.c", 1.0, 1.01, 1.02, settings=("loader.num_workers",))
    before, after = run(config=workers(0)), later(rate=200.0, config=workers(4))
    return compare(record(before, first, second, small), record(after))


def test_several_remedies_share_the_gain() -> None:
    parts = {one.id: one for one in several().realised}
    assert parts["b.b"].shared and parts["b.b"].realised == pytest.approx(2.0**0.5, rel=0.01)
    assert parts["c.c"].not_credited == "no_promise"


def test_what_is_not_credited_is_no_longer_seen_and_the_reason_is_said() -> None:
    text = "\n".join(render(compare(record(run(), no_workers()), record(later(rate=190.0)))))
    assert "no longer seen: it is unknown whether its remedy was applied" in text
