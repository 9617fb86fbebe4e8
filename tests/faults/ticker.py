"""A reader with its history in a separate process that ticks on demand: it can be stopped, killed, or given
another clock or failing system calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE
from tests.faults.people import ROOT

READER = """
import json, resource, sys
from pathlib import Path
from monitor.host.limits import raise_descriptor_limit
from monitor.model.clock import Moment, WallWatch
from monitor.runs.reader import RunReader
from monitor.store.store import Store

folder, files = Path(sys.argv[1]), int(sys.argv[2])
if files:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
store = Store(folder / "history.db")
reader = RunReader([folder], sink=store)
watch = WallWatch()
for line in sys.stdin:
    if line.strip() == "raise":
        print(json.dumps(raise_descriptor_limit()), flush=True)
        continue
    now = Moment.now()
    jump = watch.see(now)
    reader.poll(now)
    runs = reader.runs(now, (), ())
    answer = {
        "wall": now.wall,
        "jump": jump,
        "runs": {run.id: [run.state, run.steps, run.lost] for run in runs},
        "dropped": reader.dropped,
        "history": store.error,
    }
    print(json.dumps(answer), flush=True)
"""


@dataclass(frozen=True)
class Seen:
    """What one tick saw."""

    wall: float
    jump: float
    runs: dict[str, list[Any]]
    dropped: dict[str, int]
    history: str | None

    def state(self, run: str) -> str | None:
        return self.runs[run][0] if run in self.runs else None

    def steps(self, run: str) -> int:
        """Steps read and lost."""
        return int(self.runs[run][1]) if run in self.runs else 0


class Ticker:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tick(self) -> Seen:
        self.start()
        return self.answer()

    def start(self) -> None:
        self._tell("tick")

    def answer(self) -> Seen:
        return Seen(**self._hear())

    def raise_limit(self) -> int:
        self._tell("raise")
        return int(self._hear())

    def _tell(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()

    def _hear(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the reader is gone"
        return json.loads(line)


@contextmanager
def ticker(folder: Path, *, files: int = 0, env: Mapping[str, str] | None = None) -> Iterator[Ticker]:
    """A reader of `folder`, allowed `files` open files (0: the usual limit); gone at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(folder), str(files)],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Ticker(process)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)
