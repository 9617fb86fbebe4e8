"""What the sampling thread says about a line: who called it, whether it draws, what the loop keeps."""

from __future__ import annotations

import gc
import textwrap
import time
from pathlib import Path
from typing import Any

from sdk.core.phases import BETWEEN, FORWARD, VALIDATE, PhaseNames
from sdk.loop.recorder import Relabelled
from sdk.sampling import windows
from sdk.sampling._hot_lines import HotLines, Sample
from sdk.sampling._samplers import EXACT
from sdk.sampling._stacks import Frame
from sdk.sampling.budget import LOOKUP_SHARE
from sdk.sampling.hotspots import Hotspots
from sdk.structure.draws import Draws
from sdk.structure.epochs import beside_the_steps
from sdk.structure.places import Place
from sdk.structure.reader import Reader
from sdk.structure.source import forget

SOURCE = """\
import random

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

def train(model, history, numbers):
    for step in range(9):
        loss = model(step)
        loss.backward()
        history.append(loss)
        numbers.append(loss.item())
"""


def source(folder: Path) -> str:
    file = folder / "photos.py"
    file.write_text(textwrap.dedent(SOURCE))
    forget()
    return str(file)


def test_a_sample_is_drawn_where_its_line_draws_or_uses_what_was_drawn(tmp_path: Path) -> None:
    file = source(tmp_path)

    def drawn(*path: tuple[int, str]) -> bool:
        return Draws(Reader()).drawn([(file, line, name) for line, name in path], "data")

    assert drawn((17, "jitter"), (7, "__getitem__"))
    assert drawn((13, "rotate"), (7, "__getitem__"))
    assert not drawn((10, "decode"), (5, "__getitem__"))
    assert not drawn((17, "jitter")), "not on the way to a sample"


SPECTRA = """\
import numpy as np

class Spectra:
    def __getitem__(self, index):
        window = np.hanning(256)
        wave = self.waves[index] + np.random.normal(size=2048)
        frames = cut(wave, 256)
        power = np.abs(np.fft.rfft(frames * window))
        return power, index % 6
"""


def test_what_follows_from_a_draw_is_drawn_however_many_lines_later(tmp_path: Path) -> None:
    """A spectrum of a noisy wave cannot be kept, though its own line draws nothing."""
    file = tmp_path / "spectra.py"
    file.write_text(SPECTRA)
    forget()
    drawn = [Draws(Reader()).drawn([(str(file), line, "__getitem__")], "data") for line in (5, 6, 7, 8, 9)]
    assert drawn == [False, True, True, True, True]


def test_lines_know_their_callers_and_the_loop_what_it_keeps(tmp_path: Path) -> None:
    file = source(tmp_path)
    spots = HotLines()
    place, caller = Place(file, 10, "decode"), Place(file, 5, "__getitem__")
    spots.count([Sample("data", (place, caller), 10, 9)])
    spots.count([Sample("backward", (Place(file, 23, "train"),), 10, 9)])
    result = spots.evaluate()
    found = {one["phase"]: one for one in result["hotspots"]}
    assert found["data"]["callers"][0]["function"] == "Photos.__getitem__"
    assert found["data"]["callers"][0]["line"] == 5 and "random" not in found["data"]
    assert [one["code"] for one in result["keeps"]] == ["history.append(loss)"]


def test_a_loop_of_two_lines_makes_the_calls_of_its_body(tmp_path: Path) -> None:
    """Samples of such a loop may single out its head: whose calls are counted on the line below."""
    file = tmp_path / "average.py"
    file.write_text("for new, old in pairs:\n    old.copy_(new)\nfor one in batches:\n    one()\n    two()\n")
    forget()
    spots = HotLines()
    spots.calls = {(str(file), 2): 40, (str(file), 4): 40}
    spots.count([Sample("between", (Place(str(file), line, "<module>"),), 10**6, 10**6) for line in (1, 3)])
    calls = {spot["line"]: spot.get("calls", 0) for spot in spots.result()}
    assert calls == {1: 40, 3: 0}


def test_time_in_which_others_have_the_core_is_no_work_of_a_line() -> None:
    hotspots = Hotspots(0, Recorder(), PhaseNames().name)
    told = hotspots._told((0, 10, 2, 7, 0, 0, None), [Frame(__file__, 1, "train")])
    assert (told.ns, told.cpu) == (3, 2)


