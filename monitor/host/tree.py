"""The process tree, without reading every process at every tick.

Listing ``/proc`` is cheap; reading each process's parent is not. So parents are remembered, only new pids are
read, and nothing is done while the kernel's last pid has not moved. Reading ``task/*/children`` instead would
take one file per *thread* of a trainer, and there are dozens.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from monitor.host.procfs import Every, read_bytes

LOOK_SECONDS = 2.0
"""Our choice: a new child is found within two seconds."""
RELEARN_SECONDS = 60.0
"""Everything is reread this often: a pid may have been reused between two scans."""


def parse_parent(raw: bytes) -> int:
    """Parent pid from a process's stat file; the name in it may contain anything, even brackets."""
    return int(raw[raw.rfind(b")") + 2 :].split(None, 2)[1])


class ProcessTree:
    def __init__(self, proc: Path) -> None:
        self._proc = str(proc)
        self._parents: dict[int, int] = {}
        self._children: dict[int, list[int]] = {}
        self._look = Every(LOOK_SECONDS)
        self._relearn = Every(RELEARN_SECONDS)
        self._last_pid: int | None = None

    def refresh(self, now: float, last_pid: int | None, *, at_once: bool = False) -> None:
        """Bring the tree up to date. `last_pid` is the newest pid the kernel assigned, if known."""
        if at_once:
            self._look.reset()
        if not self._look.due(now):
            return
        if self._relearn.due(now):
            self._parents.clear()
        elif last_pid is not None and last_pid == self._last_pid:
            return
        self._last_pid = last_pid
        self._update()

    def _update(self) -> None:
        alive = {int(name) for name in _listing(self._proc) if name.isdigit()}
        for pid in self._parents.keys() - alive:
            del self._parents[pid]
        for pid in alive - self._parents.keys():
            raw = read_bytes(f"{self._proc}/{pid}/stat")
            if raw:
                self._parents[pid] = parse_parent(raw)
        children = defaultdict(list)
        for pid, parent in self._parents.items():
            children[parent].append(pid)
        self._children = children

    def descendants(self, roots: Collection[int]) -> dict[int, int]:
        """Descendant → its nearest root. A root below another root is not its descendant."""
        found: dict[int, int] = {}
        for root in roots:
            stack = list(self._children.get(root, ()))
            while stack:
                pid = stack.pop()
                if pid not in found and pid not in roots:
                    found[pid] = root
                    stack.extend(self._children.get(pid, ()))
        return found

    def forget(self, pid: int) -> None:
        """The process has gone; its pid may be reused."""
        self._parents.pop(pid, None)


def _listing(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
