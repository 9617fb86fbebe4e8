"""The whole reader on a prepared /proc and /sys: what comes out, and what is absent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitor.host.processes import TICKS
from monitor.host.procfs import Roots
from monitor.host.reader import HostReader
from monitor.host.tree import ProcessTree
from monitor.model.clock import Moment
from monitor.model.host import Cgroup, Cpu, Disk, Host, Memory, Network, Pressure, Process
from monitor.model.snapshot import encode


class Machine:
    """A /proc and /sys just for the test."""

    def __init__(self, root: Path) -> None:
        self.roots = Roots(proc=root / "proc", sys=root / "sys")
        self.last_pid = 100
        self.write("proc/self/mountinfo", "")
        self.write("proc/self/cgroup", "0::/\n")
        self.cpu(0, 0)
        self.memory()
        self.load()

    def write(self, path: str, text: str) -> None:
        file = self.roots.proc.parent / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def cpu(self, user: int, idle: int) -> None:
        core = f"{user} 0 0 {idle} 0 0 0 0 0 0"
        self.write("proc/stat", f"cpu  {core}\ncpu0 {core}\nbtime 1000\n")

    def memory(self, swap: int = 0) -> None:
        text = "MemTotal: 1000 kB\nMemAvailable: 400 kB\nCached: 50 kB\n"
        self.write("proc/meminfo", f"{text}SwapTotal: {swap} kB\nSwapFree: {swap} kB\n")

    def load(self) -> None:
        self.write("proc/loadavg", f"1.5 1.0 0.5 1/2 {self.last_pid}\n")

    def process(self, pid: int, parent: int, *, cpu: int = 0, start: int = 500, state: str = "S") -> None:
        tail = f"{state} {parent} 1 1 0 -1 0 1 0 0 0 {cpu} 0 0 0 20 0 3 0 {start} 999 10 " + "0 " * 20
        self.write(f"proc/{pid}/stat", f"{pid} (python) {tail}\n")
        self.write(f"proc/{pid}/cgroup", "0::/\n")
        self.write(f"proc/{pid}/cmdline", f"python\0{pid}.py\0")
        self.last_pid += 1
        self.load()

    def remove(self, pid: int) -> None:
        directory = self.roots.proc / str(pid)
        for file in directory.iterdir():
            file.unlink()
        directory.rmdir()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def at(seconds: float) -> Moment:
    return Moment(1_700_000_000 + seconds, seconds)


def read_twice(machine: Machine, change: object = None) -> Host:
    reader = HostReader(machine.roots)
    reader.read(at(10))
    if callable(change):
        change()
    host = reader.read(at(12))
    reader.close()
    return host


def test_the_first_read_has_no_rates_and_absent_is_none(machine: Machine) -> None:
    host = HostReader(machine.roots).read(at(10))
    assert host.cpu is not None
    assert host.cpu.utilization_ratio is None
    assert host.cpu.per_core_ratio == ()
    assert host.cpu.load_1m == 1.5
    assert host.cpu.pressure == host.io_pressure == Pressure()
    assert host.cpu.frequency_hertz is None
    assert host.boot_time == 1000
    assert host.memory is not None
    assert (host.memory.used_bytes, host.memory.cached_bytes) == (600 * 1024, 50 * 1024)
    assert host.memory.shared_bytes is None
    assert (host.disks, host.networks) == ((), ())
    assert encode(host)


def test_cpu_use_between_two_reads(machine: Machine) -> None:
    host = read_twice(machine, lambda: machine.cpu(50, 150))
    assert host.cpu is not None
    assert host.cpu.utilization_ratio == 0.25
    assert host.cpu.per_core_ratio == (0.25,)


def test_swap_rates_only_with_swap(machine: Machine) -> None:
    machine.write("proc/vmstat", "x 1\npswpin 0\npswpout 0\n")
    host = read_twice(machine)
    assert host.memory is not None
    assert host.memory.swap_in_bytes_per_second is None
    machine.memory(swap=500)
    host = read_twice(machine, lambda: machine.write("proc/vmstat", "x 1\npswpin 4\npswpout 8\n"))
    assert host.memory is not None
    assert host.memory.swap_in_bytes_per_second == pytest.approx(2 * 4096)
    assert host.memory.swap_out_bytes_per_second == pytest.approx(4 * 4096)


def _disk(name: str, sectors: int, busy_ms: int) -> str:
    return f"8 0 {name} 1 0 {sectors} 0 1 0 {sectors} 0 0 {busy_ms} 0\n"


def test_physical_disks_only_and_whether_they_turn(machine: Machine) -> None:
    names = ("sda", "sda1", "nvme0n1", "loop0", "dm-0", "md0", "zram0", "vda")
    for name in ("sda", "nvme0n1", "vda", "loop0"):
        machine.write(f"sys/block/{name}/queue/rotational", "1" if name != "nvme0n1" else "0")
        machine.write(f"sys/block/{name}/device/model", "x")
    machine.write("proc/diskstats", "".join(_disk(name, 0, 0) for name in names))
    later = "".join(_disk(name, 2000, 500) for name in names)
    host = read_twice(machine, lambda: machine.write("proc/diskstats", later))
    disks = {disk.name: disk for disk in host.disks}
    assert list(disks) == ["nvme0n1", "sda", "vda"]
    assert disks["sda"].read_bytes_per_second == 512_000
    assert disks["sda"].busy_ratio == 0.25
    assert (disks["sda"].rotational, disks["nvme0n1"].rotational, disks["vda"].rotational) == (
        True,
        False,
        None,
    )


def test_interfaces_with_hardware_first_else_the_containers_own(machine: Machine) -> None:
    header = "Inter-| x\n face | x\n"
    line = "{}: {} 0 0 0 0 0 0 0 {} 0 0 0 0 0 0 0\n"
    names = ("lo", "eth0", "veth12", "docker0", "bond0")
    machine.write("proc/net/dev", header + "".join(line.format(name, 0, 0) for name in names))
    later = header + "".join(line.format(name, 100, 50) for name in names)
    host = read_twice(machine, lambda: machine.write("proc/net/dev", later))
    assert [net.name for net in host.networks] == ["bond0", "eth0"]
    assert host.networks[1].receive_bytes_per_second == 50
    machine.write("sys/class/net/eth0/device/vendor", "x")
    assert [net.name for net in read_twice(machine).networks] == ["eth0"]


def test_rdma_ports_are_counted_in_words(machine: Machine) -> None:
    port = "sys/class/infiniband/mlx5_0/ports/1/counters/"
    machine.write(port + "port_rcv_data", "0")
    machine.write(port + "port_xmit_data", "0")
    reader = HostReader(machine.roots)
    assert reader.read(at(0)).networks[0].receive_bytes_per_second is None
    machine.write(port + "port_rcv_data", "1000")
    found = reader.read(at(5)).networks[0]
    assert (found.name, found.receive_bytes_per_second, found.transmit_bytes_per_second) == (
        "mlx5_0:1",
        800,
        0,
    )


# ── Processes ────────────────────────────────────────────────────────────────────────────────────

RUN = {10: ("run-a", 0)}


def by_pid(found: tuple[tuple[Process, ...], int]) -> dict[int, Process]:
    return {process.pid: process for process in found[0]}


def test_roles_of_trainer_descendants_and_gpu_processes(machine: Machine) -> None:
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (30, 1)):
        machine.process(pid, parent)
    found = by_pid(HostReader(machine.roots).processes(at(1), RUN, [20]))
    assert {pid: process.role for pid, process in found.items()} == {
        10: "trainer",
        11: "worker",
        12: "worker",
        20: "gpu",
    }
    assert (found[12].run, found[12].rank, found[20].run) == ("run-a", 0, None)
    assert found[12].started == 1000 + 500 / TICKS
    assert (found[12].threads, found[12].cpu_ratio, found[12].io_wait_ratio) == (3, None, None)


def test_a_trainer_below_a_trainer_keeps_its_own_workers(machine: Machine) -> None:
    for pid, parent in ((10, 1), (11, 10), (12, 11)):
        machine.process(pid, parent)
    trainers = {10: ("a", 0), 11: ("a", 1)}
    found = by_pid(HostReader(machine.roots).processes(at(1), trainers, ()))
    assert (found[11].role, found[12].role, found[12].rank) == ("trainer", "worker", 1)


def test_cpu_in_cores_and_a_reused_pid_starts_anew(machine: Machine) -> None:
    machine.process(10, 1, cpu=0)
    reader = HostReader(machine.roots)
    reader.processes(at(1), RUN, ())
    machine.process(10, 1, cpu=3 * TICKS)
    assert by_pid(reader.processes(at(2), RUN, ()))[10].cpu_ratio == 3.0
    machine.process(10, 1, cpu=100 * TICKS, start=9999)
    assert 10 not in by_pid(reader.processes(at(3), RUN, ()))
    again = by_pid(reader.processes(at(4), RUN, ()))[10]
    assert (again.cpu_ratio, again.started) == (None, 1000 + 9999 / TICKS)


def test_vanished_processes_and_zombies_are_left_out(machine: Machine) -> None:
    machine.process(10, 1)
    machine.process(11, 10)
    machine.process(12, 10, state="Z")
    reader = HostReader(machine.roots)
    assert set(by_pid(reader.processes(at(1), {**RUN, 999: ("b", 0)}, [998]))) == {10, 11}


def test_the_cap_leaves_out_workers_first_and_counts_them(machine: Machine) -> None:
    for pid in range(10, 20):
        machine.process(pid, 1 if pid == 10 else 10)
    found, left = HostReader(machine.roots, max_processes=4).processes(at(1), RUN, [500])
    assert left == 7
    assert found[0].role == "trainer"
    assert len(found) == 3  # the GPU process 500 has a place, but is gone


def test_delay_accounting_gives_io_wait_where_the_kernel_counts(machine: Machine) -> None:
    machine.write("proc/sys/kernel/task_delayacct", "1\n")
    machine.process(10, 1)
    reader = HostReader(machine.roots)
    reader.processes(at(1), RUN, ())
    assert by_pid(reader.processes(at(2), RUN, ()))[10].io_wait_ratio == 0.0


def test_new_children_are_found_when_the_kernel_gave_out_pids(machine: Machine) -> None:
    machine.process(10, 1)
    reader = HostReader(machine.roots)
    reader.processes(at(1), RUN, ())
    machine.process(11, 10)
    assert 11 in by_pid(reader.processes(at(4), RUN, ()))


def test_the_tree_does_not_look_while_no_pid_was_given_out(machine: Machine) -> None:
    machine.process(11, 10)
    tree = ProcessTree(machine.roots.proc)
    tree.refresh(0.0, 5)
    machine.process(12, 10)
    tree.refresh(10.0, 5)
    assert set(tree.descendants([10])) == {11}
    tree.refresh(20.0, 6)
    assert set(tree.descendants([10])) == {11, 12}
    machine.remove(11)
    tree.refresh(90.0, 6)
    assert set(tree.descendants([10])) == {12}


def test_more_processes_than_held_descriptors(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.host.processes.HELD_PROCESSES", 1)
    machine.process(10, 1)
    machine.process(11, 10)
    reader = HostReader(machine.roots)
    reader.processes(at(1), RUN, ())
    machine.process(11, 10, cpu=TICKS)
    assert by_pid(reader.processes(at(2), RUN, ()))[11].cpu_ratio == 1.0


def test_the_documentation_names_every_field() -> None:
    text = (Path(__file__).parents[3] / "docs/host-readings.md").read_text()
    structs = (Host, Cpu, Memory, Disk, Network, Cgroup, Pressure, Process)
    parts = {"cpu", "memory", "pressure"}  # named through their own fields
    fields = {name for struct in structs for name in struct.__struct_fields__} - parts
    assert [name for name in sorted(fields) if not re.search(rf"[`.]{name}`", text)] == []
