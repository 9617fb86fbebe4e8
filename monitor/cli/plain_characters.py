"""For terminals and files that are not UTF-8: the closest plain characters, and never a failure."""

from __future__ import annotations

import codecs
import sys

PLAIN = {
    "×": "x", "·": "-", "µ": "u", "→": "->", "–": "-", "—": "-", "−": "-", "…": "...", "±": "+-", "°": " deg",
    "─": "-", "█": "#", "✓": "ok", "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip
HANDLER = "gpumon.plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


def use() -> None:
    """Applies to standard output and error, each only if needed."""
    codecs.register_error(HANDLER, _plain)
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        if not encoding.startswith("utf") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
