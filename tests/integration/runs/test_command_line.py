"""The command line as people meet it: mistakes, help, completion, narrow terminals and pipes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from monitor.cli.main import COMMANDS
from tests.conftest import PATIENCE, require_program
from tests.integration.runs.processes import ROOT
from tests.integration.runs.test_commands import environment, gpumon
from tests.integration.runs.test_commands import place as place  # the fixture

COLOUR = re.compile(r"\x1b\[[\d;]*m")


def on_a_terminal(place: Path, columns: int, *words: str, seen: tuple[bytes, Path] | None = None) -> str:
    """What a command writes on a terminal of this width; once it has written the first of `seen`, the second
    is created."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    given = {key: value for key, value in environment(place).items() if key not in ("COLUMNS", "NO_COLOR")}
    child = subprocess.Popen(
        [sys.executable, "-m", "monitor.cli.main", *words],
        cwd=ROOT, env={**given, "TERM": "xterm-256color"}, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    written = b""
    while part := _read(ours):
        written += part
        if seen is not None and seen[0] in written:
            seen[1].touch()
    assert child.wait(timeout=PATIENCE) == 0
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


TOY = """
import os, sys, time
from sdk import TrainingMonitor
with TrainingMonitor("toy", batch_size=32) as monitor:
    step = 0
    while step < 60 or not os.path.exists(sys.argv[1]):
        with monitor.phase("data"):
            time.sleep(0.006)
        monitor.step()
        print("said", step, flush=True)
        step += 1
"""


@pytest.mark.slow
def test_a_run_has_a_line_at_the_bottom_that_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    """The rows above the line scroll while it is there; at the end all do, and nothing printed is lost."""
    stop, taken = tmp_path / "stop", "\x1b[1;23r"
    words = ("run", "--", sys.executable, "-c", TOY, str(stop))
    written = on_a_terminal(tmp_path, 100, *words, seen=(taken.encode(), stop))
    assert taken in written and " steps  " in written
    assert written.rindex("\x1b[r") > written.rindex(taken)
    assert [step for step in range(60) if f"said {step}\n" not in written] == []
    assert "gpumon report run-" in written.rpartition("\x1b[r")[2]


def test_a_run_in_a_pipe_says_nothing_into_the_commands_output(tmp_path: Path) -> None:
    answer = gpumon(tmp_path, "run", "--", sys.executable, "-c", TOY, str(tmp_path))
    assert answer.stdout == "".join(f"said {step}\n" for step in range(60))
    assert "\x1b" not in answer.stderr and "gpumon report run-" in answer.stderr
    shutil.rmtree(tmp_path / "rings")  # only the history is left
    alone = gpumon(tmp_path)
    assert "gpumon report last" in alone.stdout and "gpumon demo" not in alone.stdout


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rnus",), "did you mean gpumon runs?"),
        (("nothing-like-it",), "gpumon --help lists the commands"),
        (("runs", "--jsn"), "did you mean --json?"),
        (("runs", "--limit", "x"), "'x' is not a number of runs"),
        (("status", "--gpus", "4"), "add --source simulated"),
        (("run", "--probe-budget", "0.1", "--", "true"), "add --probe"),
        (("tui", "--size", "80x24"), "add --screenshot FILE"),
        (("help", "input.no_worker"), "did you mean input.no_workers"),
        (("show",), "gpumon show --help"),
        (("doctor", "--nope"), "gpumon doctor --help"),
        (("try",), "gpumon try -- python train.py"),
        (("--nope",), "there is no option '--nope'"),
        (("show", "\udcff"), "there is no run"),
        (("compare", "last", "last"), "A and B are the same run"),
        (("compare", "last~1", "last", "--fail-below", "-1"), "'-1' is not a number above 0"),
    ],
)
def test_a_mistake_is_one_sentence_and_what_was_meant(place: Path, words: tuple[str, ...], said: str) -> None:
    answer = gpumon(place, *words)
    assert answer.returncode == 2 and answer.stdout == ""
    assert said in answer.stderr and answer.stderr.startswith("gpumon: ")
    assert "Traceback" not in answer.stderr and "usage:" not in answer.stderr


def test_a_history_that_cannot_be_read_is_named_and_the_answer_given(place: Path) -> None:
    """What shared memory knows is still shown; nothing is written to the file."""
    broken = place / "broken.db"
    broken.write_text("this is no data base")
    for path, said in ((broken, "cannot be read"), (place / "missing.db", "there is no history")):
        answer = gpumon(place, "runs", "--store", str(path))
        assert answer.returncode == 0 and answer.stdout.startswith("run ")
        assert said in answer.stderr and str(path) in answer.stderr
    assert broken.read_text() == "this is no data base" and not (place / "missing.db").exists()


