"""A made-up run in real time: one process writes the rings of all its ranks through the real writer.

For dashboards and scale tests that need device times, stragglers and many ranks without a GPU.

    python -m tests.replay --dir DIR --run NAME --ranks 8 [--straggler 3] [--seconds 60]
"""

from __future__ import annotations

import argparse
import math
import os
import socket
import sys
import time
from array import array
from pathlib import Path
from typing import Any

from sdk import ring
from sdk.writer import RingWriter

COMPUTE = {"transfer": 0.06, "forward": 0.32, "backward": 0.50, "optimizer": 0.10, "log": 0.01}
"""Shares of what is left of the step after waiting for data; 1 % belongs to no phase."""
TICK = 0.2
STRAGGLE = 1.35
SCALARS = ("cuda.allocated_bytes", "cuda.reserved_bytes", "accuracy")


class FakeRank:
    """One rank: commits the steps that are due."""

    def __init__(self, folder: Path, meta: dict[str, Any], period: float, data: float, slow: float) -> None:
        path = folder / f"{meta['run']}.{meta['rank']}.ring"
        self.writer = RingWriter(str(path), meta, slots=1024)
        self.period_ns, self.slow, self.steps = int(period * 1e9), slow, 0
        self.shares = {"data": data} | {name: (1 - data) * share for name, share in COMPUTE.items()}
        self.busy = (1 - data) * 0.9
        self.next = time.monotonic_ns()

    def advance(self, now: int) -> None:
        while self.next + self.period_ns <= now:
            self.step()
        self.writer.words[ring.H_LIVE] = ring.pack_live(ring.PHASES.index("forward"), self.next)

    def step(self) -> None:
        """The straggler loses its time in `data`; the others wait for it in `backward`."""
        record = array("Q", ring.EMPTY_RECORD)
        period = self.period_ns
        record[ring.W_BEGIN], record[ring.W_END] = self.next, self.next + period
        for name, share in self.shares.items():
            record[ring.W_PHASES + ring.PHASES.index(name)] = int(share * period)
        extra = int((self.slow - 1) * self.shares["backward"] * period)
        record[ring.W_PHASES + ring.PHASES.index("data")] += extra
        record[ring.W_PHASES + ring.PHASES.index("backward")] -= extra
        record[ring.W_SAMPLES] = 32
        record[ring.W_LOSS] = ring.float_bits(0.2 + 2.0 * math.exp(-self.steps / 400))
        record[ring.W_DEVICE_SEQ] = self.steps + 1
        record[ring.W_DEVICE_BUSY], record[ring.W_DEVICE_STARVED] = (
            int(self.busy * period),
            int((1 - self.busy) * period),
        )
        record[ring.W_DEVICE_LAG] = 1
        self.writer.commit(record)
        self.steps, self.next = self.steps + 1, self.next + period
        for index, value in enumerate((5e9, 6e9, 1 - math.exp(-self.steps / 500))):
            self.writer.scalars[index] = value


def meta(args: argparse.Namespace, rank: int) -> dict[str, Any]:
    local = args.first_gpu + rank % args.gpus
    return {
        "kind": "trainer",
        "run": args.run,
        "name": args.run,
        "rank": rank,
        "world": args.ranks,
        "local_rank": local,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "user": "ada",
        "slurm_job": args.slurm_job,
        "way": "api",
        "phases": [],
        "scalars": list(SCALARS),
        "batch_size": 32,
        "device": f"cuda:{local}",
        "device_uuid": f"GPU-51111111-0000-4000-8000-{local:012d}",
        "config": {},
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--run", default="replayed")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument(
        "--gpus", type=int, default=8, help="simulated GPUs of the daemon that reads the rings"
    )
    parser.add_argument("--first-gpu", type=int, default=0)
    parser.add_argument("--step", type=float, default=0.1, help="seconds a step")
    parser.add_argument("--data", type=float, default=0.3, help="share of the step that waits for data")
    parser.add_argument("--straggler", type=int, default=-1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--slurm-job", default="4711")
    args = parser.parse_args(arguments)
    slow = {args.straggler: STRAGGLE}
    ranks = [
        FakeRank(args.dir, meta(args, n), args.step, args.data, slow.get(n, 1.0)) for n in range(args.ranks)
    ]
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        for rank in ranks:
            rank.advance(time.monotonic_ns())
        time.sleep(TICK)
    for rank in ranks:
        rank.writer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
