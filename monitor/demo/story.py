"""The main demonstration: a slow training, why it is slow, the remedy, and what it really gained."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from monitor.client import Client
from monitor.comparison.compare_runs import Comparison
from monitor.demo.bars import Race, Range, ranges
from monitor.demo.code import changed_code
from monitor.demo.page import Page
from monitor.demo.stage import Stage
from monitor.language import word
from monitor.model.errors import EXIT_FAILED, UserError
from monitor.model.facts import findings_of
from monitor.model.finding import Finding
from monitor.model.run import Run
from monitor.model.units import gain_range, label, percent, seconds, value_of, whole

COMMON = (
    *("--synthetic", "--synthetic_size=1.5", "--channels=8", "--epochs=500"),
    *("--validation_interval=500", "--validation_fraction=0.03", "--quiet"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """One of the three trainings."""

    name: str
    title: str
    label: str
    options: tuple[str, ...]
    steps: int


PARTS = (
    Part("naive", "1  A training, as it was found", "as found", ("--rung=naive",), 150),
    Part(
        "remedy",
        "2  The same with that one remedy",
        "one remedy",
        ("--rung=naive", "--ablate=+normalise_once"),
        400,
    ),
    Part("best", "3  Everything this trainer can do", "everything", ("--rung=best",), 700),
)
CAUSE = "input.slow_getitem"
"""What is wrong with the training as it was found; the second part is its remedy."""
EVIDENCE = ("data_share", "getitem_seconds", "hot_line", "num_workers")
SETTLE_SECONDS = 6.0
"""How long the daemon may take to see that a run has ended."""
LOOK_SECONDS = 0.4
LEAST_STEPS = 40
BEFORE_AND_AFTER = ("NaiveSequences.__getitem__", "NormalisedSequences._make")
"""What the remedy changed, in trainers/tcn/data.py."""


class Story:
    def __init__(
        self, stage: Stage, client: Client, page: Page, trainer: Sequence[str], *, quick: bool, output: Path
    ) -> None:
        self.stage, self.client, self.page, self.trainer = stage, client, page, trainer
        self.quick, self.output = quick, output
        self.race = Race([part.label for part in PARTS])

    def tell(self) -> bool:
        """Whether the cause was named."""
        self._opening()
        naive, findings = self._part(0)
        finding = self._diagnosis(findings)
        remedy, _ = self._part(1)
        best, _ = self._part(2)
        self._verdict(naive, remedy, best, finding)
        self._documents(naive, remedy)
        self._yours()
        return finding is not None

    def _opening(self) -> None:
        source = self.client.snapshot().source
        gpu = "no GPU here: its readings are simulated" if source.kind == "simulated" else "with its GPU"
        self.page.write(self.page.on.paint("gpumon demo", "bold"))
        self.page.say(f"A small network for time series, trained for real on this machine ({gpu}).")
        self.page.say("Three runs one after the other; gpumon watches them from outside.")

    # ── A run ──

    def _part(self, number: int) -> tuple[Run, list[Finding]]:
        self.page.chapter(PARTS[number].title)
        run, findings = self._train(number)
        lane = self.race.lanes[number]
        lane.rate, lane.done = run.samples_per_second or 0.0, 1.0
        self.page.write(self.race.lines(self.page.on, self.page.width)[number])
        shares = sorted(run.phases, key=lambda phase: -phase.share)[:3]
        where = ", ".join(f"{phase.name} {percent(phase.share)}" for phase in shares)
        step = f"{seconds(run.mean_step_seconds)} a step" if run.mean_step_seconds else "no steady step"
        self.page.say(f"{whole(run.steps)} steps, {step}: {where}", "dim")
        return run, findings

    def _train(self, number: int) -> tuple[Run, list[Finding]]:
        """Train to the end; the run, and what the daemon then has found. While a run is this young, it does
        not know yet which lines take the time, and promises less."""
        part = PARTS[number]
        steps = max(LEAST_STEPS, part.steps // 3) if self.quick else part.steps
        child = self.stage.start(self._command(part, steps), part.name)
        run: Run | None = None
        while child.poll() is None:
            run, _ = self._look(part.name, run)
            self._draw(number, run, steps)
            time.sleep(LOOK_SECONDS)
        run, findings = self._ended(part.name, run)
        if child.returncode or run is None:
            words = self.stage.last_words(part.name)
            raise UserError(f"the demo's training ({part.label}) failed: {words}", code=EXIT_FAILED)
        return run, findings

    def _command(self, part: Part, steps: int) -> list[str]:
        words = [*COMMON, *part.options, f"--run_name=demo-{part.name}", f"--max_steps={steps}"]
        return [*self.trainer, *words, f"--out={self.stage.folder / 'out' / part.name}"]

    def _draw(self, number: int, run: Run | None, steps: int) -> None:
        lane = self.race.lanes[number]
        if run is not None and run.samples_per_second:
            lane.rate, lane.done = run.samples_per_second, min(0.99, run.steps / steps)
        doing = f"training, step {whole(run.steps)} of {whole(steps)}" if run else "starting: importing torch"
        lines = self.race.lines(self.page.on, self.page.width)[: number + 1]
        self.page.draw([*lines, self.page.on.paint(f"  {doing}", "dim")])

    def _ended(self, name: str, run: Run | None) -> tuple[Run | None, list[Finding]]:
        """The run once the daemon has seen its end, with what it says of it then."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            run, findings = self._look(name, run)
            if time.monotonic() > deadline or (run is not None and not run.live):
                return run, findings
            time.sleep(0.25)

    def _look(self, name: str, last: Run | None) -> tuple[Run | None, list[Finding]]:
        snapshot = self.client.snapshot()
        run = next((run for run in snapshot.runs if run.name == f"demo-{name}"), last)
        return run, list(findings_of(run, snapshot.findings)) if run is not None else []

    # ── What is said about them ──

    def _diagnosis(self, findings: list[Finding]) -> Finding | None:
        """The finding that promises most: cause, evidence, remedy, gain."""
        causes = [one for one in findings if one.speedup is not None and one.id.startswith("input.")]
        if not causes:
            self.page.say("gpumon found no cause: the run was too short on this machine", "warning")
            return None
        chosen = next((one for one in causes if one.id == CAUSE), causes[0])
        self.page.write("", self.page.on.paint(f"  gpumon says: {chosen.id}", chosen.severity))
        tell(self.page, chosen, EVIDENCE)
        if chosen.id == CAUSE:
            self._change()
        return chosen

    def _change(self) -> None:
        lines = changed_code(*BEFORE_AND_AFTER)
        if lines:
            self.page.point("change", "what the second run does instead (trainers/tcn/data.py):")
            self.page.change([*lines, "@@ once, before the first step: scaler.transform(rows) @@"])

    def _verdict(self, naive: Run, remedy: Run, best: Run, finding: Finding | None) -> None:
        self.page.chapter("4  Predicted against realised")
        self.page.write(*self.race.lines(self.page.on, self.page.width), "")
        one, all_of_it = self._compare(naive, remedy), self._compare(naive, best)
        rows: list[tuple[str, Range]] = []
        if finding is not None and finding.speedup is not None:
            rows.append(("one remedy, predicted", span_of(finding)))
        rows += [
            (name, span)
            for name, found in (("one remedy, realised", one), ("everything, realised", all_of_it))
            if (span := _measured(found)) is not None
        ]
        if rows:
            self.page.write(*ranges(rows, self.page.on, self.page.width))
        self.page.say(*_judged(finding, one))

    def _compare(self, a: Run, b: Run) -> Comparison | None:
        with contextlib.suppress(UserError, msgspec.MsgspecError):
            answer = self.client.get(f"/api/v1/compare?a={a.id}&b={b.id}", method="POST")
            return msgspec.json.decode(answer, type=Comparison)
        return None

    def _documents(self, naive: Run, remedy: Run) -> None:
        self.page.chapter("5  To keep and to send")
        compared = self.output.with_name(f"{self.output.stem}-compare{self.output.suffix}")
        written = []
        if self.stage.gpumon("report", naive.id, f"--output={self.output}"):
            written.append((str(self.output), "the first run: every second of it, and what to change"))
        if self.stage.gpumon("compare", naive.id, remedy.id, f"--html={compared}"):
            written.append((str(compared), "the first two side by side"))
        if written:
            self.page.commands(written)
        else:
            self.page.say(f"The report could not be written to {self.output}", "warning")

    def _yours(self) -> None:
        self.page.chapter("Now on yours")
        self.page.commands(
            [
                ("gpumon run -- python train.py", "your script as it is, then a diagnosis like this one"),
                ("gpumon tui", "the screen beside it"),
                (
                    "gpumon try -- python train.py",
                    "what does each setting bring? nothing is written",
                ),
                ("gpumon demo --scenario hung-rank", "what else it sees: hung-rank, throttled-gpu, leak, …"),
            ]
        )


