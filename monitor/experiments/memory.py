"""What experiments have shown is kept: promise and gain in the ledger, and the best settings of a script."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from monitor.experiments.arm import Arm
from monitor.experiments.experiment import Result
from monitor.experiments.process import Explored
from monitor.model import settings
from monitor.model.errors import UserError
from monitor.model.finding import Effect
from monitor.model.paths import state_directory
from monitor.report.report import Report
from monitor.store.ledger import Realisation, subject_of
from monitor.store.owners import owner_of
from monitor.store.store import Store


class Verified(msgspec.Struct, frozen=True):
    """The best settings of a command on this machine, as `gpumon try` saw them."""

    command: list[str]
    settings: dict[str, str]
    effect: Effect
    ratio: float
    low: float
    high: float
    step_seconds: float | None
    """Of the script as it was."""
    when: float
    options: dict[str, str] = {}
    """Arguments for the command."""


def write_pairs(report: Report, results: Sequence[Result]) -> None:
    """Put what each remedy gained beside what was promised; without a history there is nowhere to."""
    chosen = settings.load()
    pairs = [one for one in results if one.ratio is not None and one.arm.finding is not None]
    if chosen.store is None or not pairs or report.run is None:
        return
    with contextlib.suppress(OSError, UserError), contextlib.closing(Store(chosen.store)) as store:
        for one in pairs:
            store.realised(_realisation(report, one))


def _realisation(report: Report, result: Result) -> Realisation:
    assert result.ratio is not None and result.arm.finding is not None and report.run is not None
    return Realisation(
        run=report.run.id,
        rule=result.arm.finding.id,
        subject=subject_of(result.arm.finding),
        ratio=result.ratio.likely,
        low=result.ratio.low,
        high=result.ratio.high,
        after_run=f"{report.run.id} (try)",
        changed=result.arm.label,
        owner_uid=owner_of(report.run),
    )


def remember(words: Sequence[str], best: Result, step_seconds: float | None) -> None:
    """For `gpumon boost`."""
    if best.ratio is not None:
        ratio = best.ratio.likely, best.ratio.low, best.ratio.high
        arm = best.arm
        kept = Verified(
            list(words), best.settings, best.effect, *ratio, step_seconds, time.time(), arm.options
        )
        _keep(words, kept)


def remember_live(words: Sequence[str], found: Explored) -> None:
    """What stayed on while the script ran: the next run begins with it."""
    settings = dict(one.split("=", 1) for one in found.stays)
    if settings and found.together is not None:
        effect = Arm(settings).effect
        _keep(words, Verified(list(words), settings, effect, *found.together, None, time.time()))


def _keep(words: Sequence[str], kept: Verified) -> None:
    """A folder that cannot be written to is no reason to lose the answer."""
    path = _path(words)
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))


def forget(words: Sequence[str]) -> None:
    """What was verified once is not any more."""
    with contextlib.suppress(OSError):
        _path(words).unlink()


def recall(words: Sequence[str]) -> Verified | None:
    """What was remembered of this command, as long as its script is the same, on this machine."""
    try:
        return msgspec.json.decode(_path(words).read_bytes(), type=Verified)
    except (OSError, msgspec.MsgspecError):
        return None


def _path(words: Sequence[str]) -> Path:
    digest = hashlib.blake2b(digest_size=16)
    for part in (socket.gethostname(), os.getcwd(), *words):
        digest.update(os.fsencode(part) + b"\0")
    for word in words:
        if word.endswith(".py") and os.path.isfile(word):
            digest.update(Path(word).read_bytes())
    return state_directory() / "verified" / f"{digest.hexdigest()}.json"
