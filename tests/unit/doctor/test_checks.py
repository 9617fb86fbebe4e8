"""Checks on prepared machines: each status with its reason, and a remedy with every complaint."""

from __future__ import annotations

import dataclasses
import os
import re
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from monitor import __version__
from monitor.doctor import gpu, machine, service, software, storage
from monitor.doctor.check import Check, Context, Result, all_checks, check, run_check
from monitor.doctor.probes import NvmlAnswer, ProbeError, ProbeHung, ask_python
from monitor.host.listeners import is_daemon_command
from monitor.host.procfs import Roots
from monitor.model.errors import UserError
from monitor.model.gpu import Gpu, Source
from monitor.model.host import Host
from monitor.model.settings import Settings
from monitor.model.snapshot import Collector, Snapshot

NO_LIBRARY = NvmlAnswer(error="NVML Shared Library Not Found", code=gpu.LIBRARY_NOT_FOUND)
TWO_GPUS = NvmlAnswer(
    driver="570.1", cuda="12.8", gpus=({"index": 0, "name": "H"}, {"index": 1, "name": "H"})
)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A machine without anything: empty /proc and /sys, no NVML, no daemon."""
    settings = Settings(dir=(tmp_path / "rings",), socket=tmp_path / "s.sock", store=None, listen=None)
    made = Context(settings, roots=Roots(proc=tmp_path / "proc", sys=tmp_path / "sys"))
    (tmp_path / "proc").mkdir()
    made.nvml = NO_LIBRARY
    return made


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def with_settings(context: Context, **changed: Any) -> Context:
    return dataclasses.replace(context, settings=dataclasses.replace(context.settings, **changed))


def complains(result: Result, status: str, words: str) -> None:
    assert result.status == status, result
    assert re.search(words, result.detail), result.detail
    assert result.remedy


# ── The frame ────────────────────────────────────────────────────────────────────────────────────


def test_ids_are_promised() -> None:
    """Scripts use them: a change here breaks somebody's."""
    assert [item.id for item in all_checks()] == [
        "python",
        "versions",
        "torch",
        "names",
        "driver",
        "nvml",
        "device-permissions",
        "ring-directory",
        "shm",
        "history",
        "port",
        "socket",
        "daemon",
        "container",
        "processes",
        "psi",
        "clock",
        "calibration",
    ]


def test_an_id_cannot_be_taken_twice() -> None:
    with pytest.raises(ValueError, match="two checks"):
        check("python", "again")(lambda context: Result("PASS", ""))


def test_what_the_machine_refuses_is_a_warning_not_a_crash(context: Context) -> None:
    def refused(context: Context) -> Result:
        raise PermissionError(13, "Permission denied")

    complains(run_check(Check("x", "x", refused), context), "WARN", "could not be checked")


# ── GPU ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_machine_without_gpu_is_a_warning_that_says_how_to_try(context: Context) -> None:
    result = gpu.driver(context)
    complains(result, "WARN", "host readings only")
    assert "--source simulated" in str(result.remedy)
    assert gpu.nvml(context).status == "SKIP"


@pytest.mark.parametrize(("nouveau", "words"), [(True, "nouveau"), (False, "install NVIDIA's driver")])
def test_a_card_without_driver(context: Context, nouveau: bool, words: str) -> None:
    write(context.roots.sys / "bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    write(context.roots.sys / "bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    write(context.roots.sys / "bus/pci/devices/0000:01:00.1/vendor", "0x10de\n")
    write(context.roots.sys / "bus/pci/devices/0000:01:00.1/class", "0x040300\n")  # its sound device
    if nouveau:
        write(context.roots.sys / "module/nouveau/version", "")
    result = gpu.driver(context)
    complains(result, "WARN", r"1 NVIDIA card\(s\)")
    assert words in str(result.remedy)


def test_driver_version_from_the_kernel(context: Context) -> None:
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\nGCC version: 12.2.0\n"
    write(context.roots.proc / "driver/nvidia/version", text)
    assert gpu.driver(context).facts["version"] == "535.183.01"
    complains(gpu.nvml(context), "FAIL", "libnvidia-ml.so.1 not found")


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (TWO_GPUS, "PASS", r"2 GPU\(s\): H"),
        (NvmlAnswer(error="no answer within 10 s", hung=True), "FAIL", "hangs"),
        (NvmlAnswer(error="Driver/library version mismatch", code=gpu.MISMATCH), "FAIL", "mismatch"),
        (NvmlAnswer(driver="1.0"), "WARN", "no GPU"),
        (
            NvmlAnswer(driver="1.0", gpus=({"index": 3, "error": "GPU is lost"},)),
            "FAIL",
            "GPU 3: GPU is lost",
        ),
    ],
)
def test_what_nvml_says(context: Context, answer: NvmlAnswer, status: str, words: str) -> None:
    context.nvml = answer
    result = gpu.nvml(context)
    assert result.status == status
    assert re.search(words, result.detail)
    assert bool(result.remedy) == (status != "PASS")


