"""Single steps for other programs: read back, they are what was stored."""

from __future__ import annotations

import csv
import io
import json

import pytest

from monitor.cli.export import all_steps
from monitor.document.export import Format, columns, export
from monitor.store.chunks import Steps
from monitor.store.history import MAX_STEPS
from tests.unit.document import made


def steps(count: int = 3, first: int = 1) -> Steps:
    numbers = range(first, first + count)
    return Steps(
        step=list(numbers),
        begin=[1000.0 + 0.1 * at for at in numbers],
        seconds=[0.1] * count,
        flags=[0] * count,
        samples=[32] * count,
        tokens=[0] * count,
        phases={"data": [0.06] * count, "forward": [0.03] * count},
    )


def exported(form: Format) -> bytes:
    return export(steps(), made.run(), 0, form)


def test_csv_has_a_row_a_step() -> None:
    rows = list(csv.DictReader(io.StringIO(exported("csv").decode())))
    assert [row["step"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["phase_data_seconds"] == "0.06" and rows[0]["seconds"] == "0.1"


def test_json_lines_say_whose_step_it_is() -> None:
    rows = [json.loads(line) for line in exported("jsonl").decode().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert (rows[0]["run"], rows[0]["rank"], rows[0]["samples"]) == ("run-1", 0, 32)


def test_parquet_keeps_types_and_columns() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(exported("parquet")))
    assert table.to_pydict() == columns(steps())
    assert table.schema.metadata[b"run"] == b"run-1"


def test_a_trace_has_steps_and_their_phases_on_one_clock() -> None:
    events = json.loads(exported("trace"))["traceEvents"]
    whole = [one for one in events if one["ph"] == "X" and one["tid"] == 0]
    parts = [one for one in events if one["ph"] == "X" and one["tid"] == 1]
    assert [one["name"] for one in whole] == ["step 1", "step 2", "step 3"]
    assert [one["name"] for one in parts] == ["data", "forward"] * 3
    for at, step in enumerate(whole):
        inside = parts[2 * at : 2 * at + 2]
        assert step["ts"] == inside[0]["ts"]
        assert inside[1]["ts"] == pytest.approx(inside[0]["ts"] + inside[0]["dur"])
        assert inside[1]["ts"] + inside[1]["dur"] <= step["ts"] + step["dur"]


class Paged:
    """A source that returns at most one page at a time."""

    def steps(self, run: str, *, rank: int = 0, after: int = 0, limit: int = MAX_STEPS) -> Steps:
        return steps(min(limit, 250_000 - after), after + 1)


def test_a_long_run_comes_page_by_page() -> None:
    found = all_steps(Paged(), "run-1", 0)  # type: ignore[arg-type]
    assert found.step == list(range(1, 250_001))
    assert len(found.phases["data"]) == len(found.seconds) == 250_000
