"""`gpumon demo`: a slow training run, why it is slow, the remedy, and what it really gained.

Everything runs in a temporary folder with a daemon of its own; nothing is left behind. On a terminal
the TUI shows it live and the story is printed afterwards.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from monitor.cli.train import trainers_command
from monitor.client import Client
from monitor.comparison.compare_runs import Comparison
from monitor.comparison.words import measured
from monitor.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, UserError
from monitor.model.facts import findings_of
from monitor.model.finding import Finding
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot
from monitor.model.units import ABSENT, gain_range, label, number, percent, value_of, whole

COMMON = (
    *("--synthetic", "--synthetic_size=1.5", "--channels=8", "--epochs=500"),
    *("--validation_interval=500", "--validation_fraction=0.03"),
)
CHAPTERS = (
    ("naive", "1. The training as it was found", ("--rung=naive",)),
    (
        "remedy",
        "2. The named line moved out, nothing else changed",
        ("--rung=naive", "--ablate=+normalise_once"),
    ),
    ("best", "3. Everything the trainer can do (--rung best)", ("--rung=best",)),
)
STEPS = {"naive": 110, "remedy": 300, "best": 700}
SETTLE_SECONDS = 6.0
"""How long the daemon may take to see that a run has ended."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-tui", action="store_true", help="print only, also on a terminal")
    parser.add_argument("--quick", action="store_true", help="a third of the steps, for a slow machine")
    parser.add_argument(
        "--source", choices=("auto", "nvml", "simulated"), default="auto", help="GPU readings"
    )


def run(args: argparse.Namespace) -> int:
    trainers_command("tcn")  # torch missing? say so before anything is started
    live = sys.stdout.isatty() and sys.stdin.isatty() and not args.no_tui
    before = signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="gpumon-demo-") as folder,
            Stage(Path(folder), args.source, args.quick) as stage,
        ):
            return _play(stage, live)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _play(stage: Stage, live: bool) -> int:
    with stage.screen() if live else contextlib.nullcontext() as tui:
        page = Page(tui)
        with Client(stage.url) as client:
            done = Story(stage, client, page.tell).play()
        if live:
            _linger(tui)
    page.flush()
    return 0 if done else EXIT_FAILED


def _linger(tui: subprocess.Popen[bytes] | None, seconds: float = 4.0) -> None:
    """Leave the last screen up for a moment, unless it was already closed."""
    if tui is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            tui.wait(timeout=seconds)


class Page:
    """The lines of the story: printed as they come, or held back while the TUI has the terminal."""

    def __init__(self, tui: subprocess.Popen[bytes] | None) -> None:
        self.tui = tui
        self.held: list[str] = []

    def tell(self, text: str) -> None:
        self.held.append(text)
        if self.tui is None or self.tui.poll() is not None:
            self.flush()

    def flush(self) -> None:
        if self.held:
            print("\n".join(self.held), flush=True)
            self.held.clear()


