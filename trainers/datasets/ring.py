"""Batches for a GPU from data that stays in host memory: a ring of pinned buffers, one batch ahead.

A batch is gathered straight into a pinned buffer and copied on a stream of its own, while the device
still works on the batch before. Neither the host nor the training stream waits for the copy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from trainers.datasets.plan import Plan
from trainers.datasets.source import Batch

AHEAD = 2
"""Batches on their way: the one that is trained on next, and the one behind it."""


@dataclass
class _Slot:
    """A pinned buffer for every field, and when the last copy out of it is done."""

    buffers: dict[str, Tensor] = field(default_factory=dict)
    sent: torch.cuda.Event = field(default_factory=torch.cuda.Event)

    def room(self, name: str, like: Tensor, count: int) -> Tensor:
        """The first `count` rows of the field's buffer, made larger when they do not fit."""
        if name not in self.buffers or len(self.buffers[name]) < count:
            self.buffers[name] = torch.empty((count, *like.shape[1:]), dtype=like.dtype, pin_memory=True)
        return self.buffers[name][:count]


class RingSource:
    """Rows of host tensors, batch by batch, on the device. `finish` turns them into what a loss takes."""

    def __init__(
        self,
        fields: Mapping[str, Tensor],
        rows: Tensor,
        plan: Plan,
        device: torch.device,
        finish: Callable[[Batch], Batch],
    ) -> None:
        self.fields, self.rows, self.plan, self.device, self.finish = fields, rows, plan, device, finish
        self.copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.slots = deque(_Slot() for _ in range(AHEAD + 1))

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        on_their_way: deque[tuple[Batch, _Slot]] = deque()
        for items in self.plan.iterate(epoch, start):
            on_their_way.append(self._send(items))
            if len(on_their_way) == AHEAD:
                yield self._received(*on_their_way.popleft())
        while on_their_way:
            yield self._received(*on_their_way.popleft())

    def _send(self, items: Tensor) -> tuple[Batch, _Slot]:
        """Gather into the oldest buffer and start its copy."""
        slot = self.slots[0]
        self.slots.rotate(-1)
        slot.sent.synchronize()  # done long ago, unless the device is further behind than the ring is long
        at = self.rows[items]
        with torch.cuda.stream(self.copies):
            batch = {}
            for name, data in self.fields.items():
                buffer = torch.index_select(data, 0, at, out=slot.room(name, data, len(at)))
                batch[name] = buffer.to(self.device, non_blocking=True)
            slot.sent.record(self.copies)
        return batch, slot

    def _received(self, batch: Batch, slot: _Slot) -> Batch:
        """The training stream, not the host, waits for the copy."""
        training = torch.cuda.current_stream(self.device)
        training.wait_event(slot.sent)
        for part in batch.values():
            part.record_stream(training)
        return self.finish(batch)
