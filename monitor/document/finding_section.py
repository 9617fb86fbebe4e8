"""The part of a report that says what to change: findings with evidence, remedy, price and predicted gain."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.catalog.dossier import Dossier
from monitor.document import charts
from monitor.document.markup import Markup, join, tag
from monitor.document.parts import change, pairs, prose, section, value_text
from monitor.model.facts import promises
from monitor.model.finding import EFFECT_WORDS, Finding, Remedy
from monitor.model.units import gain, gain_range, label
from monitor.store.ledger import Entry

WORDS = {"critical": "critical", "warning": "fix", "hint": "hint", "healthy": "healthy"}
BASIS = "shares are of the loop's time, without set-up"


def findings(dossier: Dossier) -> Markup | None:
    if not dossier.findings:
        return None
    cards = [_card(place, one, dossier.promise(one)) for place, one in enumerate(dossier.findings, 1)]
    return section("What to change", join(cards), id="findings", note=BASIS)


def _card(place: int, finding: Finding, kept: Entry | None) -> Markup:
    head = tag(
        "h3",
        tag("span", WORDS[finding.severity], class_=f"chip {finding.severity}"),
        f" {place}. ",
        prose(finding.title),
    )
    return tag(
        "article",
        head,
        _promise(finding, kept),
        tag("p", prose(finding.why), class_="dim") if finding.why else None,
        _remedy(finding.remedy),
        _evidence(finding),
        tag("p", tag("code", finding.id), class_="dim small"),
        class_=f"finding {finding.severity}",
    )


def _promise(finding: Finding, kept: Entry | None) -> Markup | None:
    speedup = finding.speedup
    if speedup is None or not promises(finding):
        return None
    note = f" ({speedup.note})" if speedup.note else ""
    words = [tag("b", finding.promise), note]
    realised = kept.realised if kept is not None else None
    if kept is not None:
        changed = f" in {kept.after_run}" if kept.after_run else ""
        words.append(tag("span", f" · realised {gain(realised)}{changed}", class_="came"))
    picture = charts.ranged(speedup.low, speedup.likely, speedup.high, realised, gain)
    return tag("div", tag("p", words), picture, class_="promise")


def _remedy(remedy: Remedy) -> Markup:
    """What to do, what it does to the training, what it costs, and what not to do."""
    return join(
        (
            tag("p", tag("b", "Remedy. "), prose(remedy.summary)) if remedy.summary else None,
            change(remedy.change) if remedy.change else None,
            tag("ul", _consequences(remedy)) if remedy.effect or remedy.price or remedy.avoid else None,
        )
    )


def _consequences(remedy: Remedy) -> Iterator[Markup]:
    if remedy.effect:
        yield tag("li", tag("b", "Effect: "), f"{EFFECT_WORDS[remedy.effect]}.")
    if remedy.price:
        yield tag("li", tag("b", "Price: "), prose(f"{remedy.price}."))
    if remedy.avoid:
        yield tag("li", tag("b", "Avoid: "), prose(remedy.avoid))


def _evidence(finding: Finding) -> Markup | None:
    shown = [
        (label(key), value_text(key, value))
        for key, value in finding.evidence.items()
        if value not in (None, "", [], {})
    ]
    return tag("details", tag("summary", "Evidence"), pairs(shown), open="") if shown else None


def kept(dossier: Dossier) -> Markup | None:
    """Predictions made for earlier runs of the script that this run has put to the test."""
    if not dossier.kept:
        return None
    return section("Earlier predictions this run has tested", tag("div", map(_kept, dossier.kept)))


def _kept(entry: Entry) -> Markup:
    changed = f" ({entry.changed})" if entry.changed else ""
    judged = {True: "inside the range", False: "outside the range", None: ""}[entry.inside]
    words = f"predicted {gain_range(entry.low, entry.likely, entry.high)}, realised {gain(entry.realised)}"
    return tag(
        "div",
        tag("p", tag("code", entry.rule), f"{changed}: ", tag("b", words), f", {judged} · since {entry.run}"),
        charts.ranged(entry.low, entry.likely, entry.high, entry.realised, gain),
        class_="promise",
    )
