"""A process of a trial: knobs are applied, losses kept, and it ends after so many steps or seconds.

What to do is in `GPUMON_TRIAL`, as JSON; what came of it is a file for each process that trains, in the
folder named there. The process ends without running the rest of the script (`os._exit`): what a script does
at its end, such as saving a model, must not happen to one that was trained for a few steps.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import sys
import time
import weakref
from typing import Any

from ..auto import registry
from ..auto.import_hook import when_imported
from ..auto.patch import replace
from ..auto.start import TRIAL
from ..delays.inject import Delays
from ..explore.explorer import Candidate, Explorer
from ..explore.start import explore
from ..loop.recorder import NEVER
from ..loop.session import Session
from ._memory import peak_bytes
from .catalog import ALL
from .hooks import after_optimizer, after_step
from .knob import Outcome, Place, attempt

WARM_STEPS = 10
"""Steps before the seconds of a trial count: the recorder calls no later step warm-up."""

SLOW = 3
"""A choice: so many times the seconds asked for are added at most."""


class Trial:
    """The trial this process is part of."""

    def __init__(self, session: Session, wanted: dict[str, Any]) -> None:
        self._session = session
        self._recorder = session.recorder
        self._folder: str | None = wanted.get("folder")
        self._steps = wanted.get("steps") or NEVER
        self._seconds = wanted.get("seconds") or float("inf")
        self._seed: int | None = wanted.get("seed")
        self._bounded = self._steps != NEVER or self._seconds != float("inf")
        self._samples = bool(wanted.get("sample"))
        self._least = wanted.get("least", 0)
        self._delays = Delays(self._session_to_delay, wanted["probe"]) if wanted.get("probe") else None
        self._live: list[str] | None = wanted.get("live")
        """Of the settings, those that are compared with none while the training runs; empty: it is searched
        for some."""
        self._before: float | None = wanted.get("before")
        self._explorer: Explorer | None = None
        self._updates: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """Of each optimizer: a monitor in the script's own code takes over, and our recorder sees no more."""
        self._last_updates = 0
        self._ends = time.monotonic() + 1e9
        self._warm = False
        self._losses: list[Any] = []
        self._settings: dict[str, str] = wanted.get("set", {})
        self._values = {name: ALL[name].read(str(text)) for name, text in self._settings.items()}
        self._outcomes = {name: Outcome(ALL[name].needs) for name in ALL if name in self._values}

    def prepare(self) -> None:
        """Before torch is imported."""
        for name in self._outcomes:
            ALL[name].before_torch(self._values[name])

    def begin(self, torch: Any) -> None:
        """torch has been imported."""
        if self._seed is not None:
            self._same_numbers(torch, self._seed)
        after_optimizer(self._stepped)
        place = Place(torch, self.steps)
        flips = {
            name: attempt(outcome, ALL[name].apply, place, self._values[name], outcome)
            for name, outcome in self._outcomes.items()
        }
        if self._delays is not None:
            self._delays.install(torch, after_step)
            atexit.register(self._delays.end)
        if self._live is not None:
            given = [
                Candidate(f"{name}={self._settings[name]}", self._outcomes[name], flips[name])
                for name in self._live
            ]
            self._explorer = explore(
                torch, self._session, self.steps, given or None, self._write, self._before
            )
        if self._bounded:
            replace(torch.autograd, "backward", self._backward)
            if not self._samples:
                self._recorder.next_sample = NEVER  # nothing but the training is to be timed
        atexit.register(self._write)

    def _stepped(self, optimizer: Any) -> None:
        """One that is new begins another training, whose losses are its own."""
        if optimizer not in self._updates:
            self._losses = self._losses[-1:]
        self._last_updates = self._updates[optimizer] = self._updates.get(optimizer, 0) + 1

    def steps(self) -> int:
        return self._recorder.steps if self._recorder.on else self._last_updates

    def _session_to_delay(self) -> Any:
        """The one that records: ours, or that of a monitor in the script. None in later ranks: delays of
        several at once could not be told apart. A process knows its rank when it trains, not before."""
        session = self._session if self._recorder.on else registry.owner()
        return session if session is not None and not session.meta.get("rank") else None

    def _same_numbers(self, torch: Any, seed: int) -> None:
        """Every trial begins with the same random numbers; a script's own seed comes later and counts."""
        random.seed(seed)
        torch.manual_seed(seed)
        when_imported("numpy", lambda numpy: numpy.random.seed(seed))

    def _backward(self, original: Any) -> Any:
        def backward(*args: Any, **kwargs: Any) -> Any:
            self._check()
            tensors = args[0] if args else kwargs.get("tensors")
            first = tensors if hasattr(tensors, "detach") else next(iter(tensors or ()), None)
            if first is not None and first.numel() == 1:
                self._losses.append(first.item() if first.device.type == "cpu" else first.detach())
            return original(*args, **kwargs)

        return backward

    def _check(self) -> None:
        """Work for another step has begun: is it still part of the trial? Slow steps get more seconds than
        were asked for, so that there are enough of them."""
        steps, now = self.steps(), time.monotonic()
        if not self._warm and steps >= WARM_STEPS:
            self._warm, self._ends = True, now + self._seconds
        late = now > self._ends and (steps >= self._least or now > self._ends + SLOW * self._seconds)
        if steps >= self._steps or late:
            self._end()

    def _end(self) -> None:
        for session in (self._session, registry.owner()):
            if session is not None:
                session.stop()
        self._write()
        os._exit(0)

    def _write(self) -> None:
        """Tell `gpumon try`; a process that does not train has nothing to tell."""
        if self._folder is None or not (self._losses or self.steps()):
            return
        torch = sys.modules["torch"]
        told = {
            "rank": self._session.meta.get("rank", 0),
            "steps": self.steps(),
            "losses": [loss if isinstance(loss, float) else loss.item() for loss in self._losses],
            "knobs": {name: outcome.as_json() for name, outcome in self._outcomes.items()},
            "explored": self._explorer.told() if self._explorer is not None else None,
            "memory_bytes": peak_bytes(),
            "device_memory_bytes": _device_bytes(torch),
        }
        path = os.path.join(self._folder, f"{os.getpid()}.json")
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.replace(f"{path}.new", path)


def _device_bytes(torch: Any) -> int | None:
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return int(torch.cuda.max_memory_allocated())


def start_trial(session: Session) -> None:
    """Take part in the trial the environment names."""
    trial = Trial(session, json.loads(os.environ[TRIAL]))
    trial.prepare()
    when_imported("torch", trial.begin)
