"""`gpumon run --probe`: short delays at random steps, and how critical each place of the loop is."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from monitor.experiments.criticality import Criticality, Delay, criticality
from monitor.experiments.measure import periods
from monitor.experiments.process import read_told
from monitor.model.units import number
from sdk.ring import default_directory

NAMES = {
    "data": "the wait for a batch",
    "backward": "before the backward pass",
    "optimizer": "behind the update",
}


BUDGET = 0.02
"""All delays, as a share of the time."""


class Probe:
    """The delays of one run."""

    def __init__(self, budget: float = BUDGET) -> None:
        self._budget = budget
        self._folder = tempfile.TemporaryDirectory(prefix="gpumon-probe-")

    def environment(self) -> dict[str, str]:
        return {"GPUMON_TRIAL": json.dumps({"probe": self._budget, "folder": self._folder.name})}

    def delays(self) -> tuple[Delay, ...]:
        """Those of the first rank; they are forgotten here."""
        told = read_told(Path(self._folder.name))
        self._folder.cleanup()
        return told.delays if told is not None else ()

    def lines(self, run_id: str) -> Iterator[str]:
        """What they show."""
        delays = self.delays()
        found = criticality(delays, periods(Path(default_directory()), run_id))
        yield ""
        if not found:
            yield f"Criticality: not known, {len(delays)} delays in this run are too few."
            return
        yield "Criticality (1: a second saved there is a second won; 0: it is hidden behind something else):"
        for one in sorted(found, key=lambda each: -each.slope):
            yield _line(one)


def _line(one: Criticality) -> str:
    doubt = "" if one.clear else "  not clear: more steps would tell"
    slope = f"{number(one.slope, 2)} ± {number(one.margin, 2)}"
    return f"  {NAMES[one.place]:<26} {slope}  ({one.delays} delays){doubt}"
