"""What is tried: settings that are set together, and what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from monitor.model.errors import UserError
from monitor.model.finding import Effect, Finding
from sdk.knobs.catalog import ALL, CEILINGS, KNOBS

EFFECTS: tuple[Effect, ...] = ("identical", "rounding", "in_expectation", "changes_training")
"""From the mildest on."""
FREE = EFFECTS[:2]
"""What may be done without being asked for: `--allow-numerics` allows the rest."""
_EXCLUDING = (("optimizer.fused", "optimizer.foreach"), ("gc.freeze", "gc.collect"))
"""Knobs that cannot both be set, or of which the second brings nothing beside the first."""
_OPTION_EFFECTS: dict[str, Effect] = {
    "num_workers": "identical",
    "threads": "rounding",
    "products": "rounding",
    "use_torch_compile": "rounding",
}
"""What options of the trainers do to the training; any other may change it."""


class Arm(msgspec.Struct, frozen=True):
    """One side of the experiment; without settings it is the baseline."""

    settings: dict[str, str] = {}
    finding: Finding | None = None
    """The advice it comes from."""
    options: dict[str, str] = {}
    """Arguments for the command, where it is one of the trainers."""

    @property
    def words(self) -> list[str]:
        """For the end of the command."""
        return [f"--{name}={value}" for name, value in self.options.items()]

    @property
    def label(self) -> str:
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        return " ".join(settings + self.words) or "as it is"

    @property
    def effect(self) -> Effect:
        """The worst of its knobs and options."""
        options = (_OPTION_EFFECTS.get(name, "changes_training") for name in self.options)
        return worst((*(_effect(name) for name in self.settings), *options))


def _effect(name: str) -> Effect:
    return EFFECTS[[str(one) for one in EFFECTS].index(ALL[name].effect)]


def worst(effects: Iterable[Effect]) -> Effect:
    return max(effects, key=EFFECTS.index, default="identical")


def read_arm(text: str) -> Arm:
    """From the command line: `name=value`, several with spaces between them."""
    settings: dict[str, str] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if name not in KNOBS:
            raise UserError(f"no such knob: {name}", hint=f"knobs: {', '.join(KNOBS)}")
        if not equals:
            raise UserError(f"{name} needs a value: {KNOBS[name].takes}", hint=f"--set {name}=…")
        try:
            KNOBS[name].read(value)
        except ValueError as error:
            raise UserError(str(error)) from None
        settings[name] = value
    if not settings:
        raise UserError("--set needs a knob and its value", hint="--set loader.num_workers=4")
    return Arm(settings)


def together(arms: Sequence[Arm]) -> Arm:
    """All of them, the first ones first: what contradicts an earlier one is left out."""
    settings: dict[str, str] = {}
    options: dict[str, str] = {}
    for arm in arms:
        if not any(_contradicts(name, settings) for name in arm.settings) and not set(arm.options) & set(
            options
        ):
            settings |= arm.settings
            options |= arm.options
    return Arm(settings, options=options)


def _contradicts(name: str, settings: dict[str, str]) -> bool:
    return name in settings or any(name in pair and set(pair) & set(settings) for pair in _EXCLUDING)


def ceilings() -> list[Arm]:
    """One for each part of the loop that can be had for nothing."""
    return [Arm({name: "on"}) for name in CEILINGS]


def is_ceiling(arm: Arm) -> bool:
    """Such an arm may have other samples in a step than the script: steps are compared."""
    return any(name in CEILINGS for name in arm.settings)