def test_a_verdict_breaks_between_words(place: Path) -> None:
    plain = COLOUR.sub("", on_a_terminal(place, 60, "report", "last", "-o", os.devnull))
    assert max(map(len, plain.splitlines())) <= 60


def test_alone_it_says_what_goes_on_and_what_to_do(place: Path) -> None:
    answer = gpumon(place)
    assert answer.returncode == 0
    for hint in ("gpumon run -- python train.py", "gpumon report last", "gpumon --help"):
        assert hint in answer.stdout


@pytest.mark.parametrize("topic", [*COMMANDS, "input.no_workers", "exit-codes"])
def test_help_knows_commands_rules_and_topics(place: Path, topic: str) -> None:
    answer = gpumon(place, "help", topic)
    assert answer.returncode == 0 and len(answer.stdout) > 60


def test_a_row_never_breaks_on_a_narrow_terminal(place: Path) -> None:
    """At any width every line fits, and all runs are there, complete."""
    ids = [line.split()[0] for line in gpumon(place, "runs").stdout.splitlines()[1:]]
    assert len(ids) == 2
    for columns in (60, 80, 200):
        plain = COLOUR.sub("", on_a_terminal(place, columns, "runs"))
        assert max(map(len, plain.splitlines())) <= columns
        assert [one for one in ids if one in plain] == ids


def test_colour_on_a_terminal_and_none_in_a_pipe(place: Path) -> None:
    assert "\x1b[" in on_a_terminal(place, 100, "runs")
    assert "\x1b[" not in gpumon(place, "runs").stdout


def test_a_terminal_without_utf_8_gets_plain_characters(place: Path) -> None:
    for words in (("show", "last"), ("compare", "last~1", "last"), ("report", "--md"), ("runs",)):
        done = subprocess.run(
            [sys.executable, "-m", "monitor.cli.main", *words],
            cwd=ROOT, env={**environment(place), "PYTHONIOENCODING": "ascii"}, capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0 and done.stdout.isascii() and b"Traceback" not in done.stderr


def test_bash_completes_commands_and_options(place: Path) -> None:
    script = gpumon(place, "completion", "bash").stdout
    ask = 'COMP_WORDS=(gpumon {0}); COMP_CWORD={1}; _gpumon; echo "${{COMPREPLY[@]}}"\n'
    asked = script + ask.format("rep", 1) + ask.format("report --o", 2) + ask.format("help inp", 2)
    done = subprocess.run(
        [require_program("bash"), "-c", asked], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.splitlines()[:2] == ["report", "--output"] and done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_can_be_completed(place: Path, shell: str) -> None:
    script = gpumon(place, "completion", shell).stdout
    assert [name for name in COMMANDS if name not in script] == []


def in_a_shell(place: Path, command: str) -> subprocess.CompletedProcess[str]:
    """`gpumon` stands for our command."""
    python = f"{sys.executable} -m monitor.cli.main"
    return subprocess.run(
        ["sh", "-c", command.replace("gpumon", python)],
        cwd=ROOT, env=environment(place), capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


@pytest.mark.parametrize("words", ["runs", "runs --json", "status", "show last", "report last --md"])
def test_a_full_disk_or_a_closed_output_is_said_in_one_sentence(place: Path, words: str) -> None:
    full = in_a_shell(place, f"gpumon {words} > /dev/full")
    assert (full.returncode, full.stderr) == (2, "gpumon: cannot write the output: No space left on device\n")
    closed = in_a_shell(place, f"gpumon {words} >&-")
    assert (closed.returncode, closed.stderr) == (0, "")


@pytest.mark.parametrize("seconds", ["-1", "nan", "1e9", "soon"])
def test_a_screenshot_after_no_time_at_all(place: Path, seconds: str) -> None:
    done = gpumon(place, "tui", "--screenshot", str(place / "x.svg"), f"--after={seconds}")
    assert done.returncode == 2 and "is not a number of seconds" in done.stderr, done.stderr


def test_what_is_logged_while_a_command_runs_says_whose_it_is(place: Path) -> None:
    (place / "rings").mkdir(exist_ok=True)
    (place / "rings" / "odd.0.ring").write_bytes(b"not a ring" * 1000)
    lines = gpumon(place, "runs").stderr.splitlines()
    assert lines and all(line.startswith("gpumon: ") for line in lines), lines
    assert any("size (of a size that no ring has): odd.0.ring" in line for line in lines), lines


@pytest.mark.parametrize("words", ["try -- true", "demo"])
def test_in_a_folder_that_no_longer_exists(place: Path, tmp_path: Path, words: str) -> None:
    away = f"export PYTHONPATH=$PWD; mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir {tmp_path}/gone"
    done = in_a_shell(place, f"{away}; gpumon {words}")
    assert done.returncode == 2
    assert "the current folder no longer exists\n\nhint: cd to another one\n" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
