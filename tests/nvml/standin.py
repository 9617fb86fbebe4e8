"""Steers our own `libnvidia-ml.so.1` while processes run on it: real `pynvml`, no GPU.

    with StandIn(gpus=8) as nvml:
        child = subprocess.Popen([...], env={**os.environ, **nvml.environment()})
        nvml.gpu(3).set(temperature=91, throttle=0x40)  # readings, in NVML's own units
        nvml.gpu(3).absent("fan", "power")              # "not supported": must come out as None
        nvml.gpu(3).fail("power", 999)                  # any other error code for one reading
        nvml.gpu(2).lose(); nvml.gpu(2).find()          # falls off the bus, and comes back
        nvml.gpu(1).hang(); nvml.gpu(1).unhang()        # calls for one GPU do not return
        nvml.hang(); nvml.unhang()                      # no call returns
        nvml.xid(3, 79)                                 # an XID event
        nvml.gpu(0).processes(Proc(pid=4242, memory=6 << 30, sm=55))
        nvml.gpu(0).mig(MigSlice(gi=1, ci=0, used=1 << 30, total=10 << 30))
        nvml.unload(); nvml.load()                      # driver gone; back, with all handles invalid
        nvml.count = 7                                  # GPUs disappear and appear
        nvml.calls()                                    # function name → how often it was called

Names and defaults of the readings are the PROPERTIES list in nvml.h. pynvml finds the library through
LD_LIBRARY_PATH, which a process reads only when it starts: use `environment()` for children.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).parent
SOURCES = (HERE / "nvml.c", HERE / "nvml.h")
NOT_SUPPORTED, DRIVER_NOT_LOADED, GPU_IS_LOST = 3, 9, 15
NO_INSTANCE = 0xFFFFFFFF
_PROPERTY = re.compile(r"\bP\((\w+), (\d+), (\d+)\)")
PROPERTIES = {
    name: (int(value), int(status)) for name, value, status in _PROPERTY.findall(SOURCES[1].read_text())
}
_INDEX = {name: number for number, name in enumerate(PROPERTIES)}
MAX_GPUS, MAX_PROCESSES, MAX_MIG, MAX_XIDS, MAX_FUNCTIONS = 64, 32, 7, 16, 160


class _Property(ctypes.Structure):
    _fields_ = [("value", ctypes.c_int64), ("status", ctypes.c_int64)]


class _Process(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("pid", "kind", "sm", "gi", "ci", "unused")]
    _fields_ += [("memory", ctypes.c_uint64)]


class _Mig(ctypes.Structure):
    _fields_ = [
        ("gi", ctypes.c_uint32),
        ("ci", ctypes.c_uint32),
        ("used", ctypes.c_uint64),
        ("total", ctypes.c_uint64),
        ("uuid", ctypes.c_char * 96),
        ("name", ctypes.c_char * 96),
    ]


class _Gpu(ctypes.Structure):
    _fields_ = [
        *[
            (name, ctypes.c_int64)
            for name in ("error", "hang", "xid_head", "process_count", "mig_count", "minor")
        ],
        ("xids", ctypes.c_int64 * MAX_XIDS),
        ("xid_devices", ctypes.c_int64 * MAX_XIDS),
        ("name", ctypes.c_char * 96),
        ("uuid", ctypes.c_char * 96),
        ("bus_id", ctypes.c_char * 32),
        ("processes", _Process * MAX_PROCESSES),
        ("mig", _Mig * MAX_MIG),
        ("properties", _Property * len(PROPERTIES)),
    ]


class _Function(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 56), ("calls", ctypes.c_int64)]


class _Control(ctypes.Structure):
    _fields_ = [
        *[
            (name, ctypes.c_int64)
            for name in (
                "magic",
                "size",
                "gpu_count",
                "driver_error",
                "hang",
                "epoch",
                "latch_count",
                "cuda_version",
                "library",
            )
        ],
        ("driver_version", ctypes.c_char * 80),
        ("nvml_version", ctypes.c_char * 80),
        ("functions", _Function * MAX_FUNCTIONS),
        ("gpus", _Gpu * MAX_GPUS),
    ]


@dataclass(frozen=True, slots=True)
class Proc:
    """A process on a GPU; `kind` 0 compute, 1 graphics, 2 MPS; `sm` in percent."""

    pid: int
    memory: int = 1 << 30
    sm: int = 0
    kind: int = 0
    gi: int = NO_INSTANCE
    ci: int = NO_INSTANCE


@dataclass(frozen=True, slots=True)
class MigSlice:
    """A MIG instance."""

    gi: int
    ci: int = 0
    used: int = 0
    total: int = 10 << 30
    name: str = "stand-in MIG 1g.10gb"


class GpuControl:
    """One GPU of the stand-in; every change is seen by the next NVML call."""

    def __init__(self, gpu: _Gpu, index: int) -> None:
        self._gpu = gpu
        self.index = index
        gpu.minor = index
        gpu.name = b"stand-in H100 80GB"
        gpu.uuid = f"GPU-00000000-0000-4000-8000-{index:012d}".encode()
        gpu.bus_id = f"00000000:{16 + index:02X}:00.0".encode()
        for name, (value, status) in PROPERTIES.items():
            self._property(name).value, self._property(name).status = value, status

    @property
    def uuid(self) -> str:
        return str(self._gpu.uuid.decode())

    def become(self, uuid: str) -> None:
        """Another card is at this index: what a process sees when a GPU before it went away."""
        self._gpu.uuid = uuid.encode()

    def _property(self, name: str) -> _Property:
        return self._gpu.properties[_INDEX[name]]  # type: ignore[no-any-return]

    def set(self, **values: int) -> None:
        """Readings in NVML's own units (mW, MHz, %, °C, bytes, KiB/s); they answer from now on."""
        for name, value in values.items():
            self._property(name).value = value
            self._property(name).status = 0

    def reading(self, name: str) -> int:
        """What NVML answers for it now."""
        return int(self._property(name).value)

    def absent(self, *names: str) -> None:
        """These readings are "not supported"; without names, all are."""
        for name in names or PROPERTIES:
            self.fail(name, NOT_SUPPORTED)

    def fail(self, name: str, code: int) -> None:
        self._property(name).status = code

    def lose(self, code: int = GPU_IS_LOST) -> None:
        self._gpu.error = code

    def find(self) -> None:
        self._gpu.error = 0

    def hang(self) -> None:
        self._gpu.hang = 1

    def unhang(self) -> None:
        self._gpu.hang = 0

    def xid(self, code: int, names: int | None = None) -> None:
        """An event in this GPU's set; `names` is the GPU it is about, when that is another one."""
        self._gpu.xids[self._gpu.xid_head % MAX_XIDS] = code
        self._gpu.xid_devices[self._gpu.xid_head % MAX_XIDS] = self.index if names is None else names
        self._gpu.xid_head += 1

    def processes(self, *processes: Proc) -> None:
        """Exactly these processes are on the GPU."""
        self._gpu.process_count = 0
        for number, process in enumerate(processes):
            self._gpu.processes[number] = _Process(
                process.pid, process.kind, process.sm, process.gi, process.ci, 0, process.memory
            )
        self._gpu.process_count = len(processes)

    def mig(self, *slices: MigSlice) -> None:
        """MIG mode on, with these instances; none: off."""
        for number, part in enumerate(slices):
            uuid = f"MIG-{self.index:08d}-0000-4000-8000-{number:012d}"
            self._gpu.mig[number] = _Mig(
                part.gi, part.ci, part.used, part.total, uuid.encode(), part.name.encode()
            )
        self._gpu.mig_count = len(slices)
        self.set(mig_mode=1 if slices else 0)


