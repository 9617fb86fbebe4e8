"""What advice says about a run or a GPU: cause, evidence, remedy, predicted gain."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from monitor.model import units

Severity = Literal["critical", "warning", "hint", "healthy"]
SERIOUS: tuple[Severity, ...] = ("critical", "warning")
"""Should be fixed; a hint only may be."""


FindingKey = tuple[str, str | None, int | None, str | None]
"""Rule, run, rank and GPU."""


VerifiedOn = Literal["cpu", "gpu", "none"]
"""What a prediction rests on. "cpu": the run computes on the CPU, where predictions of this kind were
verified. "gpu": the device's own time was measured. "none": it is about a GPU, but no device time backs
it."""


class Speedup(Struct, frozen=True):
    """Predicted step-rate ratio after the remedy: 1.0 is no change."""

    low: float
    likely: float
    high: float
    why: str = ""
    verified_on: VerifiedOn = "cpu"

    @property
    def note(self) -> str:
        """What a reader must know about the figure; empty when there is nothing."""
        return "unverified on a GPU" if self.verified_on == "none" else ""


Effect = Literal["identical", "rounding", "in_expectation", "changes_training"]
"""What a remedy does to the training: the same numbers; the same mathematics with different rounding;
different random numbers of the same distribution; a different training."""


EFFECT_WORDS: dict[Effect, str] = {
    "identical": "the training stays the same",
    "rounding": "the same mathematics with different rounding",
    "in_expectation": "the same in expectation, with different random numbers",
    "changes_training": "the training itself changes",
}
"""Wording for people."""


class Remedy(Struct, frozen=True):
    summary: str
    change: str = ""
    """A command, or a code change that can be applied as is: hunks that begin with ``@@ file:line @@``, the
    user's own lines after ``-`` and their replacement after ``+``, indented relative to the first of them."""
    settings: tuple[str, ...] = ()
    """The configuration it changes ("loader.num_workers"), to tell later whether it was applied."""
    knobs: dict[str, str] = {}
    """Knob → value: the same as settings that `gpumon try` can make from outside."""
    effect: Effect | None = None
    """None: not known, or not about training."""
    price: str = ""
    """What it costs: memory, disk, accuracy, how often something is recorded."""
    avoid: str = ""
    """What not to do about it."""

    @property
    def command(self) -> str:
        """The change if it is one line to type; empty if it is a code change."""
        text = self.change.strip()
        return "" if "\n" in text or text.startswith(("@@", "+", "-")) else text


class Starved(Struct, frozen=True):
    """A GPU that a finding leaves without work, and the part of the step that keeps it waiting."""

    gpu_index: int
    utilization_ratio: float | None
    phase: str
    """"data" or "transfer"."""
    share: float | None = None
    """Of the step; None when the run's phases are not known."""


class Finding(Struct, frozen=True):
    id: str
    """The rule's stable id, e.g. ``input.no_workers``."""
    severity: Severity
    title: str
    run: str | None = None
    rank: int | None = None
    gpu: str | None = None
    evidence: dict[str, Any] = {}
    remedy: Remedy = Remedy("")
    speedup: Speedup | None = None
    since: float | None = None
    """Wall time when it was first seen."""
    age_seconds: float | None = None
    """From `since` to the snapshot. Computed by `monitor.model.row_facts`, like the next field."""
    starved: Starved | None = None
    why: str = ""
    """Why it matters, in a sentence or two."""
    headline: str = ""
    """The first clause of the title, for where the whole does not fit."""
    cause: str = ""
    """A short name for the cause: "Memory errors"."""
    subject: str = ""
    """What it is about, as people call it: "resnet", "resnet rank 3", "GPU 5" or the host's name. Computed by
    `monitor.model.facts`, like the fields below."""
    live: bool = True
    """About the machine or a run still going: nobody should be woken for a run that is over."""
    newsworthy: bool = True
    """May be a headline: it is live, or what a run died of, which must not be missed."""
    superseded: bool = False
    """About a run that has been run again since: history, no longer something to change."""
    share: float | None = None
    """Largest share of the step (for set-up: of the run) the evidence can account for, including measurement
    uncertainty: no gain exceeds 1 / (1 - share), and the likely one stays below what the measured share
    allows. None when no gain is predicted."""

    @property
    def key(self) -> FindingKey:
        """What makes it the same finding from one snapshot to the next."""
        return self.id, self.run, self.rank, self.gpu

    @property
    def brief(self) -> str:
        """The title without its details, for lists; a group's own title has none."""
        return self.headline if self.headline and self.title.startswith(self.headline) else self.title

    @property
    def promise(self) -> str:
        """The predicted gain in words, empty if there is none. A run that is over can only promise something
        for the next."""
        if self.speedup is None:
            return ""
        gain = units.gain_range(self.speedup.low, self.speedup.likely, self.speedup.high)
        return f"predicted {gain}" if self.live else f"predicted for the next run: {gain}"


class FindingGroup(Struct, frozen=True):
    """Findings of one rule and severity about several GPUs, ranks of one run, or runs slowed down by somebody
    else; also a single finding."""

    rule: str
    severity: Severity
    title: str
    """The finding's own title, or for several the cause and all subjects: "Memory errors on GPUs 0–7"."""
    subject: str
    """What they are about: "GPUs 0–7", "resnet ranks 1 and 3", or the one finding's subject."""
    findings: tuple[int, ...]
    """Their indices in `Snapshot.findings`."""
    speedup: Speedup | None = None
    """The gain to be had now: the first finding's; None once its run is over, which promises nothing."""
