"""The commands that README and docs tell people to type, and what becomes of each in the tests.

Every line of a shell block is one of these: executed; only parsed, by the command's own parser, for a stated
reason; a target of the Makefile; a module that exists; or not ours, for a stated reason.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"^```(?:sh|bash)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORDS = (
    "gpumon",
    "make",
    "python",
    "python3",
    "curl",
    "pip",
    "pipx",
    "uvx",
    "torchrun",
    "docker",
    "helm",
    "install",
)
PLACEHOLDERS = {"RUN": "last", "A": "last~1", "B": "last", "…": ""}
"""What stands for something of the reader's → what the tests have there."""

PARSED_ONLY = {
    r".*--prometheus": "needs a Prometheus: tests/integration/fleet",
    r"run .*-- torchrun|run -- python -m package": "starts what the reader has: tests/integration/sdk",
    r"run --track|track": "needs a tracker: tests/frameworks",
    r"analyze|try .*-- |boost": "takes minutes: tests/integration/experiments and advice",
    r"profile": "needs a running job: tests/integration/device",
    r"trace": "needs a trace: tests/integration/traces",
    r"train tcn|demo": "trains: tests/integration/trainers",
    r"tui(?!.*--screenshot)": "is interactive: tests/tui",
    r"daemon$": "listens on the usual port, which may be taken; the simulated one is started instead",
    r"doctor .*(--deep|--calibrate|--gpu-selftest)": "takes minutes: tests/integration/doctor and device",
}
"""Commands of ours (without "gpumon") that are parsed and not executed, and why."""
NOT_OURS = {
    r"pip|pipx|uvx|python3 -m venv": "installs: tests/integration/package builds and installs it",
    r"install |docker|helm": "changes a system or a cluster: tests/integration/deploy checks the files",
    r"torchrun": "starts ranks: tests/integration/trainers",
}
"""Commands of others that are not executed, and why."""


class Command(NamedTuple):
    page: str
    line: str
    """Without its comment."""

    @property
    def words(self) -> list[str]:
        """As a shell would split it, with placeholders filled and what is optional taken."""
        plain = self.line.replace("[", "").replace("]", "")
        words = [PLACEHOLDERS.get(word, word) for word in shlex.split(plain)]
        return [word for word in words if word]

    @property
    def ours(self) -> str:
        """What follows "gpumon"."""
        return self.line.removeprefix("gpumon").strip()


def commands() -> Iterator[Command]:
    """Each once, in the order of the pages."""
    seen = set()
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in block.splitlines():
                bare = re.split(r"\s+#", line)[0].strip()
                if bare.split(" ")[0] in WORDS and bare not in seen:
                    seen.add(bare)
                    yield Command(page.relative_to(ROOT).as_posix(), bare)


def reason(table: dict[str, str], text: str) -> str:
    """Why it is not executed; empty when nothing says so."""
    return next((why for pattern, why in table.items() if re.match(pattern, text)), "")
