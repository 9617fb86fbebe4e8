"""Reports and comparisons in real Chromium: they fit any width, and are drawn without errors."""

from __future__ import annotations

import html
import json
import subprocess
from pathlib import Path

import pytest

from monitor.comparison.compare_runs import compare
from monitor.document.compare_page import compare_page
from monitor.document.run_page import run_page
from tests.conftest import PATIENCE, require_program
from tests.unit.document import made
from tests.unit.store import made as stored

WIDTHS = (400, 1024, 1600)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--virtual-time-budget=3000",
    "--enable-logging=stderr",
)
MEASURE = """
onload = () => {
  const found = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument;
    const words = [...page.querySelectorAll("svg text")].map((one) => one.getBoundingClientRect());
    return {
      wide: page.documentElement.scrollWidth,
      charts: page.querySelectorAll("svg.chart").length,
      outside: words.filter((one) => one.right > frame.clientWidth + 1 || one.left < -1).length,
    };
  });
  document.body.replaceChildren(JSON.stringify(found));
};
"""


def shown(folder: Path, page: str) -> tuple[list[dict[str, int]], str]:
    """How a browser lays out a page at every width, and what it complained about. The page forbids scripts,
    so it is measured from an enclosing page."""
    frames = "".join(
        f'<iframe width={width} height=900 srcdoc="{html.escape(page)}"></iframe>' for width in WIDTHS
    )
    around = folder / "around.html"
    text = f"<!doctype html><meta charset=utf-8><script>{MEASURE}</script><body>{frames}</body>"
    around.write_text(text, encoding="utf-8")
    words = [
        require_program("chromium"),
        *FLAGS,
        f"--user-data-dir={folder}/browser",
        "--dump-dom",
        around.as_uri(),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    body = done.stdout.partition("<body>")[2].partition("</body>")[0]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(body)), "\n".join(console)


def comparison() -> str:
    before, after = stored.run(), stored.later(rate=180.0, data=0.1)
    found = compare(stored.record(before, stored.no_workers()), stored.record(after))
    return compare_page(found, made.dossier(before), made.dossier(after))


@pytest.mark.slow
@pytest.mark.parametrize("page", [run_page(made.dossier()), comparison()], ids=["report", "comparison"])
def test_a_document_fits_every_width(page: str, tmp_path: Path) -> None:
    found, console = shown(tmp_path, page)
    assert console == ""
    for width, one in zip(WIDTHS, found, strict=True):
        assert one["charts"] > 0
        assert one["wide"] <= width, f"at {width} the page is {one['wide']} wide"
        assert one["outside"] == 0, f"at {width} {one['outside']} words are outside the page"
