"""Graphs made of characters: braille histories, bars, stacked phases. Pure functions, fixed ranges.

A history is anchored on the right, two samples per cell, and never resampled: what is shown is what was read.
A missing sample is a gap, not a zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from monitor.language import word
from monitor.model import units
from monitor.tui.text import Line, Span, cells, fit, line, spans, width_of

LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
DOT_LEFT = (0x00, 0x40, 0x04, 0x02, 0x01)
DOT_RIGHT = (0x00, 0x80, 0x20, 0x10, 0x08)

PHASES = ("data", "transfer", "forward", "backward", "optimizer")
SHORT = {
    "data": "data",
    "transfer": "copy",
    "forward": "fwd",
    "backward": "bwd",
    "optimizer": "opt",
    "other": "other",
}


def history(
    samples: Sequence[float | None],
    width: int,
    height: int = 1,
    top: float = 1.0,
    *,
    low: float = 0.0,
    dots: Sequence[float | None] = (),
    odd: bool = False,
) -> list[str]:
    """The last `2 × width` samples as `height` lines of filled braille over the range `low`…`top`.

    With `odd` the newest sample is in the left half of the last cell: by alternating, old cells keep their
    pairs of samples and the graph moves only with every second sample. `dots` is a second series, drawn as
    single dots above the fill (a p95 over its p50).
    """
    if odd:
        samples = [*samples[1 - 2 * width :], None]
    fill = _levels(samples, width, height * 4, low, top)
    marks = _levels(dots, width, height * 4, low, top) if dots else [0] * len(fill)
    return ["".join(_cells(fill, marks, height - 1 - row)) for row in range(height)]


def _levels(samples: Sequence[float | None], width: int, steps: int, low: float, top: float) -> list[int]:
    """Filled dots of each column, right-anchored; a sample that exists shows at least one."""
    shown = list(samples[-2 * width :]) if width > 0 else []
    span = top - low
    levels = [
        0 if v is None or span <= 0 else max(1, min(steps, round((v - low) / span * steps))) for v in shown
    ]
    return [0] * (2 * width - len(levels)) + levels


def _cells(fill: Sequence[int], marks: Sequence[int], row: int) -> Iterator[str]:
    base = row * 4
    for index in range(0, len(fill), 2):
        left = LEFT[min(4, max(0, fill[index] - base))] | _dot(DOT_LEFT, marks[index] - base)
        right = RIGHT[min(4, max(0, fill[index + 1] - base))] | _dot(DOT_RIGHT, marks[index + 1] - base)
        yield chr(0x2800 + (left | right))


def _dot(bits: Sequence[int], level: int) -> int:
    return bits[level] if 0 < level <= 4 else 0


def framed(
    title: Sequence[Span], top: str, rows: Sequence[Line], width: int, ends: tuple[str, str]
) -> list[Line]:
    """A graph in a frame that doubles as its axes: title and top of the scale above, the time below."""
    inner, title = width - 2, spans(title)
    name = fit(title, min(width_of(title), inner - 2))
    high = top if width_of(name) + len(top) + 4 <= inner else ""
    above = inner - width_of(name) - len(high) - 2
    ends = word(ends[0]), word(ends[1])
    begin, end = ends if sum(map(cells, ends)) + 6 <= inner else ("", "")
    edge = [
        Span("╰─", "faint"), Span(begin, "dim"), Span("─" * (inner - cells(begin) - cells(end) - 2), "faint"),
        Span(end, "dim"), Span("─╯", "faint"),
    ]  # fmt: skip
    return [
        line(
            Span("╭ ", "faint"), name, Span(f" {'─' * above}", "faint"), Span(high, "dim"), Span("╮", "faint")
        ),
        *(Line((Span("│", "faint"), *fit(row.spans, inner), Span("│", "faint"))) for row in rows),
        line(*edge),
    ]


def meters(ratios: Sequence[float], width: int) -> str:
    """One cell per ratio, filled to its height."""
    return "".join(EIGHTHS[round(min(1.0, max(0.0, ratio)) * 8)] for ratio in ratios[:width])


EIGHTHS = "·▁▂▃▄▅▆▇█"


def round_up(value: float) -> float:
    """The next round number above: the top of a scale that does not change with every sample."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999)


