"""Training loops whose bottleneck is known by construction, for `gpumon doctor --gpu-selftest`. Run by path
with the interpreter that trains (`python -P`); prints JSON.

    gpu_selftest.py prepare              sizes for this card, and how long kernels take in a step of each loop
    gpu_selftest.py LOOP SIZES STEPS     one loop, watched by gpumon: how long a step takes, by events

Kernel times come from torch's profiler in a process that gpumon does not watch, step times from this script's
own events. Neither comes from gpumon's recorder.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

WIDTH = 1024
STEP_SECONDS = 0.010
PART, SMALL = 0.3, 0.05
"""Device work, as a share of a whole step: in a loop that waits for something else, and of a kernel between
two reads."""
READS, DECISION_SECONDS = 20, 0.00015
"""The host's time after each read is shorter than the kernel before it: without reads, nothing would wait."""
LOAD_SECONDS, COPY_SECONDS = 0.007, 0.006
WARM, WINDOW = 5, 6
FIRST_ROWS, MOST_ROWS = 64, 1 << 18
FIRST_LAYERS, FIRST_BYTES = 10, 8 << 20
Step = Callable[[], None]


class Wide:
    """Device work of any length in a few launches: one wide layer, forward, backward and update."""

    def __init__(self, torch: Any, device: Any, rows: int) -> None:
        self.model = torch.nn.Linear(WIDTH, WIDTH, bias=False).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6)
        self.x = torch.randn(max(1, rows), WIDTH, device=device)

    def train(self, x: Any = None) -> None:
        loss = self.model(self.x if x is None else x).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def healthy(torch: Any, device: Any, sizes: dict[str, int]) -> Step:
    """Nothing but device work."""
    return Wide(torch, device, sizes["rows"]).train


def launch(torch: Any, device: Any, sizes: dict[str, int]) -> Step:
    """Many tiny kernels: the device runs them faster than the host can launch them."""
    nn = torch.nn
    layers = [nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Tanh()) for _ in range(sizes["layers"])]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    x = torch.randn(4, 8, device=device)

    def step() -> None:
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


class Slow:
    """A dataset whose samples take a while."""

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> float:
        time.sleep(LOAD_SECONDS)
        return 0.0


def input_wait(torch: Any, device: Any, sizes: dict[str, int]) -> Step:
    """A loader without workers that takes longer than the device's work."""
    wide = Wide(torch, device, int(sizes["rows"] * PART))
    batches: Iterator[Any] = iter(torch.utils.data.DataLoader(Slow(), batch_size=1))

    def step() -> None:
        batch = next(batches).float().to(device)
        wide.train(wide.x + batch)

    return step


def sync(torch: Any, device: Any, sizes: dict[str, int]) -> Step:
    """The host reads a value after every kernel, decides, and only then launches the next."""
    wide = Wide(torch, device, int(sizes["rows"] * SMALL))
    weight = torch.randn(WIDTH, WIDTH, device=device)

    def step() -> None:
        for _ in range(READS):
            (wide.x @ weight)[0, 0].item()
            _busy(DECISION_SECONDS)
        wide.train()

    return step


def _busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def copy(torch: Any, device: Any, sizes: dict[str, int]) -> Step:
    """Every batch is copied from pageable memory, and the host waits for it."""
    wide = Wide(torch, device, int(sizes["rows"] * PART))
    batch = torch.zeros(max(WIDTH, sizes["bytes"] // 4))

    def step() -> None:
        x = batch.to(device)
        wide.train(wide.x + x[:WIDTH])

    return step


LOOPS = {"healthy": healthy, "launch": launch, "input": input_wait, "sync": sync, "copy": copy}


# ── sizes and truth ──────────────────────────────────────────────────────────────────────────────────


def seconds_of(torch: Any, device: Any, step: Step, steps: int = WARM) -> float:
    """Seconds per step, from an idle device to an idle device."""
    step()
    torch.accelerator.synchronize(device)
    began = time.perf_counter()
    for _ in range(steps):
        step()
    torch.accelerator.synchronize(device)
    return (time.perf_counter() - began) / steps


def find_sizes(torch: Any, device: Any) -> dict[str, int]:
    """Sizes for which a step of each loop takes about ten milliseconds on this card."""
    rows = FIRST_ROWS
    while (took := _wide_seconds(torch, device, rows)) < STEP_SECONDS / 2 and rows < MOST_ROWS:
        rows *= 2
    rows = max(FIRST_ROWS, int(rows * STEP_SECONDS / took))
    tiny = seconds_of(torch, device, launch(torch, device, {"layers": FIRST_LAYERS}))
    block = torch.zeros(FIRST_BYTES // 4)
    copied = seconds_of(torch, device, lambda: block.to(device))
    return {
        "rows": rows,
        "layers": max(1, int(FIRST_LAYERS * STEP_SECONDS / tiny)),
        "bytes": int(FIRST_BYTES * COPY_SECONDS / copied),
    }


def _wide_seconds(torch: Any, device: Any, rows: int) -> float:
    return seconds_of(torch, device, Wide(torch, device, rows).train)


def kernel_seconds(torch: Any, device: Any, step: Step) -> float:
    """Seconds per step in which any kernel ran, from torch's profiler with device activity only."""
    for _ in range(WARM):
        step()
    torch.accelerator.synchronize(device)
    kinds = torch.profiler.supported_activities() - {torch.profiler.ProfilerActivity.CPU}
    with torch.profiler.profile(activities=list(kinds)) as window:
        for _ in range(WINDOW):
            step()
        torch.accelerator.synchronize(device)
    host = torch.autograd.DeviceType.CPU
    spans = [
        (event.time_range.start, event.time_range.end)
        for event in window.events()
        if event.device_type != host and not event.name.startswith(("Memcpy", "Memset"))
    ]
    return _union(spans) / 1e6 / WINDOW


def _union(spans: list[tuple[float, float]]) -> float:
    total = reached = 0.0
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def prepare(torch: Any, device: Any) -> dict[str, Any]:
    sizes = find_sizes(torch, device)
    kernels = {
        name: kernel_seconds(torch, device, make(torch, device, sizes)) for name, make in LOOPS.items()
    }
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "sizes": sizes,
        "kernel_seconds": kernels,
    }


def train(torch: Any, device: Any, name: str, sizes: dict[str, int], steps: int) -> dict[str, Any]:
    """The loop, watched by gpumon, with an event of our own after every step."""
    step = LOOPS[name](torch, device, sizes)
    events = [torch.Event(device=device, enable_timing=True) for _ in range(steps)]
    for event in events:
        step()
        event.record()
    torch.accelerator.synchronize(device)
    ends = [events[0].elapsed_time(event) / 1e3 for event in events]
    lengths = sorted(later - sooner for sooner, later in itertools.pairwise(ends))
    return {"step_seconds": lengths[len(lengths) // 2], "steps": steps}


def main(words: list[str]) -> dict[str, Any]:
    import torch

    device = torch.accelerator.current_accelerator(check_available=True)
    if device is None or device.type in ("cpu", "mps"):
        return {"error": "torch found no GPU"}
    device = torch.device(device.type, 0)
    if words[0] == "prepare":
        return prepare(torch, device)
    return train(torch, device, words[0], json.loads(words[1]), int(words[2]))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
