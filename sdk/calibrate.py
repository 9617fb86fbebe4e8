"""Measures in about a second what torch's own work costs on this machine, for predictions. Run by its path
with the interpreter that trains (`gpumon doctor --calibrate`), never while a training runs; prints JSON.

Each figure is the best of a few rounds: noise only ever adds time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 5
"""Choices, here and below, so that all of it takes about a second."""
LAYERS, WIDTH = 16, 8
"""A model so small that its time is the overhead of its modules."""
SIDE = 256
"""Of the matrices whose product gives the rate: as large as those of small models."""
COPY_BYTES = 64 << 20
"""More than any cache holds."""
BATCHES, BATCH = 150, 32
RESTED, REST_SECONDS = 30, 0.005
"""Batches that are taken after a rest, in which a worker has the next batch of nothing ready."""
CHUNK = 20


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Seconds of the fastest round."""
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def module_seconds(torch: Any) -> float:
    """What a module costs in one pass, however small its input."""
    layers = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    model, batch = torch.nn.Sequential(*layers), torch.zeros(1, WIDTH)

    def passes() -> None:
        model.zero_grad()
        model(batch).sum().backward()

    passes()
    return best(passes, 4 * ROUNDS) / (2 * len(layers))


def core_flops(torch: Any) -> float:
    """Floating-point operations a second of one core in small matrix products."""
    one, two = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    torch.mm(one, two)
    return float(2 * SIDE**3 / best(lambda: torch.mm(one, two), 4 * ROUNDS))


def memory_rate(torch: Any) -> float:
    """Bytes a second that one core copies from memory to memory, read and written."""
    source = torch.zeros(COPY_BYTES // 4)
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * COPY_BYTES / best(lambda: target.copy_(source))


class Nothing:
    """A data set whose samples cost nothing."""

    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def __len__(self) -> int:
        return BATCH * BATCHES

    def __getitem__(self, index: int) -> Any:
        return self.sample


def worker_seconds(torch: Any) -> dict[str, float]:
    """Starting a worker; what it spends on a batch besides its samples; taking a batch that is ready."""
    data = Nothing((torch.zeros(WIDTH), 0))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=1)
    begin = time.perf_counter()
    batches = iter(loader)
    next(batches)
    start = time.perf_counter() - begin
    taken = [_after_rest(batches) for _ in range(RESTED)]
    made = [_chunk(batches) for _ in range((BATCHES - RESTED) // CHUNK - 1)]
    samples = [data[at] for at in range(BATCH)]
    own = best(lambda: torch.utils.data.default_collate(samples))
    return {
        "worker_start_seconds": start,
        "worker_transport_seconds": min(taken),
        "worker_batch_seconds": max(0.0, min(made) - own),
    }


def _after_rest(batches: Any) -> float:
    """Seconds to take a batch that is ready."""
    time.sleep(REST_SECONDS)
    return best(lambda: next(batches), 1)


def _chunk(batches: Any) -> float:
    """Seconds a batch when many are asked for in a row: the worker cannot keep up with nothing."""
    return best(lambda: [next(batches) for _ in range(CHUNK)], 1) / CHUNK


def measure() -> dict[str, Any]:
    """All of it, on one thread: prices of a core."""
    import torch

    torch.set_num_threads(1)
    found: dict[str, Any] = {
        "torch": str(torch.__version__),
        "op_seconds_cpu": module_seconds(torch),
        "cpu_flops": core_flops(torch),
        "memory_bytes_per_second": memory_rate(torch),
    }
    return found | worker_seconds(torch)


if __name__ == "__main__":
    print(json.dumps(measure()))
