"""Kernels in C for the heavy parts of a step on a CPU, compiled on the machine when they are first wanted.

Plain C with the compiler's own vectors, no header of torch: `cc` takes a few seconds, and the result is kept
in ~/.cache/gpumon/native. Without a compiler, or on a CPU without AVX2, there are none, and the library's do.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

SOURCES = Path(__file__).parent
FLAGS = {
    "AVX2": ("-mavx2", "-mfma"),
    "AVX512": ("-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma", "-mprefer-vector-width=512"),
}
"""By what torch itself may use of the CPU."""
NUMBERS = (
    "lanes",
    "panel",
    "causal_scratch",
    "lstm_scratch",
    "winograd_scratch",
    "encoder_kept",
    "encoder_scratch",
    "strided_scratch",
)
"""Functions that return one."""
PATIENCE = 120
"""Seconds for the compiler."""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels; None where they cannot be had."""
    flags = FLAGS.get(torch.backends.cpu.get_cpu_capability())
    compiler = shutil.which(os.environ.get("CC") or "cc")
    if flags is None or compiler is None:
        return None
    try:
        found = ctypes.CDLL(str(_built(compiler, flags)))
    except (OSError, subprocess.SubprocessError):
        return None
    for name in NUMBERS:
        getattr(found, name).restype = ctypes.c_long
    return found


def _built(compiler: str, flags: Sequence[str]) -> Path:
    sources = sorted(SOURCES.glob("*.c"))
    digest = hashlib.sha256(repr((compiler, flags)).encode())
    for path in sorted([*sources, *SOURCES.glob("*.h")]):
        digest.update(path.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    place = Path(home) / "gpumon" / "native" / f"kernels-{digest.hexdigest()[:20]}.so"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:  # ranks may build side by side
            made = Path(folder) / place.name
            words = [compiler, "-O3", *flags, "-shared", "-fPIC", *map(str, sources), "-o", str(made)]
            subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE)
            made.replace(place)
    return place


def version() -> str:
    """Of the kernels there are: what was measured with others does not count."""
    found = library()
    return "none" if found is None else Path(found._name).stem


def fits(width: int, *, panels: bool = False) -> bool:
    """Whether the kernels are there and take layers of this width."""
    return library() is not None and width % number("panel" if panels else "lanes") == 0


def call(name: str, *arguments: Tensor | Sequence[Tensor] | int | None) -> None:
    """One kernel. Tensors are float32 and contiguous, and stay alive until it returns."""
    found = library()
    assert found is not None, "ask `fits` first"
    getattr(found, name)(*map(_passed, arguments))


def _passed(argument: Tensor | Sequence[Tensor] | int | None) -> object:
    if argument is None:
        return ctypes.c_void_p(None)
    if isinstance(argument, int):
        return ctypes.c_long(argument)
    if isinstance(argument, Tensor):
        return ctypes.c_void_p(argument.data_ptr())
    return (ctypes.c_void_p * len(argument))(*(part.data_ptr() for part in argument))


def shared_out(rows: int, work: Callable[[int, int, int], None]) -> None:
    """`work(thread, first, last)` over all rows, in as many threads as torch uses; C holds no lock."""
    threads = thread_count(rows)
    if threads == 1:
        work(0, 0, rows)
        return
    bounds = [rows * number // threads for number in range(threads + 1)]
    list(_pool(os.getpid(), threads).map(work, range(threads), bounds[:-1], bounds[1:]))


def thread_count(rows: int) -> int:
    return max(1, min(torch.get_num_threads(), rows))


def total(parts: Tensor) -> Tensor:
    """What all threads have summed up, each in a part of its own."""
    return parts[0] if len(parts) == 1 else parts.sum(0)


@functools.cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """A process that was forked needs threads of its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"kernels-{process}")


def number(name: str, *arguments: int) -> int:
    """A size the kernels know: of a panel of packed weights, of the room they need."""
    found = library()
    assert found is not None, "ask `fits` first"
    return int(getattr(found, name)(*map(ctypes.c_long, arguments)))