def bar(ratio: float | None, width: int, role: str) -> list[Span]:
    """A thin horizontal bar; without a ratio, only the empty track."""
    if ratio is None:
        return [Span("·" * width, "faint")]
    full = round(min(1.0, max(0.0, ratio)) * width)
    return [Span("━" * full, role), Span("─" * (width - full), "faint")]


def phase_order(shares: Mapping[str, float]) -> list[str]:
    """Phases in step order, then named extras, then `other`."""
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
    taken = {name: int(exact[name]) for name in names}
    for name in sorted(names, key=lambda n: int(exact[n]) - exact[n])[: width - sum(taken.values())]:
        taken[name] += 1
    return [(name, taken[name]) for name in names if taken[name]]


LETTERS = {"transfer": "t", "other": "."}


def letter(phase: str) -> str:
    """One letter for a phase, for when there is no room for its name or no colour to tell it apart."""
    return LETTERS.get(phase) or phase[:1].lower() or "?"


def phase_bar(shares: Mapping[str, float], width: int, *, plain: bool = False) -> list[Span]:
    """One bar of where a step goes, each part labelled with its name if there is room.

    Plain (no colour) fills with the phase's first letter, to keep the parts distinguishable.
    """
    parts = cells_of(shares, width)
    if not parts:
        return [Span("·" * width, "faint")]
    return [_part(name, wide, shares[name], plain) for name, wide in parts]


def _part(name: str, width: int, value: float, plain: bool) -> Span:
    short = word(SHORT.get(name, name))
    labels = (f"{short} {units.bare_percent(value)}", short, letter(name))
    label = next((text for text in labels if cells(text) + 1 <= width), "")
    if not plain:
        return Span(_centred(label, width) if len(label) > 1 else label.ljust(width), role_of(name))
    fill = letter(name)
    if len(label) < 2 or width < cells(label) + 2:
        return Span(fill * width, "")
    return Span(_centred(f" {label} ", width, fill), "")


def _centred(text: str, width: int, fill: str = " ") -> str:
    """`str.center` for text that may be wider than it is long."""
    return text.center(width - cells(text) + len(text), fill)


def stacked(
    columns: Sequence[Mapping[str, float]], width: int, height: int, *, plain: bool = False
) -> list[list[Span]]:
    """Shares over time as stacked columns, with the step's first phase at the bottom.

    In colour a cell holds two layers (upper and lower half); plain fills with letters.
    """
    shown = list(columns[-width:])
    if not shown:
        return []
    wide = max(1, width // len(shown))
    layers = height if plain else 2 * height
    piles = [_pile(shares, layers) for shares in shown]
    if plain:
        return [_letters(piles, height - 1 - y, wide) for y in range(height)]
    return [_halves(piles, layers - 1 - 2 * y, wide) for y in range(height)]


def _pile(shares: Mapping[str, float], layers: int) -> list[str]:
    pile = [name for name, deep in cells_of(shares, layers) for _ in range(deep)]
    return pile + [""] * (layers - len(pile))


def _letters(piles: Sequence[Sequence[str]], level: int, wide: int) -> list[Span]:
    return [Span("".join((letter(pile[level]) if pile[level] else " ") * wide for pile in piles))]


def _halves(piles: Sequence[Sequence[str]], upper: int, wide: int) -> list[Span]:
    out: list[Span] = []
    for pile in piles:
        above, below = pile[upper], pile[upper - 1]
        role = (
            "" if not above and not below else role_of(above) if above == below else half_role(above, below)
        )
        text = (" " if above == below else "▀") * wide
        if out and out[-1].role == role:
            out[-1] = Span(out[-1].text + text, role)
        else:
            out.append(Span(text, role))
    return out


def half_role(above: str, below: str) -> str:
    """The role of a half block: the upper phase over the lower one."""
    parts = (role_of(name).removeprefix("phase.") if name else "none" for name in (above, below))
    return "half." + ".".join(parts)
