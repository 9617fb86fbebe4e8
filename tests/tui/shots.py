"""Every picture that is checked: scene, size, keys to get there. `python -m tests.tui.shots --update`
writes them anew after a change that was meant; look at the difference before committing it."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tui import scenes
from tests.tui.past import Recorded
from tests.tui.stage import SIZES, StagedApp, picture, pictures, pressing, staged

GOLDEN = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class Shot:
    """One way through the app, looked at in one or several sizes."""

    name: str
    scene: str
    sizes: tuple[str, ...] = tuple(SIZES)
    keys: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def app(self) -> StagedApp:
        os.environ.pop("NO_COLOR", None)
        made = MADE.get(self.scene)
        return made(**self.options) if made else staged(self.scene, **self.options)

    def take(self) -> dict[Path, str]:
        """File of the golden picture → what it looks like now."""
        texts = asyncio.run(pictures(self.app(), [SIZES[size] for size in self.sizes], pressing(*self.keys)))
        return {
            GOLDEN / f"{self.name}-{size}.txt": text for size, text in zip(self.sizes, texts, strict=True)
        }


def disconnected(**options: Any) -> StagedApp:
    """A daemon that was there and does not answer any more."""
    ticks: list[Any] = [
        *scenes.ticks("eight")[:-34],
        "no gpumon daemon answers at http://lab-07:9835 (Connection refused)",
    ]
    return StagedApp([("lab-07", ticks)], **options)


def stale(**options: Any) -> StagedApp:
    """A daemon that is connected but has sent nothing for a while."""
    return StagedApp([("lab-07", list(scenes.ticks("eight")[:-34]))], **options)


def hosts(**options: Any) -> StagedApp:
    """Three machines: one busy, one starved, one that never answered."""
    parts: list[tuple[str, list[Any]]] = [
        ("lab-07", list(scenes.ticks("sixteen"))),
        ("lab-08", list(scenes.ticks("data-bound"))),
    ]
    return StagedApp(
        [*parts, ("lab-09", ["no gpumon daemon answers at http://lab-09:9835 (timed out)"])], **options
    )


def own(**options: Any) -> StagedApp:
    return StagedApp([("lab-07", list(scenes.ticks("data-bound")))], mode="own", **options)


def past(**options: Any) -> StagedApp:
    """Nothing runs now, but something did."""
    return staged("one-busy", archive=Recorded, **options)


MADE = {"past": past, "disconnected": disconnected, "stale": stale, "hosts": hosts, "own": own}

OVERVIEWS = [Shot(f"overview-{scene}", scene) for scene in (*scenes.SCENES, "disconnected", "stale", "hosts")]
SMALL = ("80x24", "120x40")
SMALL_TO_LARGE = ("80x24", "120x40", "200x60")
DETAILS = [
    Shot("run-data-bound", "data-bound", SMALL_TO_LARGE, ("tab", "enter")),
    Shot("run-hung", "hung", SMALL, ("tab", "enter")),
    Shot("finding", "data-bound", SMALL_TO_LARGE, ("tab", "tab", "enter")),
    Shot("gpu-throttled", "throttled", SMALL, ("enter",)),
    Shot("gpu-lost", "lost", SMALL, ("enter",)),
    Shot("processes", "eight", SMALL_TO_LARGE, ("p",)),
    Shot("tree", "eight", SMALL, ("p", "t")),
    Shot("history", "past", SMALL, ("h",)),
    Shot("run-past", "past", SMALL, ("h", "down", "enter")),
    Shot("compare", "past", SMALL, ("h", "m", "down", "c")),
    Shot("replay", "past", SMALL, ("h", "down", "R", "space", "0", *("greater_than_sign",) * 25)),
    Shot("help", "eight", SMALL, ("question_mark",)),
    Shot("own-readings", "own", ("80x24",)),
    Shot("ascii", "eight", SMALL, (), {"ascii_only": True}),
    Shot("ascii-run", "data-bound", SMALL, ("tab", "enter"), {"ascii_only": True}),
    Shot("paused", "eight", ("80x24",), ("space",)),
    Shot("filtered", "many", ("120x40",), ("slash", *"resnet", "enter")),
    Shot("by-memory", "many", ("120x40",), ("o", "o", "o")),
]
SHOTS = [*OVERVIEWS, *DETAILS]


DOCS = {
    "overview": (Shot("overview", "data-bound"), (120, 40)),
    "run": (Shot("run", "data-bound", keys=("tab", "enter")), (120, 40)),
    "finding": (Shot("finding", "data-bound", keys=("tab", "tab", "enter")), (120, 38)),
    "eight": (Shot("eight", "eight"), (160, 46)),
}
"""The pictures in docs/screens/, made by `python -m tests.tui.shots --docs`."""


def write_docs() -> int:
    folder = Path(__file__).parents[2] / "docs" / "screens"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (shot, size) in DOCS.items():
        text = asyncio.run(picture(shot.app(), size, pressing(*shot.keys), svg=True))
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")
    return 0


def main() -> int:
    if sys.argv[1:] == ["--docs"]:
        return write_docs()
    if sys.argv[1:] != ["--update"]:
        print(__doc__, file=sys.stderr)
        return 2
    GOLDEN.mkdir(exist_ok=True)
    kept = set()
    for shot in SHOTS:
        for path, text in shot.take().items():
            path.write_text(text, encoding="utf-8")
            kept.add(path)
    for old in set(GOLDEN.glob("*.txt")) - kept:
        old.unlink()
    print(f"{len(kept)} pictures in {GOLDEN.name}/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
