"""Keeping decoded data: does it fit, a memory-mapped store on disk, and what it was made from."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from sdk.units import size
from trainers.errors import EXIT_FAILED, TrainerError

SPARE = 0.8
"""A cache takes at most this share of the free memory: the training needs some too."""


def available_memory() -> int:
    """Bytes a process may still take here: the kernel's figure, or the container's limit if lower."""
    free = _meminfo_available()
    limit = _cgroup_free()
    return free if limit is None else min(free, limit)


def _meminfo_available() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 33


def _cgroup_free() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return None if limit == "max" else max(0, int(limit) - int(used))


def fits_in_memory(needed: int, what: str, say: Callable[[str], None]) -> bool:
    """Whether a cache may be kept; when not, one line says why and training goes on without."""
    free = available_memory()
    if needed <= free * SPARE:
        return True
    say(
        f"{what} needs {size(needed)}, {size(free)} are free: "
        "going on without the cache (fewer workers or a smaller --prefetch_factor also save memory)"
    )
    return False


def fingerprint(paths: Iterable[Path | str], **settings: object) -> str:
    """What a cache was made from: settings, and name, size and time of every file.

    Settings alone would go stale: the same `time_k` over changed data is another graph.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for path in sorted(map(str, paths)):
        stat = os.stat(path)
        digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:20]


def array_fingerprint(array: np.ndarray, **settings: object) -> str:
    """The same for data that is already in memory: its bytes count."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    digest.update(f"{array.shape}{array.dtype}".encode())
    digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()[:20]


def check_disk_space(folder: Path, needed: int) -> None:
    """Refuse before writing, not in the middle of it."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if needed > free * 0.95:
        raise TrainerError(
            f"the cache in {folder} needs {size(needed)}, the disk has {size(free)} left",
            hint="clear old caches (--clear_cache) or choose another --cache_dir",
        )


class ArrayStore:
    """Arrays decoded once, memory-mapped ever after: workers and runs share one page cache."""

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder
        self.key = key

    def path(self, name: str) -> Path:
        return self.folder / f"{self.key}.{name}.npy"

    def exists(self, *names: str) -> bool:
        return all(self.path(name).exists() for name in names)

    def open(self, name: str) -> np.ndarray:
        return np.lib.format.open_memmap(self.path(name), mode="r")

    def create(self, name: str, shape: tuple[int, ...], dtype: type) -> np.memmap:
        """A new array under a temporary name; `commit` makes it visible whole or not at all."""
        check_disk_space(self.folder, int(np.prod(shape)) * np.dtype(dtype).itemsize)
        temporary = self._temporary(name)
        array = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
        # A mapped page that cannot be written ends the process with a signal: reserve the space now.
        with open(temporary, "r+b") as stream:
            _reserve(stream.fileno(), temporary)
        return array

    def commit(self, name: str) -> None:
        self._temporary(name).replace(self.path(name))

    def _temporary(self, name: str) -> Path:
        """A name of this process alone: ranks and runs may build the same store at once."""
        return self.path(name).with_suffix(f".tmp{os.getpid()}")

    def clear_others(self) -> int:
        """Remove stores of other keys (stale data or settings); returns how many files went."""
        stale = [p for p in self.folder.glob("*.np*") if not p.name.startswith(f"{self.key}.")]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)


def _reserve(file: int, path: Path) -> None:
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file, 0, os.fstat(file).st_size)
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise TrainerError(
                f"the cache {path.parent} cannot be written: {error.strerror}",
                hint="clear old caches or choose another --cache_dir",
                code=EXIT_FAILED,
            ) from error


def clear(folder: Path) -> int:
    """Remove a cache folder; returns how many files it held."""
    count = sum(1 for _ in folder.glob("*")) if folder.exists() else 0
    shutil.rmtree(folder, ignore_errors=True)
    return count