def test_samples_count_in_the_phase_their_time_turns_out_to_be() -> None:
    """GIVEN work whose phase is known only afterwards (a pass nobody saw begin, what follows an evaluation)
    WHEN its samples are summed THEN they are of that phase, like its seconds."""
    stack = (test_samples_count_in_the_phase_their_time_turns_out_to_be.__code__, 0)
    hotspots = Hotspots(0, Recorder(), PhaseNames().name)
    hotspots._seen = [[(VALIDATE, 10, 10, 0, at, EXACT, stack) for at in (100, 250, 300, 400)]]
    later = [Relabelled(200, 400, FORWARD), Relabelled(200, 400, BETWEEN)]
    spots = hotspots.evaluate(later).result()
    assert {one["phase"]: round(one["seconds"] * 1e9) for one in spots} == {"validate": 20, "between": 20}


class Recorder:
    """As much of a recorder as the windows need."""

    thread = phase = 0
    next_sample = spent_ns = 0
    names = PhaseNames()
    relabelled: Any = ()
    sampled = False

    def flag_next(self, flag: int) -> None:
        return


def test_looking_up_collects_no_garbage(tmp_path: Path) -> None:
    """WHEN a long file is looked up THEN this triggers no collection of the training's objects."""
    file = source(tmp_path)
    Path(file).write_text(Path(file).read_text() + "value = [(1, 2), (3, 4)]\n" * 2000)
    spots = HotLines()
    spots.count([Sample("backward", (Place(file, 23, "train"),), 10, 9)])
    collections: list[int] = []

    def collected(phase: str, about: dict[str, int]) -> None:
        collections.append(about["generation"])

    gc.collect()
    gc.callbacks.append(collected)
    try:
        assert spots.evaluate()["hotspots"]
    finally:
        gc.callbacks.remove(collected)
    assert not any(collections), "one of new objects may come behind it"
    assert gc.isenabled()


def test_what_samples_say_waits_until_it_is_earned() -> None:
    """GIVEN a window's samples WHEN the run is young THEN they are looked up later, or at its end."""
    told: list[dict[str, Any]] = []
    sampling = windows.SamplingWindows(Recorder(), lambda config, _: told.append(config))  # type: ignore[arg-type]
    began, earned = time.monotonic_ns(), int(windows._EVALUATION_NS / LOOKUP_SHARE)
    for steps in range(windows.QUICK_FIRST_STEP, 100):
        sampling.step(steps, began + earned // 2, 10_000_000)
    assert not told
    sampling.step(100, began + 2 * earned, 10_000_000)
    assert len(told) == 1
    sampling.close()


def test_a_run_that_has_slowed_is_sampled_again(monkeypatch: Any) -> None:
    begun: list[int] = []
    sampling = windows.SamplingWindows(Recorder(), lambda config, scalars: None)  # type: ignore[arg-type]
    monkeypatch.setattr(sampling, "_begin", lambda steps, duration: begun.append(duration))
    sampling._usual, sampling._again = 1000, 10**18
    now = time.monotonic_ns()
    for duration in (1000, 1900, 1000, 1900, 1900):
        sampling.step(500, now, duration)
    assert begun == [], "one slow step, or two, may be anything"
    sampling.step(500, now, 1900)
    assert begun == [1900]
    for _ in range(40):
        sampling.step(500, now, 1900)
    assert len(begun) == windows.SLOWER_PROFILES


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

for number in range(9):
    labels = cluster(net)
    for first in range(0, len(rows), 64):
        loss(rows[first], labels).backward()
"""


def test_what_runs_once_an_epoch_is_found_beside_the_steps_also_in_a_caller(tmp_path: Path) -> None:
    file = tmp_path / "epochs.py"
    file.write_text(EPOCHS)
    forget()
    there = beside_the_steps(Reader(), [(str(file), 3), (str(file), 7)])
    assert [line for _, line in there] == [6]
    here = beside_the_steps(Reader(), [(str(file), 11)])
    assert [line for _, line in here] == [10], "what is printed is not what takes the time"
    counted = beside_the_steps(Reader(), [(str(file), 17)])
    assert [line for _, line in counted] == [15], "counting batches is not what takes the time"
    assert beside_the_steps(Reader(), [(str(file), 3)]) == []