class Stage:
    """The daemon, the folder, and every process the demo starts; leaving it ends them all."""

    def __init__(self, folder: Path, source: str, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self.url = f"unix:{folder / 'gpumon.sock'}"
        self.rings = folder / "rings"
        self.rings.mkdir()
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        self.environment = {**os.environ, "GPUMON_DIR": str(self.rings), "OMP_NUM_THREADS": threads}
        self.environment.pop("GPUMON_CONNECT", None)
        self.children: list[subprocess.Popen[bytes]] = []
        self.source = source

    def __enter__(self) -> Stage:
        try:
            snapshot = self._daemon(self.source)
            if self.source == "auto" and not snapshot.gpus:
                self._end(self.children.pop())
                self._daemon("simulated")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for child in reversed(self.children):
            self._end(child)

    def _daemon(self, source: str) -> Snapshot:
        words = ["daemon", f"--source={source}", "--listen=none", "--interval=0.5", f"--dir={self.rings}"]
        words += [f"--socket={self.folder / 'gpumon.sock'}", f"--store={self.folder / 'history.db'}"]
        with open(self.folder / "daemon.log", "wb") as log:
            daemon = self.start([sys.executable, "-m", "monitor.cli.main", *words], log=log.fileno())
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and daemon.poll() is None:
            with contextlib.suppress(UserError), Client(self.url) as client:
                return client.snapshot()
            time.sleep(0.1)
        raise UserError(f"the demo's daemon did not start: {self._last_words()}", code=EXIT_FAILED)

    def _last_words(self) -> str:
        text = (self.folder / "daemon.log").read_text(encoding="utf-8", errors="replace").strip()
        return text.splitlines()[-1] if text else "it said nothing"

    def start(self, words: Sequence[str], log: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """A child in its own session, so that it and its workers can be ended together."""
        child = subprocess.Popen(
            list(words),
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
        self.children.append(child)
        return child

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        for ending in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, ending)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=5)
                if ending == signal.SIGTERM:
                    continue
                return

    def train(self, name: str, options: Sequence[str]) -> subprocess.Popen[bytes]:
        steps = max(40, STEPS[name] // 3) if self.quick else STEPS[name]
        words = [*COMMON, *options, f"--run_name=demo-{name}", "--quiet", f"--max_steps={steps}"]
        words.append(f"--out={self.folder / 'out' / name}")
        with open(self.folder / f"{name}.log", "wb") as log:
            return self.start(trainers_command("tcn", *words), log=log.fileno())

    @contextlib.contextmanager
    def screen(self) -> Iterator[subprocess.Popen[bytes]]:
        """The TUI on this terminal while the story goes on; the terminal is given back afterwards."""
        environment = {**self.environment, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "")}
        tui = subprocess.Popen(
            [sys.executable, "-m", "monitor.cli.main", "tui", f"--connect={self.url}", "--readonly"],
            env=environment,
        )
        try:
            yield tui
        finally:
            if tui.poll() is None:  # else it has given the terminal back itself
                tui.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    tui.wait(timeout=5)
                if tui.poll() is None:
                    tui.kill()
                    tui.wait()
                _restore_terminal()


def _restore_terminal() -> None:
    """Main screen, cursor, no mouse reports: whatever the TUI had no time to undo."""
    sys.stdout.write("\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?2004l")
    sys.stdout.flush()
    if shutil.which("stty"):
        subprocess.run(["stty", "sane"], check=False)


class Story:
    """The chapters, told through `tell`."""

    def __init__(self, stage: Stage, client: Client, tell: Callable[[str], None]) -> None:
        self.stage, self.client, self.tell = stage, client, tell

    def play(self) -> bool:
        source = self.client.snapshot().source
        gpu = "SIMULATED GPU (there is none here)" if source.kind == "simulated" else f"GPU by {source.kind}"
        self.tell(f"gpumon demo: seed document S0, an implicit-state TCN · {gpu}, training is real")
        runs: dict[str, Run] = {}
        finding: Finding | None = None
        for name, title, options in CHAPTERS:
            self.tell(f"\n{title}")
            runs[name], findings = self._train(name, options)
            self._figures(runs[name])
            if name == "naive":
                finding = self._diagnosis(findings)
        self._verdict(runs, finding)
        return finding is not None

    def _train(self, name: str, options: Sequence[str]) -> tuple[Run, list[Finding]]:
        """Train to the end; the run and the last findings the daemon had while it lived."""
        child = self.stage.train(name, options)
        findings: list[Finding] = []
        run: Run | None = None
        while child.poll() is None:
            time.sleep(0.5)
            run, now = self._look(name, run)
            findings = now or findings
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline and (run is None or run.state == "running"):
            time.sleep(0.25)
            run, _ = self._look(name, run)
        if child.returncode or run is None:
            raise UserError(f"the demo's {name} run failed: {self._log(name)}", code=EXIT_FAILED)
        return run, findings

    def _look(self, name: str, last: Run | None) -> tuple[Run | None, list[Finding]]:
        snapshot = self.client.snapshot()
        run = next((run for run in snapshot.runs if run.name == f"demo-{name}"), last)
        return run, list(findings_of(run, snapshot.findings)) if run is not None else []

    def _log(self, name: str) -> str:
        text = (self.stage.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip()
        return text.splitlines()[-1] if text else "it said nothing"

    def _figures(self, run: Run) -> None:
        shares = sorted(run.phases, key=lambda phase: -phase.share)[:3]
        where = ", ".join(f"{phase.name} {percent(phase.share)}" for phase in shares)
        rate = f"{number(run.samples_per_second)} samples/s" if run.samples_per_second else "no steady rate"
        self.tell(f"   {whole(run.steps)} steps, {rate}; the time goes to: {where}")

    def _diagnosis(self, findings: list[Finding]) -> Finding | None:
        """The finding that promises most: cause, evidence, remedy, gain."""
        causes = [one for one in findings if one.speedup is not None and one.id.startswith("input.")]
        if not causes:
            self.tell("   gpumon found no cause: the run was too short on this machine")
            return None
        chosen = next((one for one in causes if one.id == "input.slow_getitem"), causes[0])
        self.tell(f"   gpumon says ({chosen.id}): {chosen.title}")
        evidence = list(chosen.evidence.items())[:6]
        self.tell(
            "   evidence: " + ", ".join(f"{label(key)} {value_of(key, value)}" for key, value in evidence)
        )
        self.tell(f"   remedy: {chosen.remedy.summary}")
        self.tell(f"   predicted: {_promise(chosen)}")
        return chosen

    def _verdict(self, runs: dict[str, Run], finding: Finding | None) -> None:
        self.tell("\n4. Predicted against realised")
        for name, what in (("remedy", "the named remedy alone"), ("best", "the best rung")):
            found = self._compare(runs["naive"], runs[name])
            if found is None or found.speedup is None:
                self.tell(f"   {what}: too few steps to compare")
                continue
            predicted = f"; predicted {_promise(finding)}" if finding is not None and name == "remedy" else ""
            self.tell(f"   {what}: realised {measured(found)} in {found.unit}{predicted}")

    def _compare(self, a: Run, b: Run) -> Comparison | None:
        with contextlib.suppress(UserError, msgspec.MsgspecError):
            return msgspec.json.decode(
                self.client.get(f"/api/v1/compare?a={a.id}&b={b.id}", method="POST"), type=Comparison
            )
        return None


def _promise(finding: Finding) -> str:
    speedup = finding.speedup
    return ABSENT if speedup is None else gain_range(speedup.low, speedup.likely, speedup.high)
