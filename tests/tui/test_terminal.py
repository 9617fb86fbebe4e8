"""The whole way in a real terminal: daemon, trainer, tmux, key presses."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.benchmarks.daemon import free_port
from tests.conftest import PATIENCE, require_program, wait_for
from tests.tui.terminal import Terminal

pytestmark = pytest.mark.slow

GPUMON = [sys.executable, "-m", "monitor.cli.main"]
TRAINER = """
import time
from sdk import TrainingMonitor
with TrainingMonitor("starving", batch_size=32) as monitor:
    while True:
        for name, seconds in (("data", 0.03), ("forward", 0.005), ("backward", 0.01)):
            with monitor.phase(name):
                time.sleep(seconds)
        monitor.step()
"""


OTHERS = ("GPUMON_", "TMUX", "NO_COLOR", "COLUMNS", "LINES")
"""Set by whoever ran before in this process; COLUMNS and LINES would overrule the terminal's size."""


class Tmux:
    """One tmux server of the test's own, with one window."""

    def __init__(self, program: str, environment: dict[str, str]) -> None:
        self._program, self._environment = program, environment
        self._socket = f"gpumon-{uuid.uuid4().hex[:8]}"

    def run(self, *words: str) -> str:
        command = [self._program, "-L", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=PATIENCE
        ).stdout

    def start(self, command: list[str], size: tuple[int, int]) -> None:
        """A program that ends leaves its last words on the screen, for a failing test to show."""
        stay = ("start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";")
        self.run(*stay, "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), *command)

    def keys(self, *keys: str) -> None:
        """Press keys; after Escape wait for the overview, else the next key is taken for Alt-key."""
        for key in keys:
            self.run("send-keys", key)
            if key == "Escape":
                wait_for(
                    lambda: "p Processes  h History" in (seen := self.screen()) and "Symbols" not in seen
                )

    def screen(self) -> str:
        return self.run("capture-pane", "-p")

    def shows(self, *texts: str) -> str:
        """Wait until all `texts` stand on the screen."""
        try:
            return wait_for(lambda: screen if all(t in (screen := self.screen()) for t in texts) else "")
        except AssertionError:
            raise AssertionError(f"{texts} never came:\n{self.screen()}") from None

    def pid(self) -> int:
        return int(self.run("display-message", "-p", "#{pane_pid}"))

    def close(self) -> None:
        self.run("kill-server")


@contextmanager
def child(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(15)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    rings = tmp_path / "rings"
    rings.mkdir()
    private = {
        "GPUMON_DIR": str(rings),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    base = {key: value for key, value in os.environ.items() if not key.startswith(OTHERS)}
    return base | private | {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}


@pytest.fixture
def tmux(environment: dict[str, str]) -> Iterator[Tmux]:
    made = Tmux(require_program("tmux"), environment)
    yield made
    made.close()


@pytest.mark.slow
def test_a_run_is_watched_beside_a_daemon(tmux: Tmux, environment: dict[str, str], tmp_path: Path) -> None:
    """GIVEN a daemon and a starved trainer WHEN keys are pressed THEN the screens lead to the fix."""
    url = f"127.0.0.1:{free_port()}"
    daemon = [*GPUMON, "daemon", "--listen", url, "--socket", "none", "--source", "simulated", "--gpus", "2"]
    with child(daemon, environment) as served, child([sys.executable, "-c", TRAINER], environment):
        tmux.start([*GPUMON, "tui", "--connect", f"http://{url}"], (120, 40))
        tmux.shows("gpumon", "simulated", "live", "GPU 1")
        tmux.shows("starving", "where the step goes")
        tmux.keys("Tab", "Enter")
        tmux.shows("Phases over time", "it/s")
        tmux.keys("Escape", "p")
        tmux.shows("▸ processes", "trainer")
        tmux.keys("Escape", "?")
        tmux.shows("Everywhere", "Symbols")
        tmux.keys("Escape", "h")
        tmux.shows("▸ history", "starving")
        tmux.keys("Escape", "Space")
        tmux.shows("paused")
        tmux.keys("Space")
        tmux.run("resize-window", "-x", "80", "-y", "24")
        assert max(map(len, tmux.shows("Runs", "quit".capitalize()).splitlines())) <= 80
        served.kill()
        tmux.shows("disconnected")
        pid = tmux.pid()
        tmux.keys("q")
        wait_for(lambda: ended(pid))


def ended(pid: int) -> bool:
    """Gone, or left for its parent to collect (in a container nobody may)."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_without_a_daemon_it_reads_by_itself_and_leaves_nothing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """GIVEN no daemon WHEN it is started THEN it says so, and `q` leaves neither process nor file."""
    environment["GPUMON_CONNECT"] = ""
    before = sorted(path for path in (tmp_path / "rings").rglob("*"))
    terminal = Terminal([*GPUMON, "tui", "--source", "simulated"], (100, 30), environment)
    terminal.watch_for("own readings")
    with terminal:
        wait_for(lambda: terminal.first_text is not None)
        children = terminal.process.children(recursive=True)
        assert terminal.leave() == 0  # also when the key comes before Textual is loaded
        assert terminal.echoes()
    assert not [kid for kid in children if kid.is_running()]
    assert sorted(path for path in (tmp_path / "rings").rglob("*")) == before


def test_not_in_a_terminal_is_one_sentence(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*GPUMON, "tui"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2 and "needs a terminal" in done.stderr and "Traceback" not in done.stderr


def test_a_picture_is_written_without_a_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    target = tmp_path / "picture.svg"
    command = [
        *GPUMON,
        "tui",
        "--source",
        "simulated",
        "--gpus",
        "8",
        "--screenshot",
        str(target),
        "--size",
        "100x30",
        "--after",
        "1",
    ]
    subprocess.run(command, env=environment, check=True, timeout=PATIENCE)
    svg = target.read_text(encoding="utf-8")
    assert svg.startswith("<svg") and "simulated" in svg and "idle" in svg


@pytest.mark.parametrize(
    "arguments", [["--size", "huge"], ["--size", "3x3"], ["--theme", "pink"], ["--hosts", "/nowhere"]]
)
def test_bad_input_is_one_sentence(environment: dict[str, str], tmp_path: Path, arguments: list[str]) -> None:
    command = [*GPUMON, "tui", "--source", "none", "--screenshot", str(tmp_path / "x.svg"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr.startswith("gpumon: ")


def test_it_goes_on_drawing_where_stderr_is_a_log(
    environment: dict[str, str], tmux: Tmux, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    command = " ".join([*GPUMON, "tui", "--source", "simulated", "2>", str(log)])
    tmux.start(["sh", "-c", command], (100, 30))
    tmux.shows("GPUs")
    tmux.keys("?")
    tmux.shows("Symbols")
    tmux.keys("Escape", "q")
    wait_for(lambda: tmux.run("list-panes", "-F", "#{pane_dead}").strip() == "1")
    assert log.read_text() == ""
