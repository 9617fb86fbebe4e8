"""The live page in a real browser: it draws what the stream brings, and says when the stream stops."""

from __future__ import annotations

import html
import json
import subprocess
from pathlib import Path

import pytest

from monitor.web.live_page import HERE
from tests.conftest import PATIENCE, require_program, wait_for
from tests.integration.daemon.process import Daemon
from tests.integration.daemon.test_runs import train

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--timeout=20000")


def browser(folder: Path, url: str) -> subprocess.Popen[bytes]:
    """Loads a page and prints its elements once nothing happens any more."""
    words = [require_program("chromium"), *FLAGS, f"--user-data-dir={folder}/browser", "--dump-dom", url]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


RUN_VECTORS = """
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const texts = (name) => VECTORS.cases[name].map(([given]) => eval(camel(name))(...given));
const found = VECTORS.page.map((name) => [name, texts(name)]);
document.body.textContent = JSON.stringify(Object.fromEntries(found));
"""


def test_the_page_writes_numbers_as_every_other_face(tmp_path: Path) -> None:
    """GIVEN the vectors that check the Python formatter THEN the page's functions give the same texts."""
    vectors = json.loads((Path(__file__).parents[2] / "vectors" / "units.json").read_text(encoding="utf-8"))
    scripts = (
        HERE.joinpath("units.js").read_text("utf-8"),
        f"const VECTORS = {json.dumps(vectors)};",
        RUN_VECTORS,
    )
    page = tmp_path / "vectors.html"
    body = "".join(f"<script>{script}</script>" for script in scripts)
    page.write_text(f"<!doctype html><meta charset=utf-8><body>{body}</body>", encoding="utf-8")
    shown = browser(tmp_path, page.as_uri()).communicate(timeout=PATIENCE)[0].decode()
    found = json.loads(html.unescape(shown.partition("<body>")[2].partition("</body>")[0]))
    assert found == {name: [text for _, text in vectors["cases"][name]] for name in vectors["page"]}


@pytest.mark.slow
def test_the_page_draws_runs_and_gpus_in_a_browser(tmp_path: Path) -> None:
    """The browser prints the page's elements once the stream has ended, so the daemon is stopped."""
    with Daemon(tmp_path, "--source", "simulated", "--gpus", "2") as daemon:
        trainer = train(tmp_path / "rings", "toy-1", 0.01, 2000)
        wait_for(lambda: (daemon.metric("gpumon_rank_steps_total") or 0) > 50)
        opened = browser(tmp_path, daemon.url)
        wait_for(lambda: (daemon.metric("gpumon_http_streams") or 0) >= 1)
        begin = daemon.metric("gpumon_snapshots_total") or 0
        wait_for(lambda: (daemon.metric("gpumon_snapshots_total") or 0) > begin + 5)
        trainer.kill()
        trainer.wait(10)
        daemon.stop()
        page = opened.communicate(timeout=PATIENCE)[0].decode()
    assert '<span id="simulated" class="badge loud">' in page, "the label is shown, not hidden"
    assert page.count("gpumon simulated GPU") == 1, "both have it: it is said once"
    assert ">GPU 0<" in page and ">GPU 1<" in page
    assert "toy" in page and "data 75 %" in page and "samples/s" in page
    assert 'class="badge stale"' in page or 'class="badge live"' in page


@pytest.mark.slow
def test_the_page_speaks_chinese_to_who_asks_for_it(tmp_path: Path) -> None:
    """GIVEN a training WHEN the page is opened with `?lang=zh` THEN its words are Chinese, names and the API
    are not."""
    with Daemon(tmp_path, "--source", "simulated", "--gpus", "2") as daemon:
        trainer = train(tmp_path / "rings", "toy-1", 0.01, 2000)
        wait_for(lambda: (daemon.metric("gpumon_rank_steps_total") or 0) > 50)
        opened = browser(tmp_path, f"{daemon.url}/?lang=zh")
        wait_for(lambda: (daemon.metric("gpumon_http_streams") or 0) >= 1)
        begin = daemon.metric("gpumon_snapshots_total") or 0
        wait_for(lambda: (daemon.metric("gpumon_snapshots_total") or 0) > begin + 5)
        plain = daemon.get("/api/v1/snapshot")[2].decode()
        trainer.kill()
        trainer.wait(10)
        daemon.stop()
        page = opened.communicate(timeout=PATIENCE)[0].decode()
    assert '<html lang="zh"' in page
    assert "运行" in page and "样本/s" in page and "数据 75 %" in page and "所有运行" in page
    assert "toy" in page and "gpumon simulated GPU" in page
    assert "toy" in plain and "运行" not in plain
