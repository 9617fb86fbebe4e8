"""Single steps of a run for other programs: CSV, JSON Lines, Parquet, and a trace for Perfetto or Chrome."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Literal

from monitor.model.errors import UserError
from monitor.model.run import Run
from monitor.store.chunks import Steps

Format = Literal["csv", "jsonl", "parquet", "trace"]
FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet", "trace")
MICROSECONDS = 1e6


def columns(steps: Steps) -> dict[str, list[Any]]:
    """Columns by name; the name contains the unit. Step time outside all phases has no column of its own."""
    named = {f"phase_{name}_seconds": values for name, values in steps.phases.items()}
    return {
        "step": steps.step,
        "begin": steps.begin,
        "seconds": steps.seconds,
        "samples": steps.samples,
        "tokens": steps.tokens,
        "flags": steps.flags,
        **named,
    }


def export(steps: Steps, run: Run, rank: int, form: Format) -> bytes:
    """The whole file. Raises `UserError` when a library is missing."""
    if form == "parquet":
        return _parquet(columns(steps), run, rank)
    text = {"csv": _csv, "jsonl": _lines, "trace": _trace}[form]
    return text(steps, run, rank).encode()


def _csv(steps: Steps, run: Run, rank: int) -> str:
    out = io.StringIO()
    named = columns(steps)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(named)
    writer.writerows(zip(*named.values(), strict=True))
    return out.getvalue()


def _lines(steps: Steps, run: Run, rank: int) -> str:
    named = columns(steps)
    rows = zip(*named.values(), strict=True)
    return "".join(
        json.dumps({"run": run.id, "rank": rank, **dict(zip(named, row, strict=True))}) + "\n" for row in rows
    )


def _parquet(named: dict[str, list[Any]], run: Run, rank: int) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(
            "Parquet needs pyarrow", hint="pip install 'gpumon-train[export]', or --format csv"
        ) from None
    out = io.BytesIO()
    about = {"run": run.id, "name": run.name, "rank": str(rank)}
    pyarrow.parquet.write_table(pyarrow.table(named).replace_schema_metadata(about), out)
    return out.getvalue()


# ── A trace ──────────────────────────────────────────────────────────────────────────────────────


def _trace(steps: Steps, run: Run, rank: int) -> str:
    """In the format chrome://tracing and ui.perfetto.dev read."""
    events = [*_named(run, rank), *_events(steps, rank)]
    told = {
        "run": run.id,
        "name": run.name,
        "note": "phases are drawn back to back: only their durations are recorded",
    }
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": told}) + "\n"


def _named(run: Run, rank: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"{run.name} rank {rank}"}}
    for thread, name in ((0, "steps"), (1, "phases")):
        yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": {"name": name}}


def _events(steps: Steps, rank: int) -> Iterator[dict[str, Any]]:
    start = steps.begin[0] if steps.begin else 0.0
    for at, (number, begin, took) in enumerate(zip(steps.step, steps.begin, steps.seconds, strict=True)):
        since = (begin - start) * MICROSECONDS
        yield _event(f"step {number}", rank, 0, since, took * MICROSECONDS, {"samples": steps.samples[at]})
        for name, values in steps.phases.items():
            if values[at]:
                yield _event(name, rank, 1, since, values[at] * MICROSECONDS, {})
                since += values[at] * MICROSECONDS


def _event(
    name: str, rank: int, thread: int, since: float, took: float, args: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": round(since, 3), "dur": round(took, 3)}
    return {"ph": "X", "name": name, "cat": "gpumon", "pid": rank, "tid": thread, **times, "args": args}
