"""A process: its command line and its environment variables."""

from __future__ import annotations

from collections.abc import Sequence

from textual import work

from monitor.model.errors import UserError
from monitor.tui.panels import PanelSpec
from monitor.tui.screens.page import Page
from monitor.tui.signals import Target, environment
from monitor.tui.text import Block, Line, Room, Span, fit, line, wrap
from monitor.tui.views.parts import section

MATTERS = ("CUDA", "NVIDIA", "NCCL", "TORCH", "PYTORCH", "OMP", "MKL", "SLURM", "RANK", "LOCAL_", "WORLD_",
           "MASTER_", "GPUMON", "PYTHON", "HF_", "TOKENIZERS")  # fmt: skip
"""Prefixes of variables that affect how a training runs; shown first."""


class EnvironmentScreen(Page):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._found: dict[str, str] = {}
        self._note = "reading…"
        self.title_text = f"process {target.pid}"

    def panels(self) -> Sequence[PanelSpec]:
        return (PanelSpec("main", self._content),)

    def on_mount(self) -> None:
        self._read()

    @work(thread=True, exclusive=True)
    def _read(self) -> None:
        try:
            self._found, self._note = environment(self._target), "it has no environment variables"
        except UserError as error:
            self._note = error.sentence
        self.app.call_from_thread(self.show_frame)

    def _content(self, room: Room) -> Block:
        command = wrap(self._target.text, room.width - 4)
        first = {name: text for name, text in self._found.items() if name.startswith(MATTERS)}
        rest = {name: text for name, text in self._found.items() if name not in first}
        lines = [section("Command"), *(line("   ", text) for text in command), line()]
        lines += [
            *_variables("Variables about the training", first, room),
            *_variables("Other variables", rest, room),
        ]
        return Block(rows=tuple(lines if self._found else [*lines, line(Span(f"   {self._note}", "dim"))]))


def _variables(title: str, found: dict[str, str], room: Room) -> list[Line]:
    if not found:
        return []
    wide = min(34, max(map(len, found)) + 2)
    lines = [section(title)]
    for name in sorted(found):
        parts = wrap(found[name], max(8, room.width - wide - 5))
        lines.append(line("   ", fit(Span(name, "dim"), wide), parts[0]))
        lines += [line(" " * (wide + 3), part) for part in parts[1:]]
    return [*lines, line()]
