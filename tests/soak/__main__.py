"""`make soak MINUTES=10`: a daemon under the load of a busy machine, and how it fares.

    python -m tests.soak --minutes 10

64 ranks at 100 steps a second, 8 simulated GPUs, 4 scrapers, 20 pages, and a run that starts and ends every
two seconds; the minutes begin after eleven of warm-up. The figures go into docs/reliability.md; runs of less
than ten minutes are recorded only when told to.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from pathlib import Path

from tests.conftest import wait_for
from tests.faults import page
from tests.integration.daemon.process import Daemon
from tests.soak.clients import Pages, Scrapers
from tests.soak.figures import WARM_UP_SECONDS, Figures, Sample, judge, steps_read
from tests.soak.report import render
from tests.soak.writers import RANKS, Writers

GPUS, SCRAPERS, PAGES = 8, 4, 20
RECORDED_MINUTES = 10.0


def soak(folder: Path, minutes: float, warm_up: float = WARM_UP_SECONDS) -> Figures:
    """Load the daemon for this many minutes after `warm_up` seconds."""
    with (
        Daemon(folder, "--source", "simulated", "--gpus", str(GPUS), interval="1") as daemon,
        Writers(folder / "rings") as writers,
        Scrapers(daemon.port, SCRAPERS) as scrapers,
        Pages(daemon.port, PAGES) as pages,
    ):
        assert daemon.process is not None
        samples = list(watch(daemon.process.pid, warm_up + minutes * 60.0))
        written = writers.stop()
        with contextlib.suppress(AssertionError):  # what is missing by then is missing in the figures
            wait_for(lambda: steps_read(daemon) == written[0] * RANKS, every=1.0)
        return judge(daemon, samples, written, scrapers.seconds, pages.events, warm_up)


def watch(pid: int, seconds: float) -> list[Sample]:
    begin = time.monotonic()
    samples: list[Sample] = []
    while (passed := time.monotonic() - begin) < seconds:
        samples.append(Sample(passed, _resident(pid), _cpu(pid)))
        time.sleep(1.0)
    return samples


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=RECORDED_MINUTES)
    parser.add_argument("--record", action="store_true", help="write the figures down however short it was")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpumon-soak-", dir="/dev/shm") as folder:
        figures = soak(Path(folder), args.minutes)
    text = render(figures)
    print(text)
    if args.record or args.minutes >= RECORDED_MINUTES:
        page.write("soak", text)
    return 0 if figures.holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
