"""Limits in prepared control group trees, v1 and v2."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.host.cgroup import CgroupReader, Mount, levels, parse_membership, parse_mounts
from monitor.host.procfs import Roots
from monitor.model.host import Cgroup

HYBRID = """9:name=systemd:/
4:memory:/docker/abc
2:cpu,cpuacct:/docker/abc
0::/
"""


def write(directory: Path, **files: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)


def v2(tmp_path: Path, root: str = "/") -> tuple[CgroupReader, Path]:
    """A reader whose /proc says that cgroup2 is mounted under tmp_path."""
    top = tmp_path / "cgroup"
    write(
        tmp_path / "proc/self",
        mountinfo=f"31 23 0:28 {root} {top} rw,relatime shared:4 - cgroup2 cgroup2 rw\n",
    )
    return CgroupReader(Roots(proc=tmp_path / "proc")), top


def test_membership_of_a_hybrid_machine() -> None:
    groups = parse_membership(HYBRID)
    assert groups["memory"] == groups["cpu"] == groups["cpuacct"] == "/docker/abc"
    assert groups[""] == "/"


def test_mounts_of_both_versions() -> None:
    text = (
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "41 31 0:38 /docker/abc /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
    )
    mounts = parse_mounts(text)
    assert mounts["cpu"].point == Path("/sys/fs/cgroup/cpu,cpuacct")
    assert mounts[""] == Mount(Path("/sys/fs/cgroup/unified"), "/docker/abc")


def test_levels_stop_at_the_mount_and_strip_its_root(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert list(levels(Mount(tmp_path, "/docker/abc"), "/docker/abc/in")) == [tmp_path / "in", tmp_path]
    assert list(levels(Mount(tmp_path, "/"), "/nowhere/at/all")) == [tmp_path]


def test_v2_the_tightest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    reader, top = v2(tmp_path)
    pod = top / "kubepods/pod1"
    write(pod, cpu__max="150000 100000", memory__max="1073741824", memory__current="600")
    write(
        pod, cpu__stat="nr_periods 10\nnr_throttled 1\nthrottled_usec 5\n", memory__stat="inactive_file 100\n"
    )
    write(pod / "box", cpu__max="max 100000", memory__max="max", memory__current="500")
    found = reader.read("0::/kubepods/pod1/box\n", 0.0)
    assert found == Cgroup(1.5, None, 1073741824, 500)


def test_v2_throttled_share_of_the_periods(tmp_path: Path) -> None:
    reader, top = v2(tmp_path)
    write(top / "a", cpu__max="50000 100000", cpu__stat="nr_periods 100\nnr_throttled 10\n")
    assert reader.read("0::/a\n", 0.0).cpu_throttled_ratio is None
    write(top / "a", cpu__stat="nr_periods 120\nnr_throttled 15\n")
    assert reader.read("0::/a\n", 2.0).cpu_throttled_ratio == pytest.approx(0.25)
    assert reader.read("0::/a\n", 4.0).cpu_throttled_ratio == 0.0  # idle: no period has passed
    write(top / "a", cpu__stat="nr_periods 3\nnr_throttled 1\n")
    assert reader.read("0::/a\n", 6.0).cpu_throttled_ratio is None  # the group was recreated


def test_v2_without_limits(tmp_path: Path) -> None:
    reader, top = v2(tmp_path)
    write(top / "a", cpu__max="max 100000", memory__max="max", memory__current="4096")
    assert reader.read("0::/a\n", 0.0) == Cgroup(memory_used_bytes=4096)


def test_the_root_group_is_no_container(tmp_path: Path) -> None:
    reader, top = v2(tmp_path)
    write(top, cpu__stat="nr_periods 0\n")
    assert reader.read("0::/\n", 0.0) == Cgroup()


def test_inside_a_namespace_the_root_group_has_the_limits(tmp_path: Path) -> None:
    reader, top = v2(tmp_path)
    write(top, cpu__max="200000 100000", memory__max="2048", memory__current="1024")
    assert reader.read("0::/\n", 0.0) == Cgroup(2.0, None, 2048, 1024)


def test_v1_quota_limit_and_use(tmp_path: Path) -> None:
    cpu, memory = tmp_path / "cpu", tmp_path / "memory"
    write(
        tmp_path / "proc/self",
        mountinfo=f"1 1 0:1 / {cpu} rw - cgroup cgroup rw,cpu,cpuacct\n"
        f"2 1 0:2 / {memory} rw - cgroup cgroup rw,memory\n",
    )
    write(
        cpu / "docker/abc", cpu__cfs_quota_us="75000", cpu__cfs_period_us="50000", cpu__stat="nr_periods 1\n"
    )
    write(cpu / "docker", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    write(
        memory / "docker/abc",
        memory__limit_in_bytes="4096",
        memory__usage_in_bytes="3000",
        memory__stat="inactive_file 5\ntotal_inactive_file 1000\n",
    )
    write(memory, memory__limit_in_bytes="9223372036854771712")
    reader = CgroupReader(Roots(proc=tmp_path / "proc"))
    assert reader.read(HYBRID, 0.0) == Cgroup(1.5, None, 4096, 2000)


def test_v1_huge_limit_means_none(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    write(tmp_path / "proc/self", mountinfo=f"2 1 0:2 / {memory} rw - cgroup cgroup rw,memory\n")
    write(memory / "docker/abc", memory__limit_in_bytes="9223372036854771712", memory__usage_in_bytes="7")
    reader = CgroupReader(Roots(proc=tmp_path / "proc"))
    assert reader.read(HYBRID, 0.0) == Cgroup(memory_used_bytes=7)


def test_a_group_that_is_not_visible_has_no_limits(tmp_path: Path) -> None:
    reader, _ = v2(tmp_path)
    assert reader.read("0::/../outside\n", 0.0) == Cgroup()
    assert reader.read(None, 1.0) == Cgroup()


def test_a_changed_limit_is_seen_and_kept_between_looks(tmp_path: Path) -> None:
    reader, top = v2(tmp_path)
    write(top / "a", cpu__max="100000 100000")
    assert reader.read("0::/a\n", 0.0).cpu_quota_cores == 1.0
    write(top / "a", cpu__max="400000 100000")
    assert reader.read("0::/a\n", 5.0).cpu_quota_cores == 1.0
    assert reader.read("0::/a\n", 20.0).cpu_quota_cores == 4.0
