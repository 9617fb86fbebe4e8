"""How a run came to a bad end, in one sentence."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from monitor.model.finding import Finding
from monitor.model.post_mortem import post_mortem
from monitor.model.run import Run
from tests.unit.document import made

HUNG = Finding("trend.hung", "critical", "Hung", run="run-1", evidence={"live_phase": "backward"})

UNKNOWN = replace(HUNG, evidence={"live_phase": "other"})


def text(run: Run, *findings: Finding) -> str:
    record = made.record(run, *findings)
    found = post_mortem(record.run, record.findings)
    return "" if found is None else found.text()


@pytest.mark.parametrize(
    ("run", "findings", "said"),
    [
        (made.run(), (), ""),
        (
            made.ended_as("killed", live_phase="backward"),
            (),
            "Killed in backward of step 401, at 97 % of the GPU's memory",
        ),
        (
            replace(made.ended_as("killed", live_phase="between", scalars={}), timeline=(), config={}),
            (),
            "Killed after the work of step 401",
        ),
        (
            replace(made.ended_as("failed", scalars={}), error="ValueError", timeline=()),
            (),
            "Ended by ValueError in step 401",
        ),
        (
            replace(made.ended_as("stalled", live_phase="data", scalars={}), config={}),
            (),
            "Hung for 3 s in data of step 401",
        ),
        (made.run(interrupted=True, config={}), (HUNG,), "Hung for 3 s in backward of step 401"),
        (made.run(interrupted=True, config={}), (UNKNOWN,), "Hung for 3 s in step 401"),
    ],
    ids=["ended", "killed", "killed between", "failed", "hangs", "hung until Ctrl-C", "nobody knows where"],
)
def test_how_it_ended(run: Run, findings: tuple[Finding, ...], said: str) -> None:
    assert text(run, *findings) == said


def test_of_several_ranks_the_one_that_stopped_first_is_named() -> None:
    first, second = (
        replace(made.ended_as("killed").ranks[0], rank=number, steps=steps, live_phase="forward")
        for number, steps in ((0, 401), (1, 399))
    )
    assert "in forward of step 400 (rank 1)" in text(replace(made.ended_as("killed"), ranks=(first, second)))
