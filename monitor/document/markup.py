"""HTML and SVG as text. Anything that is not markup is escaped: names and code come from other people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from monitor.language import name as language
from monitor.language import said, word

TITLES = frozenset(("b", "h2", "h3", "th", "dt", "summary"))
"""Tags whose words are always ours; what is in the others may be somebody's name, so single words stay."""
CODE = frozenset(("code", "style", "script"))
VOID = frozenset(("br", "hr", "input", "meta", "line", "path", "rect"))


class Markup(str):
    """Text that may go into the document unescaped."""

    __slots__ = ()


Child = Markup | str | None
Children = Child | Iterable[Child]


def tag(name: str, /, *children: Children, **attributes: object) -> Markup:
    """``tag("a", "text", href="#x")``. In attribute names ``_`` becomes ``-`` and a trailing one is dropped
    (`class_`); attributes that are None are omitted."""
    told = {key: said(str(value)) if key == "aria_label" else value for key, value in attributes.items()}
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in told.items()
        if value is not None
    )
    is_ours = name in TITLES or str(attributes.get("class_", "")).startswith("chip")
    say = word if is_ours else str if name in CODE else said
    return Markup(f"<{name}{given}/>" if name in VOID else f"<{name}{given}>{join(children, say)}</{name}>")


def join(children: Iterable[Children], say: Callable[[str], str] = said) -> Markup:
    """All children in order, in the reader's language; None is skipped."""
    return Markup("".join(_one(child, say) for child in children))


def _one(child: Children, say: Callable[[str], str]) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    return escape(_plain(say(child))) if isinstance(child, str) else join(child, say)


def _plain(text: str) -> str:
    """Without the control characters no document may contain, whatever a user's file is called."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def document(title: str, style: str, body: Markup, scripts: Sequence[str] = (), **marks: object) -> str:
    """A whole page that loads nothing from outside. A page without scripts forbids them itself, wherever it
    is opened; `marks` are attributes of its body."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = join(
        (
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            None if scripts else tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", title),
            tag("style", Markup(style)),
            (tag("script", Markup(script), defer="") for script in scripts),
        )
    )
    page = tag("html", tag("head", head), tag("body", body, **marks), lang=language())
    return f"<!doctype html>\n{page}\n"
