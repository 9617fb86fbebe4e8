"""Kernel texts into numbers: excerpts of the real files, including odd ones."""

from __future__ import annotations

import pytest

from monitor.host.cpu import parse_stat, shares
from monitor.host.disk import DiskStats
from monitor.host.linux import parse_loadavg
from monitor.host.memory import parse_meminfo
from monitor.host.network import parse_net_dev
from monitor.host.pressure import parse_pressure
from monitor.host.processes import parse_io, parse_process_stat
from monitor.host.procfs import Every, Rates, counter
from monitor.host.tree import parse_parent

STAT = b"""cpu  1000 100 500 8000 200 50 50 100 30 0
cpu0 600 50 250 4000 100 25 25 50 15 0
cpu3 400 50 250 4000 100 25 25 50 15 0
intr 123 0 0
ctxt 99
btime 1700000000
processes 4242
"""


def test_stat_gives_total_cores_and_boot_time() -> None:
    stat = parse_stat(STAT)
    assert stat.total == (1000, 100, 500, 8000, 200, 50, 50, 100)
    assert list(stat.cores) == [0, 3]
    assert stat.boot_time == 1700000000


def test_shares_add_up_and_name_each_kind_of_time() -> None:
    found = shares((0,) * 8, (30, 10, 10, 30, 10, 3, 2, 5))
    assert found is not None
    assert found.busy == pytest.approx(0.60)
    assert found.user == pytest.approx(0.40)
    assert found.system == pytest.approx(0.15)
    assert found.iowait == pytest.approx(0.10)
    assert found.steal == pytest.approx(0.05)


def test_a_counter_that_runs_back_counts_as_nothing() -> None:
    """iowait does that on real machines."""
    found = shares((0, 0, 0, 0, 50, 0, 0, 0), (10, 0, 0, 90, 40, 0, 0, 0))
    assert found is not None
    assert found.iowait == 0
    assert found.busy == pytest.approx(0.1)


def test_no_time_between_two_readings_is_unknown_not_idle() -> None:
    assert shares((1,) * 8, (1,) * 8) is None


def test_an_old_kernel_with_fewer_fields() -> None:
    found = shares((0, 0, 0, 0), (5, 0, 5, 10))
    assert found is not None
    assert (found.busy, found.steal) == (0.5, 0)


def test_meminfo_in_bytes() -> None:
    info = parse_meminfo(b"MemTotal:  2048 kB\nHugePages_Total:   7\nShmem: 16 kB\nbroken\n")
    assert info == {b"MemTotal": 2048 * 1024, b"Shmem": 16 * 1024}


def test_a_counter_by_its_whole_name() -> None:
    raw = b"nr_free 1\nxpswpin 5\npswpin 12\nodd max\npswpout 13"
    assert counter(raw, b"nr_free") == 1
    assert counter(raw, b"pswpin") == 12
    assert counter(raw, b"pswpout") == 13
    assert counter(raw, b"odd") is counter(raw, b"absent") is counter(None, b"absent") is None


def test_diskstats_of_old_and_new_kernels() -> None:
    raw = (
        b"   8       0 sda 10 2 100 7 20 3 200 9 0 1500 16\n"
        b" 259       0 nvme0n1 1 0 8 0 2 0 16 1 0 250 1 8275 40 354032 561 3887 147\n"
    )
    found = DiskStats().parse(raw)
    assert found["sda"] == (51200, 102400, 1.5)
    assert found["nvme0n1"].busy_seconds == 0.25


def test_lines_of_diskstats_that_stay_are_not_parsed_again() -> None:
    stats = DiskStats()
    line = b"   8       %d sd%s 1 0 8 4 2 0 16 5 0 6 9 0 0 0 0\n"
    first = stats.parse(line % (0, b"a") + line % (16, b"b"))
    busier = (line % (16, b"b")).replace(b" 8 4 ", b" 24 4 ")
    second = stats.parse(line % (0, b"a") + busier)
    assert second["sda"] is first["sda"]
    assert second["sdb"].read_bytes == 3 * first["sdb"].read_bytes
    assert set(stats.parse(busier)) == {"sdb"}, "a device that has gone is forgotten"


