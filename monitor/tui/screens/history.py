"""Past runs: open one, compare two, replay."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from monitor.catalog.recording import Recording
from monitor.catalog.rows import RunRow
from monitor.model.errors import UserError
from monitor.tui.screens.compare import CompareScreen
from monitor.tui.screens.filtered import Filtered
from monitor.tui.screens.replay import ReplayScreen
from monitor.tui.screens.run import RunScreen
from monitor.tui.text import Block, Room
from monitor.tui.views import history as view
from monitor.tui.widgets.panel import Panel

POINTS = 3600


class HistoryScreen(Filtered):
    title_text = "history"
    filter_hint = "filter: name, user, script, state…"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mark", "Mark", tooltip="Mark a run for comparing"),
        Binding(
            "c",
            "compare",
            "Compare",
            tooltip="The two marked, or the marked one and this one",
        ),
        Binding("R", "replay", "Replay", tooltip="See the chosen run again"),
        Binding("slash", "filter", "Filter", show=False, tooltip="Words that must occur"),
        Binding("escape", "back", "Back", show=False),
        Binding("space", "app.pause", "Pause", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[RunRow] = []
        self._marked: list[str] = []
        self._note = "reading the history…"
        self._text = ""

    def body(self) -> Iterable[Widget]:
        yield self.filter_bar()
        yield Panel(self._table, id="table")

    def _table(self, room: Room) -> Block:
        return view.table(self._rows, self._marked, room, self._note, self._text)

    def on_mount(self) -> None:
        self.query_one("#table").focus()
        self._load()

    @work(thread=True, exclusive=True)
    def _load(self) -> None:
        archive = self.monitor.archive
        try:
            rows, note = archive.rows(), f"no run recorded yet ({archive.where})"
        except UserError as error:
            rows, note = [], error.sentence
        self.app.call_from_thread(self._loaded, rows, note)

    def _loaded(self, rows: list[RunRow], note: str) -> None:
        self._rows, self._note = rows, note
        self.query_one("#table", Panel).rebuild()

    @work(thread=True, exclusive=True)
    def _fetch(self, question: Callable[[], Screen[None]]) -> None:
        """Ask the archive and open the screen it makes; a failure is shown as one sentence."""
        try:
            made = question()
        except UserError as error:
            self.app.call_from_thread(self.notify, error.sentence, severity="warning")
            return
        self.app.call_from_thread(self._open_screen, made)

    def _open_screen(self, made: Screen[None]) -> None:
        self.app.push_screen(made)

    def _chosen(self) -> str | None:
        key = self.query_one("#table", Panel).cursor
        return str(key[1]) if isinstance(key, tuple) else None

    def open(self, key: Hashable) -> None:
        match key:
            case ("past", str(run_id)):
                self._fetch(lambda: self._run_screen(run_id))

    def _run_screen(self, run_id: str) -> Screen[None]:
        record = self.monitor.archive.record(run_id)
        return RunScreen(record.run.hostname or "", run_id, record.run, record.findings)

    def action_mark(self) -> None:
        run_id = self._chosen()
        if run_id is None:
            return
        if run_id in self._marked:
            self._marked.remove(run_id)
        else:
            self._marked = [*self._marked[-1:], run_id]
        self.query_one("#table", Panel).rebuild()

    def action_compare(self) -> None:
        """Compare the two marked runs, or the marked and the chosen one; the older is A."""
        chosen = self._chosen()
        ids = [
            *self._marked,
            *([chosen] if chosen and len(self._marked) < 2 and chosen not in self._marked else []),
        ]
        if len(ids) < 2:
            self.notify("mark a run with m first, then choose another", severity="warning")
            return
        a, b = sorted(ids, key=lambda run_id: next(one.started for one in self._rows if one.run == run_id))
        self._fetch(lambda: CompareScreen(self.monitor.archive.compare(a, b)))

    def action_replay(self) -> None:
        run_id = self._chosen()
        if run_id is not None:
            self._fetch(lambda: self._replay_screen(run_id))

    def _replay_screen(self, run_id: str) -> Screen[None]:
        """Fetch the readings from the time of the run."""
        record = self.monitor.archive.record(run_id)
        start, end = record.run.started, record.run.ended or record.updated
        points = max(1, min(POINTS, int(end - start)))
        page = self.monitor.archive.page(start, end, points) if end > start else None
        if page is None or not page.series:
            raise UserError("no readings from that time were kept")
        return ReplayScreen(Recording(record, page, [gpu for _, gpu in self.frame.gpus()]))

    def filter_changed(self, text: str) -> None:
        self._text = text
        self.query_one("#table", Panel).rebuild()
