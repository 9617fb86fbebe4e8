"""What happens inside the loader: from worker rings, and from the scalars the main process samples."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from monitor.model.run import LoaderTimes
from monitor.model.steps import Columns
from sdk.ring import WORKER_PHASES

RECENT = 32
"""Batches kept per worker for the rolling means (one record is one batch)."""
MAX_HOTSPOTS = 16
"""As many as the SDK keeps."""
MOST_FIGURE = 1e15
"""A share or a number of seconds must be below this to be valid."""


class WorkerFigures:
    """One DataLoader worker: one record per batch, with phases wait, fetch, collate, send."""

    def __init__(self) -> None:
        self.batches = 0
        self.recent: deque[tuple[int, ...]] = deque(maxlen=RECENT)
        """wait, fetch, collate, send, whole, samples of the latest batches."""

    def add(self, columns: Columns) -> None:
        self.batches += len(columns)
        none = [0] * len(columns)
        phases = [columns.phases.get(phase, none)[-RECENT:] for phase in range(len(WORKER_PHASES))]
        rows = zip(*phases, columns.raw[-RECENT:], columns.samples[-RECENT:], strict=True)
        self.recent.extend(rows)


def loader_times(
    workers: Sequence[WorkerFigures], scalars: Mapping[str, float], data_seconds: float | None = None
) -> LoaderTimes:
    """Scalars of the main process take precedence; the rest comes from the workers' rings. With workers, the
    step's data phase is the time spent waiting for them."""
    rows = [row for worker in workers for row in worker.recent]
    wait, fetch, collate, _send, whole, samples = (
        (sum(column) for column in zip(*rows, strict=True)) if rows else (0,) * 6
    )
    known = {name: scalars.get(f"loader.{name}_s") for name in ("sampler", "getitem", "wait", "pin")}
    batches = sum(worker.batches for worker in workers) or int(scalars.get("loader.batches", 0))
    getitem = known["getitem"]
    if getitem is None and samples:
        getitem = fetch / samples / 1e9
    return LoaderTimes(
        batches=batches,
        sampler_seconds=known["sampler"],
        fetch_seconds=fetch / len(rows) / 1e9 if rows and fetch else scalars.get("loader.fetch_s"),
        getitem_seconds=getitem,
        collate_seconds=collate / len(rows) / 1e9 if rows and fetch else scalars.get("loader.collate_s"),
        wait_seconds=known["wait"] if known["wait"] is not None or not rows else data_seconds,
        pin_seconds=known["pin"],
        worker_busy_ratio=1.0 - min(1.0, wait / whole) if whole else None,
        samples_per_batch=samples / len(rows) if rows and samples else None,
    )


def merged_hotspots(own: Any, workers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Hotspots of the trainer and its workers; the same line in several workers is one hotspot."""
    found = _spots(own)
    lines: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for config in workers:
        for spot in _spots(config.get("hotspots")):
            key = tuple(str(spot.get(part)) for part in ("phase", "function", "file", "line"))
            lines.setdefault(key, []).append(spot)
    for spots in lines.values():
        merged = {**spots[0], "worker": True}
        if shares := _numbers(spots, "share"):
            merged["share"] = sum(shares) / max(1, len(workers))
        if seconds := _numbers(spots, "seconds"):
            merged["seconds"] = sum(seconds)
        found.append(merged)
    return sorted(found, key=_share, reverse=True)[:MAX_HOTSPOTS]


def _spots(claimed: Any) -> list[dict[str, Any]]:
    return [spot for spot in claimed if isinstance(spot, dict)] if isinstance(claimed, list) else []


def _numbers(spots: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """The values that can be a share or seconds; a ring may contain anything."""
    return [float(value) for spot in spots if _is_figure(value := spot.get(key))]


def _is_figure(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MOST_FIGURE


def _share(spot: Mapping[str, Any]) -> float:
    share = spot.get("share")
    return float(share) if _is_figure(share) else 0.0
