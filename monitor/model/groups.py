"""Groups of identical findings: eight GPUs with memory errors are one entry, and so are thirty runs that wait
for the same cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from monitor.model.finding import Finding, FindingGroup
from monitor.model.snapshot import Snapshot

Key = tuple[str, str, str | None]
OUTSIDE = ("compute.contention",)
"""Rules about what others do to a run."""
NAMED = 2
"""Runs of a group that are named; of more, their number is said."""


def grouped(findings: Sequence[Finding], snapshot: Snapshot) -> tuple[FindingGroup, ...]:
    """Groups findings by rule, severity and run, ordered by the first of each, what is over last. Different
    runs stay apart, since their remedies have their own values, unless the cause is outside of them all.
    Superseded findings are left out."""
    members: dict[Key, list[int]] = {}
    for at, finding in enumerate(findings):
        if not finding.superseded:
            members.setdefault(_key(finding), []).append(at)
    ordered = sorted(members.values(), key=lambda places: not findings[places[0]].newsworthy)
    return tuple(_group(findings, tuple(places), snapshot) for places in ordered)


def _key(finding: Finding) -> Key:
    """What happens to live runs from outside is the same for all of them."""
    shared = finding.id in OUTSIDE and finding.live
    return finding.id, finding.severity, None if shared else finding.run


def leads(snapshot: Snapshot) -> tuple[Finding, ...]:
    """One finding per group, for lists: the first, with the title, the subject and the gain of the group."""
    return tuple(
        replace(
            snapshot.findings[group.findings[0]],
            title=group.title,
            subject=group.subject,
            speedup=group.speedup,
        )
        for group in snapshot.groups
    )


def _group(findings: Sequence[Finding], places: tuple[int, ...], snapshot: Snapshot) -> FindingGroup:
    first = findings[places[0]]
    title, subject = first.title, first.subject
    members = [findings[at] for at in places]
    if len({one.run for one in members}) > 1:
        title, subject = first.cause or first.id, _runs(members)
    elif len(places) > 1:
        subject = _subject(members, snapshot)
        title = f"{first.cause or first.id} on {subject}"
    same = all(one.speedup == first.speedup for one in members)
    speedup = first.speedup if first.live and same else None
    return FindingGroup(first.id, first.severity, title, subject, places, speedup)


def _runs(members: Sequence[Finding]) -> str:
    names = list(dict.fromkeys(one.subject for one in members))
    more = len(names) - NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:NAMED])} and {more} more"


def _subject(members: Sequence[Finding], snapshot: Snapshot) -> str:
    """All subjects of a group, briefly."""
    first = members[0]
    name = next((run.name for run in snapshot.runs if run.id == first.run), first.run)
    ranks = [finding.rank for finding in members if finding.rank is not None]
    if name is not None and len(ranks) == len(members):
        return f"{name} ranks {numbers(ranks)}"
    index = {gpu.uuid: gpu.index for gpu in snapshot.gpus}
    known = [index[finding.gpu] for finding in members if finding.gpu in index]
    gpus = f"GPUs {numbers(known)}" if len(known) == len(members) else f"{len(members)} devices"
    return gpus if name is None else f"{gpus} of {name}"


def numbers(values: Iterable[int]) -> str:
    """ "0–3, 5 and 7": neighbours as a range."""
    runs = [
        [value for _, value in part]
        for _, part in groupby(enumerate(sorted(set(values))), key=lambda pair: pair[1] - pair[0])
    ]
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
