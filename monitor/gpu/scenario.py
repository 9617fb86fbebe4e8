"""Scenario files: what happens to simulated GPUs, and when. TOML, checked before anything starts.

    [[event]]
    at = 20                      # seconds after the source's first reading
    until = 60                   # left out: to the end
    gpu = 0                      # an index, a list of them, or "all" (the default)
    effect = "throttle"
    reason = "hw_thermal_slowdown"

An effect is one class here: its fields are its settings, `apply` is what it does to a card.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from monitor.model.errors import UserError
from monitor.model.files import read_text
from monitor.model.gpu import THROTTLE_REASONS

Ratio = Annotated[float, Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, Meta(gt=0.0)]
Count = Annotated[int, Meta(ge=0)]


@dataclass(slots=True)
class Forces:
    """Everything the scenario does to one card at one moment."""

    reasons: set[str] = field(default_factory=set)
    clock: float = 1.0
    heat: float = 0.0
    memory: float = 0.0
    busy: float | None = None
    power_limit: float | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    corrected: int = 0
    uncorrected: int = 0
    remapped: int = 0
    xids: list[int] = field(default_factory=list)
    state: Literal["ok", "lost", "hung", "error"] = "ok"
    removed: bool = False
    driver_gone: bool = False


class Event(Struct, frozen=True, forbid_unknown_fields=True, tag_field="effect", kw_only=True):
    """When it happens and to which GPU; subclasses define what happens."""

    at: Annotated[float, Meta(ge=0.0)] = 0.0
    until: float | None = None
    gpu: int | list[int] | Literal["all"] = "all"

    once = False
    """True for an effect that happens once, at `at`; False for one that lasts until `until`."""

    def hits(self, index: int) -> bool:
        return self.gpu == "all" or self.gpu == index or (isinstance(self.gpu, list) and index in self.gpu)

    def apply(self, forces: Forces) -> None:
        """What it does to a GPU; an event without an effect does nothing."""


class Throttle(Event, frozen=True, tag="throttle"):
    """Clocks held down, with the reason the driver would give."""

    reason: str = "hw_thermal_slowdown"
    clock: Ratio = 0.55

    def apply(self, forces: Forces) -> None:
        forces.reasons.add(self.reason)
        forces.clock = min(forces.clock, self.clock)


class Heat(Event, frozen=True, tag="heat"):
    """Warmer air: the card throttles by itself once it reaches its limit."""

    celsius: Annotated[float, Meta(ge=-50.0, le=200.0)] = 35.0

    def apply(self, forces: Forces) -> None:
        forces.heat += self.celsius


class FillMemory(Event, frozen=True, tag="fill_memory"):
    """Another process takes memory until this share of the card is used."""

    ratio: Ratio = 0.97

    def apply(self, forces: Forces) -> None:
        forces.memory = max(forces.memory, self.ratio)


class SlowPcie(Event, frozen=True, tag="slow_pcie"):
    """A link that came up narrower or slower than the card allows."""

    generation: Annotated[int, Meta(ge=1, le=7)] = 1
    width: Literal[1, 2, 4, 8, 16] = 4

    def apply(self, forces: Forces) -> None:
        forces.pcie_generation, forces.pcie_width = self.generation, self.width


class Busy(Event, frozen=True, tag="busy"):
    """Use without a run: somebody else's job on the card."""

    ratio: Ratio = 0.9

    def apply(self, forces: Forces) -> None:
        forces.busy = max(forces.busy or 0.0, self.ratio)


class PowerLimit(Event, frozen=True, tag="power_limit"):
    """An administrator lowered the power limit."""

    watts: Positive = 200.0

    def apply(self, forces: Forces) -> None:
        forces.power_limit = min(forces.power_limit or math.inf, self.watts)


class Xid(Event, frozen=True, tag="xid"):
    """A driver error report, once."""

    code: Annotated[int, Meta(ge=1, le=999)] = 79
    once = True

    def apply(self, forces: Forces) -> None:
        forces.xids.append(self.code)


class Ecc(Event, frozen=True, tag="ecc"):
    """Memory errors: the counters jump at `at` and stay there."""

    corrected: Count = 1
    uncorrected: Count = 0
    remapped: Count = 0
    once = True

    def apply(self, forces: Forces) -> None:
        forces.corrected += self.corrected
        forces.uncorrected += self.uncorrected
        forces.remapped += self.remapped


class Lose(Event, frozen=True, tag="lose"):
    """The card falls off the bus."""

    def apply(self, forces: Forces) -> None:
        forces.state = "lost"


class Hang(Event, frozen=True, tag="hang"):
    """Driver calls for this card do not return."""

    def apply(self, forces: Forces) -> None:
        forces.state = "hung"


class Remove(Event, frozen=True, tag="remove"):
    """The card is not there at all; with `until`, it appears then."""

    def apply(self, forces: Forces) -> None:
        forces.removed = True


class DriverGone(Event, frozen=True, tag="driver_gone"):
    """The driver is unloaded, as during an update; no card can be reached."""

    def apply(self, forces: Forces) -> None:
        forces.driver_gone = True


AnyEvent = (
    Throttle
    | Heat
    | FillMemory
    | SlowPcie
    | Busy
    | PowerLimit
    | Xid
    | Ecc
    | Lose
    | Hang
    | Remove
    | DriverGone
)
EFFECTS = tuple(sorted(str(kind.__struct_config__.tag) for kind in AnyEvent.__args__))


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """A checked scenario."""

    event: list[AnyEvent] = []

    def forces(self, index: int, before: float, now: float) -> Forces:
        """What acts on card `index` at `now`; one-time effects fire in (before, now]."""
        forces = Forces()
        for event in self.event:
            if event.hits(index) and _acts(event, before, now):
                event.apply(forces)
        return forces


EMPTY = Scenario()


def _acts(event: Event, before: float, now: float) -> bool:
    if event.once:
        return before < event.at <= now
    return event.at <= now and (event.until is None or now < event.until)


def load_scenario(path: Path, gpus: int) -> Scenario:
    """The scenario in `path` for `gpus` cards, or a `UserError` saying what is wrong and where."""
    try:
        data = tomllib.loads(read_text(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UserError(f"cannot read the scenario {path}: {reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"the scenario {path} is not valid TOML: {error}") from error
    try:
        scenario = msgspec.convert(data, Scenario)
    except msgspec.ValidationError as error:
        hint = f"effects: {', '.join(EFFECTS)}; see docs/gpu-readings.md"
        raise UserError(f"the scenario {path} has a mistake: {error}", hint=hint) from error
    for number, event in enumerate(scenario.event, 1):
        for complaint in _complaints(event, gpus):
            raise UserError(f"event {number} of the scenario {path}: {complaint}")
    return scenario


def _complaints(event: Event, gpus: int) -> Iterable[str]:
    """What a schema cannot express: relations between settings."""
    if event.until is not None and not event.until > event.at:
        yield f"until ({event.until:g}) must be later than at ({event.at:g})"
    if event.once and event.until is not None:
        yield "this effect happens once; leave out until"
    indices = [] if event.gpu == "all" else event.gpu if isinstance(event.gpu, list) else [event.gpu]
    for index in indices:
        if isinstance(index, int) and not 0 <= index < gpus:
            yield f"there is no GPU {index}, only 0 to {gpus - 1} (--gpus {gpus})"
    if isinstance(event, Throttle) and event.reason not in THROTTLE_REASONS:
        yield f"unknown throttle reason {event.reason!r}; reasons: {', '.join(THROTTLE_REASONS)}"
