"""What a program wrote to a terminal, as lines that come, change and go. It understands what `gpumon demo` uses:
colours, new lines, moving up and erasing below."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text in one style; the style is what SGR calls it: "1", "2", "33;1"."""

    text: str
    style: str = ""


Line = tuple[Piece, ...]


@dataclass(slots=True)
class Transcript:
    private: str = ""
    """The folder it ran in: its path is shown as "."."""
    lines: list[Line] = field(default_factory=lambda: [()])
    moments: list[tuple[float, tuple[Line, ...]]] = field(default_factory=list)
    """Seconds since the start, and all lines there were then."""
    _row: int = 0
    _style: str = ""

    def feed(self, text: str, now: float) -> None:
        for found in TOKEN.finditer(text.replace(self.private, ".") if self.private else text):
            self._token(found)
        self.moments.append((now, tuple(self.lines)))

    def _token(self, found: re.Match[str]) -> None:
        match found.group(2):
            case "m":
                self._style = found.group(1).strip("0;") if found.group(1) != "0" else ""
            case "A":
                self._row = max(0, self._row - int(found.group(1) or 1))
            case "J":
                self.lines[self._row :] = [()]
            case None if found.group(0) == "\n":
                self._row += 1
                if self._row == len(self.lines):
                    self.lines.append(())
            case None if found.group(0) != "\r":
                self.lines[self._row] = (*self.lines[self._row], Piece(found.group(0), self._style))