def test_net_dev_even_without_a_space_after_the_colon() -> None:
    raw = (
        b"Inter-|   Receive |  Transmit\n face |bytes packets|bytes\n"
        b"    lo:    5 1 0 0 0 0 0 0    5 1 0 0 0 0 0 0\n"
        b"  eth0:123456789012 1 0 0 0 0 0 0 77 1 0 0 0 0 0 0\n"
    )
    assert parse_net_dev(raw) == {"lo": (5, 5), "eth0": (123456789012, 77)}


def test_pressure_ratios_and_seconds() -> None:
    text = (
        "some avg10=4.50 avg60=1.61 avg300=0.54 total=15125477\n"
        "full avg10=1.00 avg60=0.00 avg300=0.00 total=2000000\n"
    )
    found = parse_pressure(text)
    assert found.some_ratio == pytest.approx(0.045)
    assert found.some_seconds == pytest.approx(15.125477)
    assert (found.full_ratio, found.full_seconds) == (0.01, 2.0)
    assert parse_pressure(text, with_full=False).full_ratio is None


def test_pressure_of_kernels_that_have_no_full_line_or_nonsense() -> None:
    assert parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n").full_ratio is None
    assert parse_pressure("some what=ever\n").some_ratio is None
    assert parse_pressure("").some_seconds is None


def test_process_stat_with_a_hostile_name() -> None:
    """A process may call itself anything, brackets included."""
    tail = b"S 7 1 1 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 12 0 104637 3133440 380 " + b"0 " * 17 + b"42 0 0\n"
    raw = b"31 (a) R 99 (b) " + tail
    stat = parse_process_stat(raw)
    assert stat.name == "a) R 99 (b"
    assert (stat.state, stat.parent, stat.cpu_ticks, stat.threads) == ("S", 7, 200, 12)
    assert stat.start_ticks == 104637
    assert stat.rss_bytes > 380 * 1000
    assert stat.blkio_ticks == 42
    assert parse_parent(raw) == 7


def test_process_io_counts_storage_not_the_page_cache() -> None:
    raw = (
        b"rchar: 9\nwchar: 9\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\n"
        b"cancelled_write_bytes: 0\n"
    )
    assert parse_io(raw) == (4096, 8192)
    assert parse_io(b"rchar: 9\n") is None
    assert parse_io(None) is None


def test_loadavg() -> None:
    assert parse_loadavg(b"0.13 0.08 0.07 1/93 9127\n") == ((0.13, 0.08, 0.07), 9127)
    assert parse_loadavg(None) == (None, None)
    assert parse_loadavg(b"broken") == (None, None)


def test_rates_need_two_reads_and_survive_resets() -> None:
    rates = Rates()
    assert rates.per_second("a", 100, 1.0) is None
    assert rates.per_second("a", 150, 3.0) == 25
    assert rates.per_second("a", 10, 4.0) is None  # the counter was reset
    assert rates.per_second("a", 30, 5.0) == 20
    assert rates.per_second("a", 40, 5.0) is None  # no time has passed
    assert rates.per_second("a", None, 6.0) is None
    assert rates.per_second("a", 50, 7.0) is None  # was absent, so it counts as new


def test_rates_forget_what_has_gone() -> None:
    rates = Rates()
    rates.per_second("sda", 1, 1.0)
    rates.keep({"sdb"})
    assert rates.per_second("sda", 2, 2.0) is None


def test_every_is_due_once_a_period() -> None:
    every = Every(5.0)
    assert [every.due(at) for at in (0.0, 1.0, 4.9, 5.0, 9.0, 10.0)] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]
