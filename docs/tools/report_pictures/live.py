"""The picture of the live page: a daemon with simulated GPUs and two small loops that it watches."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

LOOP = """
import sys, time
from sdk import TrainingMonitor
with TrainingMonitor(sys.argv[1], batch_size=32) as monitor:
    while True:
        with monitor.phase("data"):
            time.sleep(float(sys.argv[2]))
        with monitor.phase("forward"):
            time.sleep(0.004)
        with monitor.phase("backward"):
            time.sleep(0.006)
        monitor.step()
"""
WATCH_SECONDS = 40.0


def live_picture(place: Path, environment: dict[str, str], target: Path) -> None:
    """Watch for a while, then look."""
    from playwright.sync_api import sync_playwright

    with contextlib.ExitStack() as stack:
        port = _free_port()
        words = ("daemon", "--source", "simulated", "--gpus", "8", "--listen", f"127.0.0.1:{port}")
        stack.enter_context(_running("-m", "monitor.cli.main", *words, place=place, environment=environment))
        (place / "loop.py").write_text(LOOP, encoding="utf-8")
        for name, data in (("pictures", "0.02"), ("captions", "0.0005")):
            stack.enter_context(_running("loop.py", name, data, place=place, environment=environment))
        time.sleep(WATCH_SECONDS)
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("#runs article")
        page.screenshot(path=target)
        browser.close()


@contextlib.contextmanager
def _running(*words: str, place: Path, environment: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen(["python", *words], cwd=place, env=environment) as child:
        try:
            yield
        finally:
            child.terminate()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
