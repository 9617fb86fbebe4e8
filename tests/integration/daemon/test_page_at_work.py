"""The daemon's pages in real Chromium, used as a reader would: patched, linked, without errors."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require_program, wait_for
from tests.integration.daemon.process import Daemon
from tests.integration.daemon.test_runs import train

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow
LOOKS = ((400, "dark"), (1024, "light"), (1600, "dark"))
AXE = "axe-core@4.14.0"
FAULTS = """async () => (await axe.run()).violations.map(
  (one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`)"""
STEPS = "#runs .figures b >> nth=0"
SELECT = """() => {
  getSelection().selectAllChildren(document.querySelector("#runs h3"));
  return getSelection().toString();
}"""
MANY = """() => {
  const many = [...Array(30).keys()].map((at) => ({ ...newest.runs[0], id: `many-${at}` }));
  const current = { rank: 0, phase: "data", seconds: 75 };
  const stuck = { ...many[0], state: "stalled", condition: "stalled", current };
  draw({ ...newest, runs: [...many.slice(1), stuck] });
  const [first, ...others] = document.querySelectorAll("#runs article");
  const state = first.querySelector(".end");
  const curves = document.querySelectorAll("#runs svg").length;
  return [others.length + 1, curves, state.textContent, state.className];
}"""
"""Thirty runs, one of which hangs: how many are shown, their curves, and what is said of the first."""
CHANGE = """() => {
  const box = document.querySelector("main").appendChild(code("@@ train.py:3 @@\\n- one(\\n- )\\n+ two()"));
  const shown = box.querySelector("code").innerText.trimEnd().split("\\n");
  box.remove();
  return shown;
}"""
"""A change as the page draws it, line by line."""
GAPS = """() => {
  const points = [[0, 1], [1, 1], [2, 1], [60, 1], [61, 1], [62, 1]];
  return chart("host", points, 1, "CPU").querySelector(".line").getAttribute("d").split("M").length - 1;
}"""
"""A curve of readings with a gap: of how many pieces it is."""
SIDEWAYS = '[...document.querySelectorAll(".wide")].some((one) => one.scrollWidth > one.clientWidth)'
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


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script that knows what people with other eyes and hands need of a page."""
    require_program("npm")
    folder = tmp_path_factory.mktemp("axe")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), AXE]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


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

    def faults(self, axe: str) -> list[str]:
        """What keeps somebody from using this view."""
        self.page.evaluate(axe)
        return list(self.page.evaluate(FAULTS))

    def pointed(self, chart: str, at: float = 0.5) -> str:
        """What a chart says at this part of its width."""
        self.page.locator(chart).scroll_into_view_if_needed()
        box = self.page.locator(chart).bounding_box()
        self.page.mouse.move(box["x"] + at * box["width"], box["y"] + box["height"] / 2)
        return str(self.page.inner_text(".look"))


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
            assert tab.page.evaluate(MANY) == [30, 0, "hung for 1 min 15 s", "bad end"]
            assert tab.page.evaluate(CHANGE) == ["@@ train.py:3 @@", "- one(", "- )", "+ two()"]
            assert tab.page.evaluate(GAPS) == 2, "nothing is drawn where nothing was read"
            assert "1 live run" in tab.page.title() and "of 8 GPUs working" in tab.page.inner_text("#wall")
            assert tab.complaints == []
        finally:
            trainer.kill()
            trainer.wait(10)


def test_every_page_is_reached_by_links_at_every_width(tmp_path: Path, browser: Any, axe: str) -> None:
    """GIVEN a run that is over and one that trains WHEN every view is opened by its link THEN it fits, and
    neither axe-core nor the browser complains of anything."""
    with Daemon(tmp_path, "--source", "simulated", "--gpus", "8") as daemon:
        assert train(tmp_path / "rings", "toy-1", 0.01, 60).wait(60) == 0
        trainer = train(tmp_path / "rings", "toy-2", 0.01, 100_000)
        try:
            until_steps(daemon, 100)
            for width, scheme in LOOKS:
                tab = Tab(browser, width, scheme)
                tab.page.goto(daemon.url)
                for link, sight in (
                    ("", "#findings article"),
                    ("#runs article a", "text=Where every second went"),
                    ("nav a >> text=runs", "h1 >> text=Runs"),
                    ("text=compare with previous", "text=The same work?"),
                    ("nav a >> text=now", "#runs article"),
                ):
                    if link:
                        tab.page.click(link)
                    tab.page.wait_for_selector(sight)
                    assert tab.fits() and tab.faults(axe) == [], (width, sight)
                    assert "Runs" not in sight or not tab.page.evaluate(SIDEWAYS), width
                assert tab.complaints == []
                tab.page.close()
        finally:
            trainer.kill()
            trainer.wait(10)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_charts_answer_who_points_and_pages_outlive_the_daemon(tmp_path: Path, browser: Any) -> None:
    """GIVEN the live page and that of a run THEN charts tell their values to mouse and keys, show a part of
    the run, hide what is not ticked. WHEN the daemon goes THEN both say so; WHEN it is back, both go on."""
    options = ("--source", "simulated", "--gpus", "2", "--listen", f"127.0.0.1:{free_port()}")
    (tmp_path / "rings").mkdir()
    trainer = train(tmp_path / "rings", "toy-1", 0.01, 100_000)
    try:
        with Daemon(tmp_path, *options) as daemon:
            until_steps(daemon, 700)
            live, run = Tab(browser), Tab(browser)
            live.page.goto(daemon.url)
            live.page.wait_for_selector("#machine svg.chart")
            assert "%" in live.pointed("#machine svg.chart")
            assert "samples/s" in live.pointed("#runs svg.chart")
            run.page.goto(f"{daemon.url}/runs/toy-1")
            told = run.pointed("svg.chart >> nth=0")
            for figure in ("step", "data loading 75 %", "median"):
                assert figure in told, "of every chart in view"
            _step_by_keys(run)
            _hide_a_phase(run)
            _look_closer(run)
            daemon.stop()
            live.page.wait_for_selector(".badge.stale")
            assert live.page.title().startswith("stale")
            run.page.wait_for_selector("text=The daemon does not answer")
        with Daemon(tmp_path, *options):
            live.page.wait_for_selector(".badge.live")
            run.page.wait_for_selector("text=The daemon does not answer", state="hidden")
            for tab in (live, run):
                faults = [one for one in tab.complaints if "ERR_" not in one]
                assert faults == [], "only the broken connection itself is said"
                tab.page.close()
    finally:
        trainer.kill()
        trainer.wait(10)


def _step_by_keys(tab: Tab) -> None:
    chart = tab.page.locator("svg.chart >> nth=1")
    chart.focus()
    chart.press("ArrowRight")
    first = tab.page.inner_text(".look")
    chart.press("ArrowRight")
    assert first and tab.page.inner_text(".look") != first
    for _ in range(chart.evaluate("(one) => looksOf(one).length")):
        chart.press("ArrowRight")
    last = tab.page.inner_text(".look")
    chart.press("End")
    assert tab.page.inner_text(".look") == last != first
    chart.press("Escape")
    assert not tab.page.is_visible(".look")


def _hide_a_phase(tab: Tab) -> None:
    assert tab.page.is_visible("svg.chart .of-1")
    tab.page.uncheck(".legend input >> nth=0")
    assert not tab.page.is_visible("svg.chart .of-1") and tab.page.is_visible("svg.chart .of-2")


def _look_closer(tab: Tab) -> None:
    """A drag over the right half shows that half, finer; what was not ticked still is not."""
    tab.pointed("svg.chart >> nth=0")
    box = tab.page.locator("svg.chart >> nth=0").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 50, steps=4)
    tab.page.mouse.up()
    tab.page.wait_for_selector("text=Show the whole run")
    assert "from=" in tab.page.url
    assert float(tab.page.get_attribute("svg.chart >> nth=0", "data-from")) > 0
    assert not tab.page.is_visible("svg.chart .of-1")
    tab.page.go_back()
    tab.page.wait_for_selector("text=Show the whole run", state="hidden")


def test_an_empty_machine_says_how_to_start(tmp_path: Path, browser: Any, axe: str) -> None:
    with Daemon(tmp_path, "--source", "none") as daemon:
        tab = Tab(browser)
        tab.page.goto(daemon.url)
        tab.page.wait_for_selector("text=gpumon run -- python train.py")
        assert tab.page.locator(".copy").count() == 1
        assert tab.faults(axe) == [] and tab.complaints == []


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
        assert tab.page.is_visible("#runs article"), "what is over is still shown"
        assert tab.page.locator("#findings article").count() > 0
        assert tab.page.locator("#findings .gain").count() == 0 and tab.complaints == []
