"""Who gets how many lines of the overview: a pure function, so every size can be tested."""

from __future__ import annotations

from typing import NamedTuple

from monitor.tui.frame import Frame
from monitor.tui.views.card import CARD
from monitor.tui.views.top import silent_hosts

ANSWER = 2
WIDE, TALL = 110, 30
"""From this size on the fix of the chosen finding stands beside the list."""
CARD_MOST = 11
CARDS = 4
"""More GPUs than this are rows, not cards."""


class Plan(NamedTuple):
    answer: int
    gpus: int
    runs: int
    advice: int
    processes: int
    airy: bool
    """True when a blank line between the parts fits."""


class _Wants(NamedTuple):
    """What each part would like: at least, and for advice also at most."""

    gpus: int
    runs: int
    advice: int
    advice_most: int
    processes: int


def plan(frame: Frame, width: int, height: int, *, show_processes: bool = True) -> Plan:
    """GPUs, runs and findings first, then tall graphs and whole fixes, processes with what is left."""
    room = height - ANSWER
    wants = _wants(frame, width, room)
    left = room - wants.gpus - wants.runs - wants.advice
    airy = left >= 3
    left -= 3 * airy
    runs = max(2, wants.runs + min(0, left))
    left = max(0, left)
    spare = max(0, left - (wants.processes if show_processes else 0))
    advice = min(spare, wants.advice_most - wants.advice)
    cards = len(list(frame.gpus()))
    taller = (
        min(CARD_MOST - CARD, (spare - advice) // cards)
        if 0 < cards <= CARDS and wants.gpus >= cards * CARD
        else 0
    )
    left -= advice + taller * cards
    processes = left if show_processes and left >= 4 else 0
    return Plan(
        ANSWER, wants.gpus + taller * cards, runs, wants.advice + advice + left - processes, processes, airy
    )


def _wants(frame: Frame, width: int, room: int) -> _Wants:
    found = list(frame.findings())
    runs = 1 + max(1, min(len(list(frame.runs())), 8 if room > TALL else 4))
    advice = 1 + max(1, min(len(found), 6 if room > TALL else 4))
    whole = advice
    if beside(frame, width, room + ANSWER):
        whole = max(advice, max(f.remedy.change.rstrip("\n").count("\n") for _, f in found) + 7)
        advice = max(advice, min(whole, room // 3 + 2))
    notes = len(silent_hosts(frame))
    gpus = notes + gpu_lines(len(list(frame.gpus())), room - runs - advice - notes, width)
    processes = sum(len(host.snapshot.processes) for host in frame.hosts if host.snapshot)
    return _Wants(gpus, runs, advice, whole, max(4, min(1 + processes, 12)))


def beside(frame: Frame, width: int, height: int) -> bool:
    """True when the fix of a finding has room next to the list."""
    return width >= WIDE and height >= TALL and any(f.remedy.summary for _, f in frame.findings())


def gpu_lines(count: int, room: int, width: int) -> int:
    """Cards when few, else a row each, else two rows abreast."""
    if count == 0:
        return 2
    if count <= CARDS and count * CARD <= room:
        return count * CARD
    if 1 + count <= room or width < 76:
        return min(1 + count, max(3, room))
    return 1 + (count + 1) // 2
