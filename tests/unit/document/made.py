"""Runs for tests of documents: one that trains on a GPU, and the ways it can end."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from monitor.catalog.dossier import Dossier, make_dossier
from monitor.model.facts import complete_record
from monitor.model.finding import Finding, Remedy, Speedup
from monitor.model.history import HistoryPage, RunRecord, Series
from monitor.model.run import Phase, Rank, Run, Stall
from monitor.model.verdict import Verdict
from monitor.store.ledger import Entry
from tests.unit.store import made

PHASES = (
    Phase("data", 0.5, 0.05, total_seconds=18.0),
    Phase("forward", 0.3, 0.03, total_seconds=9.0),
    Phase("validate", 0.2, 0.02, total_seconds=3.0),
)
STALLS = (Stall("validate", 3, 3.0, 0.1, 130.0, 1.0, 390), Stall("data", 2, 4.0, 0.1, None, 2.0, 200))
SETUP = {"imports_seconds": 3.0, "data_seconds": 1.0, "model_seconds": 0.5, "other_seconds": 0.5}


def finding(**more: Any) -> Finding:
    fields: dict[str, Any] = {
        "id": "input.no_workers",
        "severity": "warning",
        "title": "No loader workers: 50 % of the step waits for `Pictures.__getitem__`",
        "run": "run-1",
        "evidence": {"data_share": 0.5, "num_workers": 0},
        "remedy": Remedy("Set num_workers=4.", "- num_workers=0\n+ num_workers=4", effect="identical"),
        "speedup": Speedup(1.4, 1.8, 2.0),
        "why": "While the loop waits nothing is computed.",
    }
    return Finding(**{**fields, **more})


def run(**more: Any) -> Run:
    """40 s: 5 s of set-up, 30 s in steps, 3 s after the last one, 2 s in none."""
    rank = Rank(
        0, "ended", 42, device="cuda:0", steps=400, samples=4000, phases=PHASES, stalls=STALLS,
        last_step_time=1037.0, overhead_ratio=0.001, scalars={"cuda.reserved_bytes": 77.6e9},
    )  # fmt: skip
    fields: dict[str, Any] = {
        "ranks": (rank,),
        "first_step_time": 1005.0,
        "phases": PHASES,
        "stalls": STALLS,
        "config": {"setup": SETUP, "gpu_memory_bytes": 80_000_000_000, "loader": {"num_workers": 0}},
        "combined": Speedup(1.2, 2.0, 3.0),
        "verdict": Verdict("fix", "Half of the step waits for data", rule="input.no_workers", gain=1.8),
        "command": "python train.py --lr <1e-3>",
        "timeline": tuple(
            replace(
                one, phases={"data": 0.6, "forward": 0.4}, step_p50=0.1, step_p95=0.2, loss=1.0 / (at + 1)
            )
            for at, one in enumerate(made.run().timeline)
        ),
    }
    return made.run(**{**fields, **more})


def ended_as(state: str, **rank: Any) -> Run:
    """The same, but it did not end normally."""
    whole = run()
    return replace(whole, state=state, ranks=(replace(whole.ranks[0], state=state, **rank),))


def record(of: Run, *findings: Finding) -> RunRecord:
    return complete_record(RunRecord(of, findings, 1040.0))


def dossier(of: Run | None = None, *findings: Finding, entries: tuple[Entry, ...] = ()) -> Dossier:
    cpu = Series(
        "host", "cpu_utilization_ratio", (1001.0, 1002.0, 1003.0), (0.5,) * 3, (0.6,) * 3, (0.7,) * 3
    )
    return make_dossier(
        record(of or run(), *(findings or (finding(),))),
        written=2000.0,
        steps=[0.1 + 0.001 * (at % 50) for at in range(400)],
        entries=entries,
        readings=HistoryPage(1000.0, 1040.0, 1.0, (cpu,)),
    )
