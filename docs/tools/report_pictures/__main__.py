"""``python -m docs.tools.report_pictures [report | page]``: the pictures of docs/report.md, from two real runs
of `train.py`, and that of the live page.

Needs torch, playwright and Chromium. All is recorded in a temporary folder; only the pictures are kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.tools.report_pictures.live import live_picture

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "images"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--no-first-run",
)
DARK = "--blink-settings=preferredColorScheme=0"
REMEDY = (
    ("return blurred(self.x[at][None])[0], self.y[at]", "return self.x[at], self.y[at]"),
    ("    return x\n\n\nif __name__", "    return blurred(x)\n\n\nif __name__"),
)
"""What the finding on the first run asks for: the augmentation for a whole batch at once."""
GPUMON = (sys.executable, "-m", "monitor.cli.main")


def main() -> None:
    wanted = sys.argv[1:] or ["report", "page"]
    with tempfile.TemporaryDirectory(prefix="gpumon-pictures-") as folder:
        place = Path(folder)
        own = {
            "GPUMON_DIR": f"{place}/rings",
            "GPUMON_STORE": f"{place}/history.db",
            "GPUMON_LISTEN": "127.0.0.1:1",
        }
        found = [str(Path(sys.executable).parent), str(HERE.parents[2]), os.environ["PATH"]]
        environment = {**os.environ, **own, "PATH": ":".join(found), "PYTHONPATH": found[1]}
        if "report" in wanted:
            report_pictures(place, environment)
        if "page" in wanted:
            live_picture(place, environment, IMAGES / "page.png")


def report_pictures(place: Path, environment: dict[str, str]) -> None:
    script = shutil.copy(HERE / "train.py", place)
    call(place, environment, "run", "--name", "pictures", "--", "python", "train.py")
    for before, after in REMEDY:
        apply(Path(script), before, after)
    call(place, environment, "run", "--name", "pictures", "--", "python", "train.py")
    call(place, environment, "report", "last~1", "-o", "report.html")
    call(place, environment, "compare", "last~1", "last", "--html", "compare.html")
    picture(place / "report.html", "report.png", (1100, 2100))
    picture(place / "report.html", "report-dark.png", (1100, 1000), DARK)
    picture(place / "compare.html", "report-compare.png", (1100, 1900))


def apply(script: Path, before: str, after: str) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    script.write_text(text.replace(before, after), encoding="utf-8")


def call(place: Path, environment: dict[str, str], *words: str) -> None:
    subprocess.run([*GPUMON, *words], cwd=place, env=environment, check=True)


def picture(page: Path, name: str, size: tuple[int, int], *more: str) -> None:
    words = [
        *FLAGS,
        *more,
        f"--window-size={size[0]},{size[1]}",
        f"--screenshot={IMAGES / name}",
        page.as_uri(),
    ]
    subprocess.run(
        ["chromium", f"--user-data-dir={page.parent}/browser", *words], check=True, stderr=subprocess.DEVNULL
    )


if __name__ == "__main__":
    main()
