"""Where every second went: the parts add up to the run, however much is known of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from monitor.model.account import account_of
from monitor.model.facts import complete_record
from monitor.model.history import RunRecord
from monitor.model.run import Run
from tests.unit.document import made


def complete(run: Run) -> Run:
    return complete_record(RunRecord(run, (), 1040.0)).run


def seconds(run: Run) -> dict[tuple[str, str], float]:
    return {(part.kind, part.name): round(part.seconds, 6) for part in account_of(complete(run)).parts}


def test_a_run_is_taken_apart_without_a_second_left() -> None:
    assert seconds(made.run()) == {
        ("setup", "imports"): 3.0,
        ("setup", "data"): 1.0,
        ("setup", "model"): 0.5,
        ("setup", "other"): 0.5,
        ("step", "data"): 14.0,
        ("step", "forward"): 9.0,
        ("apart", "validate"): 3.0,
        ("stall", "data"): 4.0,
        ("unseen", "unseen"): 2.0,
        ("after", "after"): 3.0,
    }


@pytest.mark.parametrize(
    "run",
    [
        made.run(),
        made.run(config={}),
        made.run(config={"setup": {"imports_seconds": 70.0, "data_seconds": None}}),
        made.run(first_step_time=None),
        made.run(ranks=()),
        made.ended_as("killed"),
    ],
    ids=["whole", "no probe", "probe says too much", "no step", "no rank", "killed"],
)
def test_the_parts_add_up_and_none_is_negative(run: Run) -> None:
    account = account_of(complete(run))
    assert all(part.seconds > 0 for part in account.parts)
    known = sum(part.seconds for part in account.parts)
    assert known <= account.seconds + 1e-6
    assert sum(part.seconds for part in account.kinds) == pytest.approx(known)
    if run.ranks:
        assert known == pytest.approx(account.seconds)


def test_what_could_be_saved_is_a_part_of_the_steps() -> None:
    """×2 on 30 s in steps: half of them, and at most two thirds."""
    found = account_of(complete(made.run())).avoidable
    assert found is not None
    assert (found.likely, round(found.high, 6), round(found.low, 6)) == (15.0, 20.0, 5.0)
    assert account_of(complete(made.run(combined=None))).avoidable is None


def test_a_run_without_time_has_no_account() -> None:
    empty = replace(complete(made.run()), elapsed_seconds=0.0)
    assert account_of(empty).parts == ()