def test_device_files_that_are_missing_or_closed(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "device_nodes", lambda directory: [])
    assert gpu.device_permissions(context).status == "SKIP"
    write(context.roots.sys / "module/nvidia/version", "570.1\n")
    complains(gpu.device_permissions(context), "FAIL", "no /dev/nvidia")
    monkeypatch.setattr(gpu, "device_nodes", lambda directory: [Path("/dev/nvidia0")])
    monkeypatch.setattr("monitor.doctor.gpu.os.access", lambda path, mode: False)
    complains(gpu.device_permissions(context), "FAIL", "no access to /dev/nvidia0")
    monkeypatch.setattr("monitor.doctor.gpu.os.access", lambda path, mode: True)
    assert gpu.device_permissions(context).status == "PASS"


def test_only_device_files_of_the_driver_count(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").write_text("no device")
    (tmp_path / "nvidia-caps").mkdir()
    assert gpu.device_nodes(tmp_path) == []


# ── Storage ──────────────────────────────────────────────────────────────────────────────────────


def test_a_ring_directory_that_is_made_later_and_one_that_is_there(context: Context) -> None:
    result = storage.ring_directory(context)
    assert result.status == "PASS"
    assert "does not exist yet" in result.detail
    directory = context.settings.dir[0]
    directory.mkdir(mode=0o700)
    (directory / "a.0.ring").write_bytes(b"")
    assert storage.ring_directory(context).facts["rings"] == 1
    assert os.listdir(directory) == ["a.0.ring"]  # the check leaves nothing behind


def test_a_ring_directory_that_cannot_be(context: Context, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    complains(storage.ring_directory(with_settings(context, dir=(file,))), "FAIL", "is not a directory")
    below = with_settings(context, dir=(file / "rings",))
    complains(storage.ring_directory(below), "FAIL", "cannot be created")
    complains(
        storage.ring_directory(with_settings(context, dir=(Path("/proc/gpumon"),))),
        "FAIL",
        "cannot be created",
    )


def test_an_unwritable_ring_directory(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    context.settings.dir[0].mkdir()
    monkeypatch.setattr(storage, "try_to_write", lambda directory: "read-only file system")
    complains(storage.ring_directory(context), "FAIL", "read-only")


def test_the_worst_of_several_directories_counts(context: Context, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    both = with_settings(context, dir=(tmp_path / "rings", tmp_path / "file"))
    assert storage.ring_directory(both).status == "FAIL"


def test_a_directory_open_to_all_needs_the_sticky_bit(context: Context) -> None:
    directory = context.settings.dir[0]
    directory.mkdir()
    directory.chmod(0o777)
    complains(storage.ring_directory(context), "WARN", "sticky")
    directory.chmod(0o3773)
    assert storage.ring_directory(context).status == "PASS"


def test_somebody_elses_directory(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    context.settings.dir[0].mkdir(mode=0o700)
    monkeypatch.setattr("monitor.doctor.storage.os.getuid", lambda: 4242)
    if context.settings.dir[0].stat().st_uid == 0:
        assert storage.ring_directory(context).status == "PASS"  # root is trusted
    else:
        complains(storage.ring_directory(context), "WARN", "belongs to uid")


@pytest.mark.parametrize(("mib", "status"), [(3, "FAIL"), (20, "WARN"), (500, "PASS")])
def test_room_for_rings(context: Context, monkeypatch: pytest.MonkeyPatch, mib: int, status: str) -> None:
    context.settings.dir[0].mkdir()
    monkeypatch.setattr(storage, "free_bytes", lambda path: mib << 20)
    assert storage.ring_directory(context).status == status


def test_network_file_systems(context: Context) -> None:
    directory = context.settings.dir[0]
    directory.mkdir()
    mounts = f"1 1 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / {directory} rw shared:1 - nfs4 server:/x rw\n"
    write(context.roots.proc / "self/mountinfo", mounts)
    complains(storage.ring_directory(context), "WARN", "nfs4")


@pytest.mark.parametrize(
    ("total", "free", "status"), [(64, 60, "WARN"), (8192, 100, "WARN"), (8192, 8000, "PASS")]
)
def test_shared_memory(
    context: Context, monkeypatch: pytest.MonkeyPatch, total: int, free: int, status: str
) -> None:
    room = SimpleNamespace(f_blocks=total, f_bavail=free, f_frsize=1 << 20)
    monkeypatch.setattr("monitor.doctor.storage.os.statvfs", lambda path: room)
    result = storage.shm(context)
    assert result.status == status
    assert bool(result.remedy) == (status == "WARN")


def test_history(context: Context, tmp_path: Path) -> None:
    assert storage.history(context).status == "SKIP"
    assert storage.history(with_settings(context, store=tmp_path / "a/b/history.db")).status == "PASS"
    complains(storage.history(with_settings(context, store=Path("/proc/x/history.db"))), "FAIL", "/proc/x")


# ── Service ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def busy_port() -> Any:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(8)
        yield taken.getsockname()[1]


def test_a_port_in_use_names_who_has_it(
    context: Context, busy_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_is_gpumon", lambda url: False)
    result = service.port(with_settings(context, listen=f"127.0.0.1:{busy_port}"))
    complains(result, "FAIL", f"process {os.getpid()}")
    monkeypatch.setattr(service, "_is_gpumon", lambda url: True)
    assert service.port(with_settings(context, listen=f"127.0.0.1:{busy_port}")).facts["daemon"] is True


def test_a_daemon_behind_tls_is_known_by_its_command() -> None:
    assert is_daemon_command(["/usr/bin/python3", "/opt/venv/bin/gpumon", "daemon", "--web-config=x"])
    assert is_daemon_command(["python", "-m", "monitor.cli.main", "daemon"])
    assert not is_daemon_command(["python", "-m", "http.server"])
    assert not is_daemon_command(["gpumon", "tui"])


def test_ports_that_are_free_foreign_or_open_to_all(context: Context) -> None:
    assert service.port(context).status == "SKIP"
    assert service.port(with_settings(context, listen="127.0.0.1:0")).status == "PASS"
    complains(service.port(with_settings(context, listen="192.0.2.1:10835")), "FAIL", "cannot listen")
    complains(service.port(with_settings(context, listen="0.0.0.0:0")), "WARN", "open to the network")
    guarded = with_settings(context, listen="0.0.0.0:0", web_config=Path("web.yml"))
    assert service.port(guarded).status == "PASS"


def test_the_socket_in_all_its_states(context: Context, tmp_path: Path) -> None:
    path = context.settings.socket
    assert path is not None
    assert "can be created" in service.unix_socket(context).detail
    path.write_text("")
    complains(service.unix_socket(context), "FAIL", "is not a socket")
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)
        assert service.unix_socket(context).facts["daemon"] is True
    assert stat.S_ISSOCK(path.stat().st_mode)
    complains(service.unix_socket(context), "WARN", "left over")
    complains(service.unix_socket(with_settings(context, socket=tmp_path / ("x" * 200))), "FAIL", "longer")
    complains(
        service.unix_socket(with_settings(context, socket=Path("/proc/x/s"))), "FAIL", "cannot be created"
    )
    assert service.unix_socket(with_settings(context, socket=None)).status == "SKIP"


FRESH = float("inf")
"""Stands for "now" in a parameter list, which is created long before its test runs."""


def _snapshot(**changed: Any) -> Snapshot:
    base = Snapshot(
        seq=1,
        time=FRESH,
        monotonic=1.0,
        interval_seconds=1.0,
        source=Source("none"),
        host=Host("h"),
        version=__version__,
    )
    return msgspec.structs.replace(base, **changed)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (_snapshot(), "PASS", "answers"),
        (_snapshot(time=5.0), "FAIL", "h old"),
        (_snapshot(version="0.0.1"), "WARN", r"0\.0\.1"),
        (_snapshot(collectors=(Collector("host", False, 0.1, error="boom"),)), "WARN", "host .boom"),
        (_snapshot(gpus=(Gpu(2, "GPU-x", state="lost"),)), "WARN", "GPU 2 is lost"),
        (UserError("no gpumon daemon answers"), "WARN", "no gpumon daemon"),
    ],
)
def test_the_daemon(context: Context, answer: Snapshot | UserError, status: str, words: str) -> None:
    if isinstance(answer, Snapshot) and answer.time == FRESH:
        answer = msgspec.structs.replace(answer, time=time.time())
    context.snapshot = answer
    result = service.daemon(context)
    assert result.status == status, result
    assert re.search(words, result.detail)
    assert bool(result.remedy) == (status != "PASS")


def test_a_daemon_that_was_asked_for_must_answer(context: Context) -> None:
    context.connect = "http://127.0.0.1:1"
    complains(service.daemon(context), "FAIL", "127.0.0.1:1")


# ── Machine ──────────────────────────────────────────────────────────────────────────────────────


def _group(context: Context, tmp_path: Path, **files: str) -> None:
    write(context.roots.proc / "self/cgroup", f"0::/system.slice/docker-{'ab' * 32}.scope\n")
    group = tmp_path / "cg" / f"system.slice/docker-{'ab' * 32}.scope"
    write(context.roots.proc / "self/mountinfo", f"1 1 0:1 / {tmp_path / 'cg'} rw - cgroup2 cgroup2 rw\n")
    for name, text in files.items():
        write(group / name.replace("__", "."), text)


def test_a_container_with_its_limits(context: Context, tmp_path: Path) -> None:
    _group(context, tmp_path, cpu__max="200000 100000", memory__max=str(4 << 30))
    result = machine.container(context)
    assert result.status == "PASS"
    assert result.detail == "in container abababababab, 2 cores, 4 GiB memory"


@pytest.mark.parametrize(
    ("files", "words"),
    [({"cpu__max": "10000 100000"}, "0.100 cores"), ({"memory__max": str(64 << 20)}, "64 MiB")],
)
def test_a_container_too_small(context: Context, tmp_path: Path, files: dict[str, str], words: str) -> None:
    _group(context, tmp_path, **files)
    complains(machine.container(context), "WARN", words)


def test_a_container_that_sees_only_itself(context: Context, tmp_path: Path) -> None:
    _group(context, tmp_path)
    (context.roots.proc / "self/ns").mkdir()
    (context.roots.proc / "self/ns/pid").symlink_to("pid:[4026532999]")
    complains(machine.container(context), "WARN", "only its own processes")


def test_pressure(context: Context) -> None:
    complains(machine.psi(context), "WARN", "cpu, memory, io")
    for name in ("cpu", "memory", "io"):
        write(context.roots.proc / f"pressure/{name}", "some avg10=0.00\n")
    assert machine.psi(context).status == "PASS"


def test_hidden_processes(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.processes(context).status == "SKIP"
    write(context.roots.proc / "stat", "")
    write(context.roots.proc / "self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw,hidepid=invisible\n")
    monkeypatch.setattr("monitor.doctor.machine.os.geteuid", lambda: 1000)
    complains(machine.processes(context), "WARN", "hidepid")
    monkeypatch.setattr("monitor.doctor.machine.os.geteuid", lambda: 0)
    assert machine.processes(context).status == "PASS"


CLOCKS: dict[str, tuple[str, Callable[..., Any], str, str]] = {
    "never set": ("time.time", lambda: 5.0, "WARN", "wall clock says"),
    "stepped": ("clock_drift", lambda seconds: 0.5, "WARN", "moved apart"),
    "slow": ("clock_cost_ns", lambda: 4000.0, "WARN", "4 µs"),
    "not synchronised": ("kernel_time_state", lambda: (False, 0.0), "WARN", "not synchronised"),
    "synchronised": ("kernel_time_state", lambda: (True, 0.002), "PASS", "offset 2 ms"),
    "unknown": ("kernel_time_state", lambda: None, "PASS", "not known"),
}


@pytest.mark.parametrize("case", CLOCKS)
def test_clocks(context: Context, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    name, answer, status, words = CLOCKS[case]
    monkeypatch.setattr(machine, "clock_cost_ns", lambda: 50.0)
    monkeypatch.setattr(f"monitor.doctor.machine.{name}", answer)
    result = machine.clock(context)
    assert result.status == status, result
    assert words in result.detail


def test_the_real_clock_answers() -> None:
    assert machine.clock_cost_ns() > 0
    assert isinstance(machine.clock_drift(0.01), float)


# ── Software ─────────────────────────────────────────────────────────────────────────────────────


def test_versions_of_packages(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    assert software.python(context).status == "PASS"
    monkeypatch.setattr(
        software, "_requirements", lambda: ["psutil>=6", "no-such-package>=1", "msgspec>=999.1"]
    )
    complains(
        software.versions(context), "FAIL", "no-such-package is missing; msgspec .* is older than 999.1"
    )


def test_the_deprecated_pynvml_distribution(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "_requirements", list)
    monkeypatch.setattr(software, "_version", lambda name: "11.5")
    complains(software.versions(context), "WARN", "pynvml")


def test_torch_absent_old_or_without_cuda(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, str | None] = {"torch": None}
    monkeypatch.setattr(software, "_version", found.get)
    assert software.torch(context).status == "SKIP"
    found["torch"] = "1.13.1"
    complains(software.torch(context), "WARN", "older")
    found["torch"] = "2.13.0+cpu"
    assert software.torch(context).status == "PASS"
    context.nvml = TWO_GPUS
    complains(software.torch(context), "WARN", "cannot use the GPU")


def test_deep_torch(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    context.deep = True
    answer = {"torch": "2.13.0", "cuda_build": "12.8", "available": False, "devices": 0}
    monkeypatch.setattr(software, "_version", lambda name: "2.13.0")
    monkeypatch.setattr(software, "ask_torch", lambda: answer)
    assert software.torch(context).status == "PASS"  # no GPU, none expected
    context.nvml = TWO_GPUS
    complains(software.torch(context), "FAIL", "built for CUDA 12.8")
    monkeypatch.setattr(software, "ask_torch", lambda: answer | {"available": True, "devices": 2})
    assert software.torch(context).facts["devices"] == 2


def test_a_torch_that_does_not_import(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[str, Any]:
        raise ProbeError("ImportError: libcudnn.so.9")

    context.deep = True
    monkeypatch.setattr(software, "_version", lambda name: "2.13.0")
    monkeypatch.setattr(software, "ask_torch", broken)
    complains(software.torch(context), "FAIL", "libcudnn")


def test_probes_answer_fail_and_give_up() -> None:
    assert ask_python("print('noise'); print('{\"a\": 1}')", 20) == {"a": 1}
    with pytest.raises(ProbeError, match="ZeroDivisionError"):
        ask_python("1/0", 20)
    begin = time.monotonic()
    with pytest.raises(ProbeHung):
        ask_python("import time; time.sleep(120)", 0.2)
    assert time.monotonic() - begin < 120, "it does not wait for the child"


def test_the_documentation_lists_every_check() -> None:
    text = (Path(__file__).parents[3] / "docs/doctor.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \|", text, re.M))
    assert {name: title.strip() for name, title in rows.items()} == {
        item.id: item.title for item in all_checks()
    }
