"""Runs one trial: a process of the user's command with settings in it, watched from outside."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from monitor.experiments.arm import Arm
from monitor.experiments.isolation import Isolation, Mode, choose
from monitor.experiments.measure import Measured, measure
from monitor.experiments.process import Ended, run_to_end
from sdk.ring import default_directory

SEED = 20240517
"""Every trial begins with the same random numbers."""
OFFLINE = {"WANDB_MODE": "offline", "NEPTUNE_MODE": "offline", "CLEARML_OFFLINE_MODE": "1"}
"""A trial is no run anybody wants to see in a list of runs."""
LONGEST_TMPDIR = 64
LEAST_STEPS = 40
"""A choice: steps a first look makes, however slow they are."""


class Trial(msgspec.Struct, frozen=True):
    """What one process gave."""

    arm: Arm
    seconds: float
    """All of it, start to end."""
    ended: Ended
    measured: Measured | None
    run_id: str

    @property
    def problem(self) -> str:
        """Why it tells nothing; empty when it does."""
        if self.failure:
            return f"it failed: {self.failure}"
        return "too few steps were made" if self.measured is None else self._no_use()

    @property
    def failure(self) -> str:
        """How it failed; empty when it trained and came to its end."""
        if self.ended.code is None:
            return "it did not come to its end in time"
        if self.ended.code:
            return self.ended.last_words or f"exit code {self.ended.code}"
        return "" if self.ended.told is not None else "no step was made"

    def _no_use(self) -> str:
        """Settings that changed nothing make no arm."""
        told = self.ended.told.knobs if self.ended.told is not None else {}
        states = {name: told.get(name, {}).get("state", "waiting") for name in self.arm.settings}
        if not states or any(state == "applied" for state in states.values()):
            return ""
        return "; ".join(dict.fromkeys(told.get(name, {}).get("why", "") for name in states))


class Runner:
    """Trials of one command. What they leave in files is gone when it is closed."""

    def __init__(self, words: list[str], environment: dict[str, str], mode: Mode) -> None:
        self.words = words
        self._environment = environment | OFFLINE
        self._scratch = Path(tempfile.mkdtemp(prefix="gpumon-try-", dir=_scratch_place()))
        self._count = 0
        os.makedirs(default_directory(), mode=0o700, exist_ok=True)
        self.isolation = self._choose(mode)

    def _choose(self, mode: Mode) -> Isolation:
        try:
            return choose(mode, [default_directory()], self._folder("check"))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _folder(self, name: str) -> Path:
        folder = self._scratch / name
        for part in (folder, folder / "rings", folder / "tmp"):
            part.mkdir(mode=0o700)
        return folder

    def trial(self, arm: Arm, *, limit: float, **window: Any) -> Trial:
        """One process, bounded by `window` (steps, or seconds and the least steps)."""
        run_id = f"try-{secrets.token_hex(5)}"
        return self._run(arm, run_id, None, limit, {"seed": SEED, **window})

    def first_look(self, run_id: str, seen: dict[str, str], seconds: float, limit: float) -> Trial:
        """The script as it is, sampled, with a ring where readers look for it."""
        window = {"seconds": seconds, "least": LEAST_STEPS, "sample": True}
        return self._run(Arm(), run_id, seen, limit, window)

    def _run(
        self, arm: Arm, run_id: str, seen: dict[str, str] | None, limit: float, window: dict[str, Any]
    ) -> Trial:
        self._count += 1
        folder = self._folder(str(self._count))
        rings = Path(default_directory()) if seen is not None else folder / "rings"
        wanted = {"folder": str(folder), "set": arm.settings, **window}
        environment = self._environment | (seen or {})
        environment |= {"GPUMON_RUN_ID": run_id, "GPUMON_TRIAL": json.dumps(wanted)}
        environment |= {"GPUMON_DIR": str(rings), "PYTHONHASHSEED": "0"} | _temporary(folder / "tmp")
        words, cwd = self.isolation.place([*self.words, *arm.words], folder)
        began = time.monotonic()
        try:
            ended = run_to_end(words, environment, cwd, folder, limit)
            return Trial(arm, time.monotonic() - began, ended, measure(rings, run_id), run_id)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _temporary(folder: Path) -> dict[str, str]:
    """Files a script means to be temporary go with the trial. Loader workers make sockets there, whose paths
    may have 107 characters: where ours is long, the script keeps its own."""
    return {"TMPDIR": str(folder)} if len(str(folder)) <= LONGEST_TMPDIR else {}


def _scratch_place() -> str | None:
    """`GPUMON_TRY_SCRATCH`, else shared memory, where rings belong; else the usual folder for such files."""
    return os.environ.get("GPUMON_TRY_SCRATCH") or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
