"""The live page in a real browser: it draws what the stream brings, and says when it stops."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import require_program, wait_for
from tests.integration.daemon.process import Daemon
from tests.integration.daemon.test_runs import train


@pytest.mark.slow
def test_the_page_draws_runs_and_gpus_in_a_browser(tmp_path: Path) -> None:
    """The browser prints the page's elements once the stream has ended, so the daemon is stopped."""
    chromium = require_program("chromium")
    with Daemon(tmp_path, "--source", "simulated", "--gpus", "2") as daemon:
        trainer = train(tmp_path / "rings", "toy-1", 0.01, 2000)
        wait_for(lambda: (daemon.metric("gpumon_rank_steps_total") or 0) > 50)
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=4000",
            "--timeout=20000",
        ]
        home = [f"--user-data-dir={tmp_path}/browser", "--dump-dom", daemon.url]
        browser = subprocess.Popen(
            [chromium, *flags, *home], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        wait_for(lambda: (daemon.metric("gpumon_http_streams") or 0) >= 1, seconds=40)
        begin = daemon.metric("gpumon_snapshots_total") or 0
        wait_for(lambda: (daemon.metric("gpumon_snapshots_total") or 0) > begin + 5)
        trainer.kill()
        trainer.wait(10)
        assert daemon.stop()[1] < 2.0
        page = browser.communicate(timeout=60)[0].decode()
    assert '<span id="simulated" class="badge loud">' in page, "the label is shown, not hidden"
    assert page.count("gpumon simulated GPU") == 2
    assert "toy" in page and "data 75 %" in page and "samples/s" in page
    assert 'class="badge stale"' in page or 'class="badge live"' in page
