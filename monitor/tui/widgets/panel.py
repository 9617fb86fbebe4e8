"""The one widget that draws: it gets lines and repaints those that changed.

A `DataTable` repaints every row when one cell changes; this compares lines and repaints only those that
differ. Lines may contain slots: items to move over and open, by key or mouse. Consecutive lines with the same
slots are one row: an item that takes several lines.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from monitor.tui.ascii import plain
from monitor.tui.palette import Palette
from monitor.tui.panels import Build
from monitor.tui.text import Line, Room, Slot, differences, safe


class Panel(ScrollView, can_focus=True):
    """Shows a block. `build` is called again whenever there is new data or a new size."""

    DEFAULT_CSS = """
    Panel { height: 1fr; width: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1;
            scrollbar-color: $panel; scrollbar-color-hover: $primary; scrollbar-color-active: $primary;
            scrollbar-background: $background; scrollbar-background-hover: $background;
            scrollbar-background-active: $background; background: transparent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, tooltip="Next row, or scroll"),
        Binding("up,k", "move(-1)", "Up", show=False, tooltip="Previous row, or scroll"),
        Binding("right", "side(1)", "Right", show=False, tooltip="Next item of the row"),
        Binding("left", "side(-1)", "Left", show=False, tooltip="Previous item of the row"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("home,g", "edge(-1)", "Top", show=False),
        Binding("end,G", "edge(1)", "Bottom", show=False),
        Binding("enter", "choose", "Open", key_display="enter", tooltip="Open what the cursor is on"),
    ]

    class Chosen(Message):
        """A slot was opened (by Enter, or by clicking the one under the cursor)."""

        def __init__(self, panel: Panel, key: Hashable) -> None:
            super().__init__()
            self.panel = panel
            self.key = key

        @property
        def control(self) -> Panel:
            return self.panel

    class Moved(Chosen):
        """The cursor moved to another slot."""

    def __init__(
        self, build: Build, *, id: str | None = None, classes: str | None = None, focusable: bool = True
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._build = build
        self._lines: tuple[Line, ...] = ()
        self._head = 0
        self._built = 0
        self._base = Style.null()
        self._styles = Palette()
        self._on_base: dict[str, Style] = {}
        self._cursor: Hashable = None
        self._place = (0, 0)
        self.can_focus = focusable

    # ── content ──────────────────────────────────────────────────────────────────────────────────

    def rebuild(self) -> None:
        """Build the content again and repaint what changed."""
        width = self.scrollable_content_region.width
        if width <= 0 or not self.is_attached:
            return
        self._built = width
        room = Room(width, self.size.height, self._plain)
        block = self._build(room)
        self._show((*block.head, *block.rows), len(block.head))

    def _show(self, lines: tuple[Line, ...], head: int) -> None:
        marked = self._marked()
        old, self._lines = self._lines, lines
        same_shape = len(old) == len(lines) and head == self._head
        self._head = head
        had = self._cursor is not None
        self._follow_cursor()
        if had != (self._cursor is not None) and self.has_focus:
            self.refresh_bindings()
        if not same_shape:
            self.virtual_size = Size(self.size.width, len(lines))
            self.refresh()
            self.call_after_refresh(self._check_width)
            return
        for index, (before, after) in enumerate(zip(old, lines, strict=True)):
            if before is not after and before != after:
                self._refresh_parts(index, differences(before, after))
        self._refresh_lines(marked ^ self._marked())

    def _check_width(self) -> None:
        """A scrollbar has appeared or gone: make the lines fit the new width."""
        if self.scrollable_content_region.width != self._built:
            self.rebuild()

    def _refresh_parts(self, index: int, parts: list[tuple[int, int]]) -> None:
        """Repaint only the changed parts of a line, if it is visible."""
        y = index if index < self._head else index - round(self.scroll_offset.y)
        if (index < self._head or y >= self._head) and y < self.size.height:
            self.refresh(*(Region(start, y, end - start, 1) for start, end in parts))

    def _refresh_lines(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._refresh_parts(index, [(0, self.size.width)])

    @property
    def _plain(self) -> bool:
        return bool(getattr(self.app, "plain", False))

    def on_resize(self) -> None:
        self.rebuild()

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────

    def render_lines(self, crop: Region) -> list[Strip]:
        self._look_up_styles()
        return super().render_lines(crop)

    def _look_up_styles(self) -> None:
        """Roles on this panel's background, cached: adding styles is half the cost of drawing."""
        base, styles = self.rich_style, cast(Palette, getattr(self.app, "palette", Palette()))
        if base != self._base or styles is not self._styles:
            self._base, self._styles, self._on_base = base, styles, {}

    def render_line(self, y: int) -> Strip:
        index = y if y < self._head else y + round(self.scroll_offset.y)
        width = self.size.width
        if index >= len(self._lines):
            return Strip.blank(width, self._base)
        line = self._lines[index]
        slot = self._slot_here(line, index)
        if slot is not None and (self.has_focus or self.has_class("keeps-cursor")):
            first = self._lines[index - 1].slots != line.slots
            marked = self._mark(Strip(self._segments(line, self._styles)), slot, pointed=first)
            return marked.adjust_cell_length(width).apply_style(self._base)
        for _, role in line.spans:
            if role not in self._on_base:
                self._on_base[role] = self._base + self._styles[role]
        return Strip(self._segments(line, self._on_base)).adjust_cell_length(width, self._base)

    def _segments(self, line: Line, styles: Mapping[str, Style]) -> list[Segment]:
        """Spans as segments. Blanks join the span before them: fewer colour codes to send."""
        out: list[Segment] = []
        joins = False
        ascii_only = getattr(self.app, "ascii_only", False)
        for text, role in line.spans:
            if joins and not role and text.isspace():
                out[-1] = Segment(out[-1].text + text, out[-1].style)
                continue
            out.append(Segment(plain(text) if ascii_only else safe(text), styles[role]))
            joins = _blank_is_neutral(self._styles[role])
        return out

    def _mark(self, strip: Strip, slot: Slot, *, pointed: bool) -> Strip:
        """The cursor: its own background and, so as not to rely on colour alone, a pointer to the left of the
        row's first line."""
        styles = self._styles
        behind = styles["cursor" if self.has_focus else "cursor.blur"]
        end = min(slot.end, self.size.width)
        parts = list(strip.adjust_cell_length(self.size.width).divide([slot.start, end, self.size.width]))
        inside = list(parts[1])
        if pointed and inside and inside[0].text.startswith(" "):
            pointer, role = ("▸", "key") if self.has_focus else ("▹", "dim")
            char = plain(pointer) if getattr(self.app, "ascii_only", False) else pointer
            first = inside[0]
            inside[:1] = [Segment(char, styles[role]), Segment(first.text[1:], first.style)]
        marked = [
            Segment(s.text, s.style + behind if s.style and not s.style.bgcolor else (s.style or behind))
            for s in inside
        ]
        return Strip([*parts[0], *marked, *(parts[2] if len(parts) > 2 else ())])

    # ── cursor ───────────────────────────────────────────────────────────────────────────────────

    @property
    def cursor(self) -> Hashable:
        """The key of the item under the cursor."""
        return self._cursor

    @cursor.setter
    def cursor(self, key: Hashable) -> None:
        self._mark_instead(key)
        self._follow_cursor()
        self._reveal()

    def _mark_instead(self, key: Hashable) -> None:
        """Move the cursor, and repaint the lines it leaves and enters."""
        before, self._cursor = self._marked(), key
        self._refresh_lines(before | self._marked())

    def _marked(self) -> set[int]:
        """Indices of the lines the cursor is on."""
        return {i for i, line in enumerate(self._lines) if self._slot_here(line, i) is not None}

    def _slot_here(self, line: Line, index: int) -> Slot | None:
        if self._cursor is None or index < self._head:
            return None
        return next((slot for slot in line.slots if slot.key == self._cursor), None)

    def _rows(self) -> list[tuple[int, Line]]:
        """The first line of every row."""
        out: list[tuple[int, Line]] = []
        for index, line in enumerate(self._lines):
            if index >= self._head and line.slots and not (out and out[-1][1].slots == line.slots):
                out.append((index, line))
        return out

    def _follow_cursor(self) -> None:
        """Keep the cursor on its item when rows move; if the item is gone, stay in place."""
        rows = self._rows()
        if not rows:
            self._cursor = None
            return
        for row, (_, line) in enumerate(rows):
            for column, slot in enumerate(line.slots):
                if slot.key == self._cursor:
                    self._place = (row, column)
                    return
        row = min(self._place[0], len(rows) - 1)
        slots = rows[row][1].slots
        self._place = (row, min(self._place[1], len(slots) - 1))
        self._cursor = slots[self._place[1]].key

    def _go(self, row: int, column: int) -> None:
        rows = self._rows()
        row = max(0, min(row, len(rows) - 1))
        slots = rows[row][1].slots
        self._place = (row, max(0, min(column, len(slots) - 1)))
        self._mark_instead(slots[self._place[1]].key)
        self._reveal()
        self.post_message(self.Moved(self, self._cursor))

    def _reveal(self) -> None:
        rows = self._rows()
        if not rows:
            return
        first = rows[min(self._place[0], len(rows) - 1)][0]
        last = max(self._marked(), default=first)
        top, room = round(self.scroll_offset.y), self.size.height - self._head
        if first - self._head < top:
            self.scroll_to(y=max(0, first - self._head), animate=False)
        elif last - self._head >= top + room:
            self.scroll_to(y=min(first - self._head, last - self._head - room + 1), animate=False)

    def action_move(self, by: int) -> None:
        if not self._rows():
            self.scroll_relative(y=by, animate=False)
        else:
            self._go(self._place[0] + by, self._place[1])

    def action_side(self, by: int) -> None:
        if self._rows():
            self._go(self._place[0], self._place[1] + by)

    def action_page(self, by: int) -> None:
        step = max(1, self.size.height - self._head - 1) * by
        if self._rows():
            self._go(self._place[0] + step, self._place[1])
        else:
            self.scroll_relative(y=step, animate=False)

    def action_edge(self, which: int) -> None:
        if self._rows():
            self._go(0 if which < 0 else len(self._lines), self._place[1])
        else:
            self.scroll_to(y=0 if which < 0 else len(self._lines), animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer Enter only where there is something to open."""
        return action != "choose" or self._cursor is not None

    def action_choose(self) -> None:
        if self._cursor is not None:
            self.post_message(self.Chosen(self, self._cursor))

    def on_click(self, event: events.Click) -> None:
        index = event.y if event.y < self._head else event.y + round(self.scroll_offset.y)
        if index >= len(self._lines):
            return
        slot = next((s for s in self._lines[index].slots if s.start <= event.x < s.end), None)
        if slot is None:
            return
        if index < self._head or (slot.key == self._cursor and self.has_focus):
            self.post_message(self.Chosen(self, slot.key))
            return
        self._mark_instead(slot.key)
        self._follow_cursor()
        self.post_message(self.Moved(self, slot.key))


def _blank_is_neutral(style: Style) -> bool:
    """Whether blanks in this style look like blanks in any other."""
    return not (style.bgcolor or style.underline or style.reverse)
