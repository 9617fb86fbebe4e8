"""Past runs: open one, compare two, replay."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from monitor.errors import UserError
from monitor.store.history import RunRecord
from monitor.tui.recording import Recording
from monitor.tui.screens.compare import CompareScreen
from monitor.tui.screens.page import Page
from monitor.tui.screens.replay import ReplayScreen
from monitor.tui.screens.run import RunScreen
from monitor.tui.text import Block
from monitor.tui.views import history as view
from monitor.tui.widgets.panel import Panel, Room

POINTS = 3600


class HistoryScreen(Page):
    crumb = "history"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mark", "Mark", tooltip="Mark a run for comparing"),
        Binding("c", "compare", "Compare", tooltip="The two marked, or the marked one with the chosen"),
        Binding("R", "replay", "Replay", tooltip="See the chosen run again"),
        Binding("slash", "filter", "Filter", show=False, tooltip="Words that must occur"),
        Binding("escape", "back", "Back", show=False),
        Binding("space", "app.pause", "Pause", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._records: list[RunRecord] = []
        self._marked: list[str] = []
        self._note = "reading the history…"
        self._text = ""

    def body(self) -> Iterable[Widget]:
        bar = Input(placeholder="filter: name, user, script, state…", id="filter")
        bar.display = False
        yield bar
        yield Panel(lambda room: self._table(room), id="table")

    def _table(self, room: Room) -> Block:
        return view.table(self._records, self._marked, room, self._note, self._text)

    def on_mount(self) -> None:
        self.query_one("#table").focus()
        self._load()

    @work(thread=True, exclusive=True)
    def _load(self) -> None:
        archive = self.monitor.archive
        try:
            records, note = archive.runs(), f"no run recorded yet ({archive.where})"
        except UserError as error:
            records, note = [], error.sentence
        self.app.call_from_thread(self._loaded, records, note)

    def _loaded(self, records: list[RunRecord], note: str) -> None:
        self._records, self._note = records, note
        self.query_one("#table", Panel).rebuild()

    def _chosen(self) -> RunRecord | None:
        key = self.query_one("#table", Panel).cursor
        return self._record(key[1]) if isinstance(key, tuple) else None

    def _record(self, run_id: str) -> RunRecord | None:
        return next((record for record in self._records if record.run.id == run_id), None)

    def open(self, key: Hashable) -> None:
        match key:
            case ("past", str(run_id)):
                record = self._record(run_id)
                if record is not None:
                    host = record.run.hostname or ""
                    self.app.push_screen(RunScreen(host, run_id, record.run, record.findings))

    def action_mark(self) -> None:
        record = self._chosen()
        if record is None:
            return
        if record.run.id in self._marked:
            self._marked.remove(record.run.id)
        else:
            self._marked = [*self._marked[-1:], record.run.id]
        self.query_one("#table", Panel).rebuild()

    def action_compare(self) -> None:
        """The older one is A."""
        chosen = self._chosen()
        ids = list(
            dict.fromkeys([*self._marked, *([chosen.run.id] if chosen and len(self._marked) < 2 else [])])
        )
        pair = [record for record in (self._record(run_id) for run_id in ids) if record is not None]
        if len(pair) < 2:
            self.notify("mark a run with m first, then choose another", severity="warning")
            return
        self.app.push_screen(CompareScreen(*sorted(pair[:2], key=lambda record: record.run.started)))

    def action_replay(self) -> None:
        record = self._chosen()
        if record is not None:
            self._prepare(record)

    @work(thread=True, exclusive=True)
    def _prepare(self, record: RunRecord) -> None:
        """Fetch the readings of the run's time, then start."""
        end = record.run.ended or record.updated
        points = max(1, min(POINTS, int(end - record.run.started)))
        try:
            page = (
                self.monitor.archive.page(record.run.started, end, points)
                if end > record.run.started
                else None
            )
        except UserError as error:
            self.app.call_from_thread(self.notify, error.sentence, severity="error")
            return
        if page is None or not page.series:
            self.app.call_from_thread(self.notify, "no readings of that time were kept", severity="warning")
            return
        cards = [gpu for _, gpu in self.frame.gpus()]
        self.app.call_from_thread(self._start, Recording(record, page, cards))

    def _start(self, recording: Recording) -> None:
        self.app.push_screen(ReplayScreen(recording))

    def action_filter(self) -> None:
        bar = self.query_one("#filter", Input)
        bar.display = True
        bar.focus()

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        self._text = event.value
        self.query_one("#table", Panel).rebuild()

    @on(Input.Submitted, "#filter")
    def _done(self) -> None:
        self.query_one("#table").focus()

    def action_back(self) -> None:
        bar = self.query_one("#filter", Input)
        if bar.display:
            bar.value, bar.display = "", False
            self.query_one("#table").focus()
        else:
            super().action_back()
