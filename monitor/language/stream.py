"""Standard output and error of a command for people: each line is said in the chosen language.

What is laid out in columns or wrapped is translated before, where its width is decided (`monitor.terminal`);
this catches the rest. Between colours and wide gaps, each part of a line is a text of its own.
"""

from __future__ import annotations

import re
import sys
from typing import TextIO, cast

from monitor.language import current, said
from monitor.language.cells import width

PARTS = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\x1b[78]|[\r\n]| {2,})")
MACHINE = ("{", "[", "<")
"""How JSON and documents begin: not for people, or said already."""


class Spoken:
    """A stream that translates what is written to it; everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._stream.write(text if text.startswith(MACHINE) else translated(text))
        return len(text)


def translated(text: str) -> str:
    return "".join(_line(line) for line in text.splitlines(keepends=True))


def _line(line: str) -> str:
    """The whole line, else its parts; a gap after a part takes up the difference, so that columns stay."""
    bare = line.rstrip("\n")
    whole = said(bare)
    if whole != bare:
        return whole + line[len(bare) :]
    out, owed = "", 0
    for part in PARTS.split(line):
        if part.isspace() and part.startswith("  ") and owed:
            out += " " * max(2, len(part) + owed)
            owed = 0
            continue
        told = said(part)
        owed += width(part) - width(told)
        out += told
    return out


def use() -> None:
    """Applies to this process's standard output and error, where they can show the language at all."""
    if current() is None:
        return
    sys.stdout, sys.stderr = (cast(TextIO, Spoken(stream)) for stream in (sys.stdout, sys.stderr))


def can_show(stream: TextIO | None, sample: str = "中") -> bool:
    try:
        sample.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
