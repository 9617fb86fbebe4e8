"""The daemon's pages in real Chromium, used as a reader would: patched, linked, without errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require_program, wait_for
from tests.integration.daemon.process import Daemon
from tests.integration.daemon.test_runs import train

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow
WIDTHS = (400, 1024, 1600)
STEPS = "#runs .figures b >> nth=0"
SELECT = """() => {
  getSelection().selectAllChildren(document.querySelector("#runs h3"));
  return getSelection().toString();
}"""
LONG_MS = 60_000
"""For a machine under load; normally nothing waits this long."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=require_program("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


class Tab:
    """A page that records every error."""

    def __init__(self, browser: Any, width: int = 1600, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page.set_default_timeout(LONG_MS)
        self.complaints: list[str] = []
        self.page.on("console", lambda one: self._note(one.type == "error", one.text))
        self.page.on("pageerror", lambda error: self._note(True, str(error)))

    def _note(self, bad: bool, text: str) -> None:
        if bad:
            self.complaints.append(text)

    def fits(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def until_steps(daemon: Daemon, steps: int) -> None:
    wait_for(lambda: (daemon.metric("gpumon_rank_steps_total") or 0) > steps)


def test_a_reader_keeps_what_they_have_selected(tmp_path: Path, browser: Any) -> None:
    with Daemon(tmp_path, "--source", "simulated", "--gpus", "8") as daemon:
        trainer = train(tmp_path / "rings", "toy-1", 0.01, 100_000)
        try:
            until_steps(daemon, 20)
            tab = Tab(browser)
            tab.page.goto(daemon.url)
            tab.page.wait_for_selector("#runs article")
            first = tab.page.evaluate(SELECT)
            steps = tab.page.inner_text(STEPS)
            wait_for(lambda: tab.page.inner_text(STEPS) != steps)
            assert tab.page.evaluate("getSelection().toString()") == first == "toy"
            assert "1 live run" in tab.page.title() and "of 8 GPUs working" in tab.page.inner_text("#wall")
            assert tab.complaints == []
        finally:
            trainer.kill()
            trainer.wait(10)


def test_every_page_is_reached_by_links_at_every_width(tmp_path: Path, browser: Any) -> None:
    with Daemon(tmp_path, "--source", "simulated", "--gpus", "8") as daemon:
        trainer = train(tmp_path / "rings", "toy-1", 0.01, 100_000)
        try:
            until_steps(daemon, 20)
            for width in WIDTHS:
                tab = Tab(browser, width, "dark")
                tab.page.goto(daemon.url)
                tab.page.click("#runs article a")
                tab.page.wait_for_selector("text=Where every second went")
                assert tab.fits()
                tab.page.click("nav a >> text=runs")
                tab.page.wait_for_selector("h1 >> text=Runs")
                assert tab.fits()
                tab.page.click("nav a >> text=now")
                tab.page.wait_for_selector("#runs article")
                assert tab.fits() and tab.complaints == []
        finally:
            trainer.kill()
            trainer.wait(10)


def test_an_empty_machine_says_how_to_start_and_a_restart_is_survived(tmp_path: Path, browser: Any) -> None:
    with Daemon(tmp_path, "--source", "none") as daemon:
        tab = Tab(browser)
        tab.page.goto(daemon.url)
        tab.page.wait_for_selector("text=gpumon run -- python train.py")
        assert tab.page.locator(".copy").count() == 1
        daemon.stop()
        tab.page.wait_for_selector(".badge.stale")
        assert tab.page.title().startswith("stale")
        faults = [one for one in tab.complaints if "ERR_" not in one]
        assert faults == [], "only the broken connection itself is said"


def test_a_page_that_is_not_there_is_one_sentence(tmp_path: Path, browser: Any) -> None:
    with Daemon(tmp_path, "--source", "none") as daemon:
        tab = Tab(browser)
        answer = tab.page.goto(f"{daemon.url}/runs/nothing")
        assert answer.status == 404 and "there is no run yet" in tab.page.inner_text("main")
        assert tab.page.goto(f"{daemon.url}/compare?a=x").status == 404


def test_a_run_that_has_ended_promises_nothing_on_the_page(tmp_path: Path, browser: Any) -> None:
    """GIVEN a run that waited for its data WHEN it has ended THEN what was found is there, without a gain."""
    with Daemon(tmp_path, "--source", "none") as daemon:
        trainer = train(tmp_path / "rings", "toy-1", 0.01, 400)
        tab = Tab(browser)
        tab.page.goto(daemon.url)
        tab.page.wait_for_selector("#findings .gain")
        assert trainer.wait(60) == 0
        tab.page.wait_for_selector("#findings >> text=ended; for the next run")
        assert tab.page.locator("#findings article").count() > 0
        assert tab.page.locator("#findings .gain").count() == 0 and tab.complaints == []
