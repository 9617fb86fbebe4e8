"""Measures in about a second what torch's own work costs on this machine, for predictions. Run by path with
the interpreter that trains (`gpumon doctor --calibrate`), never during a training; prints JSON.

Each figure is the best of a few rounds: noise only ever adds time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 5
"""Chosen, here and below, so that everything takes about a second."""
LAYERS, WIDTH = 16, 8
"""A model so small that its time is all module overhead."""
SIDE = 256
"""Size of the matrices whose product gives the rate: as in small models."""
COPY_BYTES = 64 << 20
"""More than fits in any cache."""
BATCHES, BATCH = 150, 32
RESTED, REST_SECONDS = 30, 0.005
"""Batches taken after a rest, during which a worker gets the next, empty batch ready."""
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
    """What a module costs per pass, however small its input."""
    layers = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    model, batch = torch.nn.Sequential(*layers), torch.zeros(1, WIDTH)

    def passes() -> None:
        model.zero_grad()
        model(batch).sum().backward()

    passes()
    return best(passes, 4 * ROUNDS) / (2 * len(layers))


def core_flops(torch: Any) -> float:
    """Floating-point operations per second of one core in small matrix products."""
    one, two = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    torch.mm(one, two)
    return float(2 * SIDE**3 / best(lambda: torch.mm(one, two), 4 * ROUNDS))


def memory_rate(torch: Any) -> float:
    """Bytes per second, read plus written, that one core copies from memory to memory."""
    source = torch.zeros(COPY_BYTES // 4)
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * COPY_BYTES / best(lambda: target.copy_(source))


class Nothing:
    """A dataset whose samples cost nothing."""

    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def __len__(self) -> int:
        return BATCH * BATCHES

    def __getitem__(self, index: int) -> Any:
        return self.sample


def worker_seconds(torch: Any) -> dict[str, float]:
    """Seconds to start a worker, to take a batch that is ready, and that it spends on a batch besides its
    samples."""
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
    """Seconds per batch when many are taken in a row: the worker cannot keep up with a loop that does no
    work."""
    return best(lambda: [next(batches) for _ in range(CHUNK)], 1) / CHUNK


def measure() -> dict[str, Any]:
    """Everything, on one thread: the costs of one core."""
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