def tell(page: Page, finding: Finding, evidence: Sequence[str]) -> None:
    """A finding as a few labelled sentences."""
    page.point("cause", finding.title)
    known = [(key, finding.evidence[key]) for key in evidence if finding.evidence.get(key) is not None]
    if known:
        page.point(
            "evidence", "; ".join(f"{word(label(key))} {value_of(key, value)}" for key, value in known)
        )
    page.point("remedy", finding.remedy.summary)
    page.change(finding.remedy.change.splitlines())
    if finding.speedup is not None:
        promise = gain_range(finding.speedup.low, finding.speedup.likely, finding.speedup.high)
        page.point("predicted", promise, "bold")


def span_of(finding: Finding) -> Range:
    assert finding.speedup is not None
    return finding.speedup.low, finding.speedup.likely, finding.speedup.high


def _measured(found: Comparison | None) -> Range | None:
    if found is None or found.speedup is None:
        return None
    low, high = found.low or found.speedup, found.high or found.speedup
    return low, found.speedup, high


def _judged(finding: Finding | None, found: Comparison | None) -> tuple[str, str]:
    """Whether the promise was kept: a sentence and its tone."""
    real = _measured(found)
    if finding is None or finding.speedup is None or real is None:
        return "Nothing to compare: too few steps for a prediction or for a steady rate.", "warning"
    low, high = finding.speedup.low, finding.speedup.high
    if low <= real[1] <= high:
        return "The remedy gained what was predicted.", "healthy"
    near = real[0] <= high and real[2] >= low
    where = "more" if real[1] > high else "less"
    ending = ", though their ranges overlap." if near else "."
    return f"The remedy gained {where} than was predicted{ending}", "warning"
