"""What goes wrong because of the user's data, options or machine: one sentence and a hint."""

from __future__ import annotations

import sys

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class TrainerError(Exception):
    """Shown as one sentence on stderr, never as a traceback."""

    def __init__(self, sentence: str, *, hint: str | None = None, code: int = EXIT_USAGE) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.code = code


def report(prog: str, error: TrainerError) -> int:
    """Say it on stderr; the exit code."""
    print(f"{prog}: {error.sentence}", file=sys.stderr)
    if error.hint:
        print(f"\nhint: {error.hint}", file=sys.stderr)
    return error.code
