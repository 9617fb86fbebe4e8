"""`gpumon show`: everything about a run, and nothing it cannot know."""

from __future__ import annotations

import msgspec

from monitor.cli.show import render
from tests.unit.document import made


def shown(run: object = None) -> str:
    return "\n".join(render(made.record(run or made.run(), made.finding())))  # type: ignore[arg-type]


def test_an_ended_run_promises_only_for_the_next() -> None:
    assert "  predicted for the next run: ×1.8 (1.4–2.0)" in shown()
    assert "  predicted ×1.8 (1.4–2.0)" in shown(
        msgspec.structs.replace(made.run(), state="running", ended=None)
    )


def test_a_phase_of_few_steps_has_no_p95() -> None:
    """GIVEN a phase that 95 of 100 steps do not have THEN its p95 of 0 is not beside a mean that is not."""
    phases = tuple(
        msgspec.structs.replace(one, name="validate", p95_seconds=0.0) if at == 0 else one
        for at, one in enumerate(made.run().phases)
    )
    row = next(
        line
        for line in shown(msgspec.structs.replace(made.run(), phases=phases)).splitlines()
        if line.startswith("validate")
    )
    assert " 0 s" not in row


def test_a_column_that_no_rank_fills_is_not_there() -> None:
    ranks = tuple(msgspec.structs.replace(one, overhead_ratio=None) for one in made.run().ranks)
    assert "overhead" in shown() and "overhead" not in shown(msgspec.structs.replace(made.run(), ranks=ranks))


def test_stalls_say_how_often_only_if_one_of_them_is_regular() -> None:
    stalls = tuple(msgspec.structs.replace(one, every_steps=None) for one in made.run().stalls)
    assert "every … steps" in shown()
    assert "every … steps" not in shown(msgspec.structs.replace(made.run(), stalls=stalls))


def test_what_is_not_known_has_no_place_among_the_facts() -> None:
    told = shown(msgspec.structs.replace(made.run(), samples_per_second=None, setup_seconds=None))
    assert "—" not in told.splitlines()[1] and "samples/s ·" not in told