class StandIn:
    """The library and its control file; a context manager that removes the file at the end."""

    def __init__(self, gpus: int = 1) -> None:
        self.library = build()
        self._directory = Path(tempfile.mkdtemp(prefix="gpumon-nvml-"))
        self._path = self._directory / "control"
        self._path.write_bytes(bytes(ctypes.sizeof(_Control)))
        with self._path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._control = _Control.from_buffer(self._map)
        self._gpus = [GpuControl(self._control.gpus[index], index) for index in range(MAX_GPUS)]
        self._control.gpu_count = gpus
        self._control.cuda_version = 13000
        self._control.driver_version = b"999.01"
        self._control.nvml_version = b"13.999.01"
        self._control.size = ctypes.sizeof(_Control)

    def __enter__(self) -> StandIn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let hanging calls go and remove the control file; processes keep their mapping."""
        self.unhang()
        for gpu in self._gpus:
            gpu.unhang()
        shutil.rmtree(self._directory, ignore_errors=True)

    def environment(self) -> dict[str, str]:
        """What a child process needs in its environment to find the stand-in and its control file."""
        inherited = os.environ.get("LD_LIBRARY_PATH")
        paths = [str(self.library.parent), *([inherited] if inherited else [])]
        return {"LD_LIBRARY_PATH": ":".join(paths), "GPUMON_NVML_CONTROL": str(self._path)}

    def gpu(self, index: int) -> GpuControl:
        return self._gpus[index]

    @property
    def count(self) -> int:
        return int(self._control.gpu_count)

    @count.setter
    def count(self, gpus: int) -> None:
        self._control.gpu_count = gpus

    def latch_count(self, on: bool = True) -> None:
        """New GPUs show only after the next nvmlInit, as on real hardware."""
        self._control.latch_count = int(on)

    def hang(self) -> None:
        self._control.hang = 1

    def unhang(self) -> None:
        self._control.hang = 0

    def xid(self, index: int, code: int) -> None:
        self.gpu(index).xid(code)

    def unload(self, code: int = DRIVER_NOT_LOADED) -> None:
        """The driver goes away: every call answers `code`, also nvmlInit."""
        self._control.driver_error = code

    def load(self, library: int = 0) -> None:
        """The driver is (re)loaded: old handles are invalid until the process calls nvmlInit again.

        With `library`, the new driver only works with a library built as that version."""
        self._control.epoch += 1
        self._control.library = library
        self._control.driver_error = 0

    def calls(self) -> dict[str, int]:
        """How often each function was called so far, by all processes together."""
        return {entry.name.decode(): entry.calls for entry in self._control.functions if entry.name}


def build(version: int = 1) -> Path:
    """The compiled library; compiled once per version of its source, in a cache of this user."""
    text = b"".join([*(source.read_bytes() for source in SOURCES), str(version).encode()])
    digest = hashlib.sha256(text).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"gpumon-nvml-{os.getuid()}-{digest}"
    library = folder / "libnvidia-ml.so.1"
    if library.exists():
        return library
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc) for the NVML stand-in; Debian: apt-get install gcc")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    fresh = folder / f"building-{os.getpid()}"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    flags.append(f"-DLIBRARY_VERSION={version}")
    subprocess.run([compiler, *flags, "-o", str(fresh), str(SOURCES[0])], check=True)
    fresh.rename(library)
    _check_layout(library)
    return library


def _check_layout(library: Path) -> None:
    """Both sides must mean the same bytes: a changed structure on one side only fails here."""
    theirs = ctypes.CDLL(str(library)).gpumon_control_size()
    if theirs != ctypes.sizeof(_Control):
        library.unlink()
        raise AssertionError(f"control file: {theirs} bytes in C, {ctypes.sizeof(_Control)} in Python")
