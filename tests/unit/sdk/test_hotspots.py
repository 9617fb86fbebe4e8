"""What the sampling thread says about a line: who called it, whether it draws, what the loop keeps."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from sdk import look as looks
from sdk.hotspots import Hotspots, Seen, _drawn
from sdk.place import forget_source, per_epoch
from sdk.stacks import Frame

SOURCE = """\
class Photos:
    def __getitem__(self, i):
        image = decode(self.blobs[i])
        angle = random.uniform(-9, 9)
        return rotate(image, angle), jitter(image)

def decode(blob):
    return blob * 2

def rotate(image, angle):
    return image + angle

def jitter(image):
    for _ in range(3):
        image = image * random.random()
    return image

def train():
    for step in range(9):
        loss = model(step)
        loss.backward()
        history.append(loss)
        numbers.append(loss.item())
"""


def source(folder: Path) -> str:
    file = folder / "photos.py"
    file.write_text(textwrap.dedent(SOURCE))
    forget_source()
    return str(file)


def test_a_sample_is_drawn_where_its_line_draws_or_uses_what_was_drawn(tmp_path: Path) -> None:
    file = source(tmp_path)

    def asked(line: int) -> Frame:
        return Frame(file, line, "__getitem__")

    assert _drawn(Frame(file, 15, "jitter"), asked(5))
    assert _drawn(Frame(file, 11, "rotate"), asked(5))
    assert not _drawn(Frame(file, 8, "decode"), asked(3))
    assert not _drawn(Frame(file, 15, "jitter")), "not on the way to a sample"


def test_lines_know_their_callers_and_the_loop_what_it_keeps(tmp_path: Path) -> None:
    file = source(tmp_path)
    spots = Hotspots(0, lambda: "data")
    place, caller = Frame(file, 8, "decode"), Frame(file, 3, "__getitem__")
    spots._count([Seen("data", place, 10, 9, 0, "", "", (caller,))])
    spots._count([Seen("backward", Frame(file, 21, "train"), 10, 9, 0, "", "", ())])
    found = {one["phase"]: one for one in spots.result()}
    assert found["data"]["callers"][0]["function"] == "Photos.__getitem__"
    assert found["data"]["callers"][0]["line"] == 3 and "random" not in found["data"]
    assert [one["code"] for one in spots.kept()] == ["history.append(loss)"]


class Recorder:
    """As much of a recorder as the look needs."""

    thread = 0
    cur = 0
    next_look = 0
    on_look: Any = None

    def flag_next(self, flag: int) -> None:
        return


def test_a_run_that_has_slowed_is_looked_at_again(monkeypatch: Any) -> None:
    begun: list[int] = []
    look = looks.Look(Recorder(), lambda config, scalars: None)  # type: ignore[arg-type]
    monkeypatch.setattr(look, "_begin", begun.append)
    look._usual, look._again = 1000, 10**18
    for duration in (1000, 1900, 1000, 1900, 1900):
        look.look(500, 1, duration)
    assert begun == [], "one slow step, or two, may be anything"
    look.look(500, 1, 1900)
    assert begun == [1900]
    for _ in range(40):
        look.look(500, 1, 1900)
    assert len(begun) == looks.SLOWER_LOOKS


EPOCHS = """\
def epoch(loader):
    for batch in loader:
        loss(batch).backward()

for number in range(9):
    rows = read_again(path)
    epoch(rows)

for number in range(9):
    for batch in DataLoader(Rows(path)):
        loss(batch).backward()
    print(number)
"""


def test_what_runs_once_an_epoch_is_found_beside_the_steps_also_in_a_caller(tmp_path: Path) -> None:
    file = tmp_path / "epochs.py"
    file.write_text(EPOCHS)
    forget_source()
    there = per_epoch(Frame(str(file), 3, "epoch"), Frame(str(file), 7, "<module>"))
    assert [text for _, _, text in there] == ["rows = read_again(path)"]
    here = per_epoch(Frame(str(file), 11, "<module>"))
    assert [line for _, line, _ in here] == [12, 10]
    assert per_epoch(Frame(str(file), 3, "epoch")) == []
