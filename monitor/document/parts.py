"""Shared by all parts of a document: sections, tables, legends, the colour of a phase."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

from monitor.document.markup import Markup, join, tag
from monitor.language import said, word
from monitor.model.units import value_of

ORDER = (
    "data", "transfer", "forward", "backward", "sync", "grad_norm", "optimizer", "zero_grad", "log",
    "between", "other", "validate", "checkpoint",
)  # fmt: skip
"""Phases from the bottom of a stack to its top: in step order, those outside the step last."""
PAINTED = frozenset(("data", "transfer", "forward", "backward", "optimizer", "validate", "checkpoint", "log"))


def style() -> str:
    """The one style sheet of all documents; each includes it."""
    return _read("document.css") + cursor_style()


def cursor_style() -> str:
    """That of what a page's script shows where one points at a chart."""
    return _read("cursor.css")


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def style_within(place: str) -> str:
    """The same for the part of a page that `place` selects. Named twice, it overrides the page's own."""
    own = re.sub(r":root\b|(?<![\w-])body(?= \{)", "&", style())
    return f"{place}{place} {{\n{own}}}\n"


def navigation(ways: Iterable[tuple[str, str]]) -> Markup:
    """Links to the daemon's other pages: (words, address)."""
    return tag("nav", tag("b", "gpumon"), (tag("a", word(words), href=address) for words, address in ways))


def paint(kind: str, name: str) -> str:
    """The class that gives a part of the time its colour."""
    if kind in ("setup", "stall", "unseen", "after"):
        return f"of-{kind}"
    return f"p-{name}" if name in PAINTED else "p-own" if name not in ORDER else "p-other"


def section(title: str, *children: Markup | None, note: str = "", id: str | None = None) -> Markup:
    heading = tag("h2", title, tag("small", f" {note}") if note else None)
    return tag("section", heading, join(children), id=id)


def legend(entries: Iterable[tuple[str, str]]) -> Markup:
    """Entries are (text, class of its colour)."""
    return tag(
        "p",
        (tag("span", tag("i", class_=f"key {class_}"), word(text)) for text, class_ in entries),
        class_="legend",
    )


def toggles(entries: Iterable[tuple[str, str]]) -> Markup:
    """The same as boxes to tick: what is not ticked is not drawn (document.css), in a file without scripts,
    too. The shapes in question have the class `toggled` of the entry's position."""
    boxes = (
        tag("label", tag("input", type="checkbox", checked="", class_=f"key {class_}"), word(text))
        for text, class_ in entries
    )
    return tag("p", boxes, class_="legend")


def toggled(at: int) -> str:
    return f"of-{at + 1}"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Markup | str]],
    *,
    figures: Sequence[int] = (),
    stacks: bool = False,
) -> Markup:
    """Columns in `figures` are numbers, aligned to the right. With `stacks`, a narrow screen shows the
    cells of a row below each other, each with its title."""

    def cell(name: str, at: int, content: Markup | str) -> Markup:
        title = word(head[at]) if stacks and name == "td" and content else None
        return tag(name, content, class_="figure" if at in figures else None, data_of=title)

    titles = [cell("th" if text else "td", at, text) for at, text in enumerate(head)]
    lines = (tag("tr", (cell("td", at, one) for at, one in enumerate(row))) for row in rows)
    body = tag("tbody", lines)
    whole = tag("table", tag("thead", tag("tr", titles)), body)
    return tag("div", whole, class_="wide stacks" if stacks else "wide", tabindex=0)


def pairs(entries: Iterable[tuple[str, str]]) -> Markup:
    """Names and values in columns that reflow."""
    return tag("dl", (tag("div", tag("dt", name), tag("dd", value)) for name, value in entries))


def value_text(key: str, value: Any) -> str:
    """A setting or a figure, as its key says; yes and no in the reader's language."""
    text = value_of(key, value)
    return word(text) if isinstance(value, bool) else text


def prose(text: str) -> Markup:
    """A sentence with `code` between backticks."""
    text = said(text)
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return join((text,))
    return join(tag("code", piece) if at % 2 else piece for at, piece in enumerate(pieces))


def change(text: str) -> Markup:
    """A code change, with removed and added lines in their colours."""
    kinds = {"+": "add", "-": "cut", "@": "at"}
    lines = (tag("span", f"{line}\n", class_=kinds.get(line[:1])) for line in text.splitlines())
    return tag("pre", tag("code", lines))
