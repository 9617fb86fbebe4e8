"""Compiles the stand-in against the installed torch, once per version of its sources, torch and Python."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NATIVE = Path(__file__).parent / "native"
NVML = Path(__file__).parents[1] / "nvml"
"""Its control file is fed from the device's timeline; nvml.h has the format."""
TORCH_VERSION = "2.13.0"
"""The stand-in uses torch's internal interfaces: it works with this version only."""
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wno-unknown-pragmas")
HEADERS = ("ATen/ATen.h", "ATen/core/LegacyTypeDispatch.h", "torch/library.h")
"""Torch's, compiled once for all sources: reading them takes most of the compiler's time."""


class Unavailable(RuntimeError):
    """The stand-in cannot be built here; the message says why."""


def build() -> Path:
    """The compiled library, from this user's cache outside the repository."""
    compiler, torch = _compiler(), _torch_folder()
    folder = Path(tempfile.gettempdir()) / f"gpumon-device-{os.getuid()}"
    library = folder / _digest([*sorted(NATIVE.iterdir()), NVML / "nvml.h"], torch) / "gpumon_standin.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one test process builds, others wait
        if not library.exists():
            with tempfile.TemporaryDirectory(dir=folder) as work:
                _link(compiler, torch, _objects(compiler, torch, folder, Path(work)), Path(work), library)
    return library


def _compiler() -> str:
    found = shutil.which(os.environ.get("CXX", "g++"))
    if not found:
        raise Unavailable("no C++ compiler (Debian: apt-get install g++)")
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        raise Unavailable("no Python headers (Debian: apt-get install python3-dev)")
    return found


def _torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise Unavailable("torch is not installed")
    version = importlib.metadata.version("torch")
    if version.split("+")[0] != TORCH_VERSION:
        raise Unavailable(f"written for torch {TORCH_VERSION}, found {version}")
    folder = Path(spec.origin).parent
    if (folder / "lib" / "libtorch_cuda.so").exists():
        raise Unavailable("this torch has CUDA of its own")
    return folder


def _digest(files: Iterable[Path], *where: Path) -> str:
    """Of what decides the outcome. An object is the same for every installation of the same torch."""
    identity = f"{importlib.metadata.version('torch')} {sys.version} {where} {FLAGS} {HEADERS}"
    digest = hashlib.sha256(identity.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _objects(compiler: str, torch: Path, folder: Path, work: Path) -> list[Path]:
    """One object per source, reused from earlier builds with the same source and headers."""
    headers = [*sorted(NATIVE.glob("*.h")), NVML / "nvml.h"]
    kept = {
        source: folder / f"{source.stem}-{_digest([source, *headers])}.o"
        for source in sorted(NATIVE.glob("*.cpp"))
    }
    missing = [source for source, made in kept.items() if not made.exists()]
    command = [compiler, *FLAGS, *_includes(torch)]
    begin = _torchs_headers(command, work) if missing else work

    def compiled(source: Path) -> None:
        made = work / f"{source.stem}.o"
        _run(*command, "-include", str(begin), "-c", str(source), "-o", str(made))
        made.replace(kept[source])

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(compiled, missing))
    return list(kept.values())


def _torchs_headers(command: list[str], work: Path) -> Path:
    """A header that includes torch's. The compiler finds it precompiled beside it: large, so not kept."""
    header = work / "torch.h"
    header.write_text("".join(f"#include <{name}>\n" for name in HEADERS))
    _run(*command, "-x", "c++-header", str(header), "-o", f"{header}.gch")
    return header


def _includes(torch: Path) -> list[str]:
    theirs = (torch / "include", torch / "include" / "torch" / "csrc" / "api" / "include")
    ours = [f"-I{NVML}", f"-I{sysconfig.get_paths()['include']}"]
    return ours + [part for folder in theirs for part in ("-isystem", str(folder))]


def _link(compiler: str, torch: Path, objects: list[Path], work: Path, library: Path) -> None:
    linked = work / library.name
    where = torch / "lib"
    libraries = ("-lc10", "-ltorch_cpu", "-ltorch_python", f"-L{where}", f"-Wl,-rpath,{where}")
    _run(compiler, "-shared", *map(str, objects), *libraries, "-o", str(linked))
    linked.replace(library)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the stand-in does not compile: {' '.join(command)}\n{done.stderr[-4000:]}")
