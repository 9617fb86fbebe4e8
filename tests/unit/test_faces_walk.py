"""What the walk over a face's syntax tree finds, and what it ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.faces_walk import unexpected, walk


def found(folder: Path, body: str) -> list[str]:
    (folder / "view.py").write_text(
        f"def show(gpu, run, finding, snapshot, room, ratio: float | None):\n    {body}\n"
    )
    return [one.what for one in walk(folder)]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("return gpu.utilization_ratio < limit", "threshold"),
        ("use = gpu.utilization_ratio or 0.0\n    return 'idle' if use < limit else ''", "threshold"),
        ("return 'falling' if ratio < 0.9 else ''", "threshold"),
        ("return room < 0.5", "threshold"),
        ("return gpu.memory_used_bytes / total", "arithmetic"),
        ("return now - finding.since", "arithmetic"),
        ("return [round(v - 1) for v in (finding.speedup.low, finding.speedup.high)]", "arithmetic"),
        ("total = 0\n    total += run.steps", "arithmetic"),
        ("return max(rank.p50 for rank in run.ranks)", "arithmetic"),
        ("return gpu.uuid in run.gpu_uuids", "join"),
        ("return [r for r in snapshot.runs if r.id == finding.run]", "join"),
        ("return {p.pid: p for p in snapshot.processes}", "join"),
        ("return owners.get(gpu.uuid)", "join"),
        ("return pids.isdisjoint(run.pids)", "join"),
        ("return f'{run.share:.1f}'", "number format"),
        ("return f'{run.steps:,}'", "number format"),
        ("return finding.title.startswith('no daemon')", "prose"),
        ("return 'lost' in gpu.state_detail", "prose"),
        ("return report.headline == 'healthy'", "prose"),
    ],
)
def test_what_belongs_below_a_face_is_found(tmp_path: Path, body: str, what: str) -> None:
    assert what in found(tmp_path, body)


@pytest.mark.parametrize(
    "body",
    [
        "return room.width - 2 > 40",
        "return units.percent(gpu.utilization_ratio)",
        "return gpu.utilization_ratio is not None and run.condition == 'starved'",
        "return next(r for r in snapshot.runs if r.id == chosen)",
        "return sorted(snapshot.processes, key=lambda p: p.cpu_ratio)",
        "return f'{len(run.ranks)}/{run.world_size}'",
        "return f'{run.name:<20}'",
    ],
)
def test_laying_out_is_left_alone(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, body) == []


def test_an_allowed_place_needs_its_entry_and_an_entry_its_place(tmp_path: Path) -> None:
    found(tmp_path, "return run.steps + 1")
    assert unexpected(tmp_path, {}) == ["view.py:show line 2: arithmetic"]
    assert unexpected(tmp_path, {"view.py:show": "why"}) == []
    assert unexpected(tmp_path, {"view.py:show": "why", "view.py:gone": "why"}) == [
        "view.py:gone: allowed but not there"
    ]
