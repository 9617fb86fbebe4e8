"""Graphs from characters: braille histories, bars, stacked phases. Pure functions, fixed ranges.

A history is anchored at the right, two samples a cell, and never resampled: what is seen is what
was read. A missing sample is a gap, not a zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from monitor.tui.text import Span

LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
EIGHTHS = " ▏▎▍▌▋▊▉█"

PHASES = ("data", "transfer", "forward", "backward", "optimizer")
SHORT = {"data": "data", "transfer": "copy", "forward": "fwd", "backward": "bwd", "optimizer": "opt", "other": "other"}


def history(samples: Sequence[float | None], width: int, height: int = 1, top: float = 1.0) -> list[str]:
    """The last `2 × width` samples as `height` lines of braille over the range 0…`top`."""
    shown = list(samples[-2 * width :]) if width > 0 else []
    padded: list[float | None] = [None] * (2 * width - len(shown)) + shown
    levels = [_level(value, height * 4, top) for value in padded]
    return ["".join(_cells(levels, height - 1 - row)) for row in range(height)]


def _level(value: float | None, dots: int, top: float) -> int:
    """Filled dots of a column; a sample that is there shows at least one."""
    if value is None or top <= 0:
        return 0
    return max(1, min(dots, round(value / top * dots)))


def _cells(levels: Sequence[int], row: int) -> list[str]:
    base = row * 4
    out = []
    for index in range(0, len(levels), 2):
        left = min(4, max(0, levels[index] - base))
        right = min(4, max(0, levels[index + 1] - base))
        out.append(chr(0x2800 + LEFT[left] + RIGHT[right]))
    return out


def bar(ratio: float | None, width: int, role: str) -> list[Span]:
    """A horizontal bar with eighth steps; absent draws nothing but its ground."""
    if ratio is None:
        return [Span("·" * width, "faint")]
    eighths = round(min(1.0, max(0.0, ratio)) * width * 8)
    full, rest = divmod(eighths, 8)
    body = "█" * full + (EIGHTHS[rest] if rest else "")
    return [Span(body, role), Span("·" * (width - len(body)), "faint")]


def phase_order(shares: Mapping[str, float]) -> list[str]:
    """Phases in the order a step goes through them, named extras after, `other` last."""
    extras = [name for name in shares if name not in PHASES and name != "other"]
    return [name for name in (*PHASES, *extras, "other") if shares.get(name, 0) > 0]


def role_of(phase: str) -> str:
    return f"phase.{phase}" if phase in KNOWN else f"phase.extra{sum(map(ord, phase)) % 3}"


KNOWN = frozenset((*PHASES, "other", "validate", "checkpoint", "log"))


def cells_of(shares: Mapping[str, float], width: int) -> list[tuple[str, int]]:
    """Phase → cells, summing to `width` exactly (largest remainder); tiny phases may get none."""
    names = phase_order(shares)
    total = sum(shares[name] for name in names)
    if not names or total <= 0 or width <= 0:
        return []
    exact = {name: shares[name] / total * width for name in names}
    cells = {name: int(exact[name]) for name in names}
    for name in sorted(names, key=lambda n: int(exact[n]) - exact[n])[: width - sum(cells.values())]:
        cells[name] += 1
    return [(name, cells[name]) for name in names if cells[name]]


@lru_cache(maxsize=256)
def _letter(phase: str) -> str:
    return SHORT.get(phase, phase)[0].lower()


def phase_bar(shares: Mapping[str, float], width: int, *, plain: bool = False) -> list[Span]:
    """One bar of where a step goes, each part labelled with its name as far as there is room.

    Plain (no colour) fills with the phase's first letter, so the parts stay apart.
    """
    parts = cells_of(shares, width)
    if not parts:
        return [Span("·" * width, "faint")]
    return [_part(name, cells, shares[name], plain) for name, cells in parts]


def _part(name: str, cells: int, value: float, plain: bool) -> Span:
    short = SHORT.get(name, name)
    label = next((text for text in (f"{short} {value * 100:.0f}", short, short[0]) if len(text) + 1 <= cells), "")
    if not plain:
        return Span(label.center(cells) if len(label) > 1 else label.ljust(cells), role_of(name))
    fill = _letter(name)
    if len(label) < 2 or cells < len(label) + 2:
        return Span(fill * cells, "")
    return Span(f" {label} ".center(cells, fill), "")


def stacked(columns: Sequence[Mapping[str, float]], width: int, height: int, *, plain: bool = False) -> list[list[Span]]:
    """Shares over time as stacked columns, the step's first phase at the bottom."""
    shown = list(columns[-width:])
    if not shown:
        return []
    wide = max(1, width // len(shown))
    piles = [_pile(shares, height) for shares in shown]
    return [_layer(piles, height - 1 - y, wide, plain) for y in range(height)]


def _pile(shares: Mapping[str, float], height: int) -> list[str]:
    pile = [name for name, cells in cells_of(shares, height) for _ in range(cells)]
    return pile + [""] * (height - len(pile))


def _layer(piles: Sequence[Sequence[str]], level: int, wide: int, plain: bool) -> list[Span]:
    out: list[Span] = []
    for pile in piles:
        name = pile[level]
        fill = _letter(name) if plain and name else " "
        role = role_of(name) if name and not plain else ""
        if out and out[-1].role == role:
            out[-1] = Span(out[-1].text + fill * wide, role)
        else:
            out.append(Span(fill * wide, role))
    return out
