"""Errors caused by the user's input or machine: one sentence, a hint, an exit code."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED = 1
"""The command worked and its answer is "no": a check failed, a comparison is below the bar."""
EXIT_USAGE = 2
"""Bad input: an unknown option, a broken file, a run that does not exist."""
EXIT_UNREACHABLE = 3
"""A daemon was asked for and does not answer."""
EXIT_CONFLICT = 4
"""Another daemon has the port, socket or directory."""
EXIT_INTERRUPTED = 130


class UserError(Exception):
    """Shown as ``gpumon: sentence``, a blank line, ``hint: …``; never as a traceback."""

    def __init__(self, sentence: str, *, hint: str | None = None, code: int = EXIT_USAGE) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.code = code
