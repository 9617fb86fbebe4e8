"""Requests beside a ring: only what the run's owner alone can have put there is taken, and only once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sdk import ring
from sdk.profiling._mailbox import Mailbox
from sdk.profiling.requests import Loop, Requests

FAR = 1 << 62


def ask(folder: Path, content: Any = None, *, mode: int = 0o700) -> Mailbox:
    folder.mkdir()
    folder.chmod(mode)
    wish = {"steps": 5, "first": 7, "stacks": False, "until_ns": FAR} if content is None else content
    request = folder / ring.REQUEST
    request.touch(0o600)
    request.write_text(wish if isinstance(wish, str) else json.dumps(wish))
    return Mailbox(str(folder))


def test_a_request_is_taken_once(tmp_path: Path) -> None:
    box = ask(tmp_path / "box")
    assert box.open
    request = box.take()
    assert request is not None and (request.steps, request.first, request.stacks) == (5, 7, False)
    assert box.take() is None


def test_no_folder_is_no_request(tmp_path: Path) -> None:
    assert not Mailbox(str(tmp_path / "none")).open


def test_others_may_not_enter_the_folder(tmp_path: Path) -> None:
    assert not ask(tmp_path / "box", mode=0o750).open


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    ask(tmp_path / "real")
    (tmp_path / "box").symlink_to(tmp_path / "real")
    assert not Mailbox(str(tmp_path / "box")).open


def test_a_folder_of_somebody_else_is_ignored(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    box = ask(tmp_path / "box")
    os.chown(tmp_path / "box", 61_003, -1)
    assert not box.open


def pipe(request: Path) -> None:
    os.mkfifo(request, 0o600)


def link(request: Path) -> None:
    other = request.with_name("other")
    other.touch(0o600)
    request.symlink_to(other)


def second_name(request: Path) -> None:
    other = request.with_name("other")
    other.touch(0o600)
    request.hardlink_to(other)


def open_to_others(request: Path) -> None:
    request.touch()
    request.chmod(0o644)


@pytest.mark.parametrize("made", [pipe, link, second_name, open_to_others])
def test_what_is_no_private_file_is_refused_without_waiting(
    tmp_path: Path, made: Callable[[Path], None]
) -> None:
    box = ask(tmp_path / "box")
    request = tmp_path / "box" / ring.REQUEST
    request.unlink()
    made(request)
    try:
        assert box.take() is None
    except ValueError as error:
        assert "private" in str(error)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "nonsense", {"steps": "5"}, {"steps": 0, "first": 0, "until_ns": FAR}, "[" * 9999],
)
def test_what_is_no_request_says_so(tmp_path: Path, content: Any) -> None:
    with pytest.raises((ValueError, RecursionError)):
        ask(tmp_path / "box", content).take()


def requests(path: Path) -> Requests:
    made = Requests(Loop(lambda: None, lambda: False, lambda flags: None))
    words = memoryview(bytearray(8 * ring.HEADER_WORDS)).cast("Q")
    made.attach(str(path), words)
    (path.parent / "box").rename(ring.request_folder(str(path), words[ring.H_REQUESTS]))
    return made


@pytest.mark.parametrize("taken", [False, True])
def test_one_nobody_waits_for_any_more_is_cleared_away(tmp_path: Path, taken: bool) -> None:
    """Before it was taken, and with a trace that was never fetched."""
    ask(tmp_path / "box", {"steps": 5, "first": 0, "until_ns": time.monotonic_ns() - 1})
    if taken:
        (tmp_path / "box" / ring.REQUEST).rename(tmp_path / "box" / ring.TRACE)
    requests(tmp_path / "run.0.ring").look(10)
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_waited_for_stays(tmp_path: Path) -> None:
    ask(tmp_path / "box")
    made = requests(tmp_path / "run.0.ring")
    made.look(10)
    made.look(10)
    assert made.next_step == 10 and len(list(tmp_path.iterdir())) == 1


def test_an_answer_to_nobody_is_harmless(tmp_path: Path) -> None:
    Mailbox(str(tmp_path / "gone")).answer(ring.WRITTEN)
    assert not (tmp_path / "gone").exists()
