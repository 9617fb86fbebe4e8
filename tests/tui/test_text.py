"""Numbers, graphs, columns and lines: the small pure parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from monitor.model import units
from monitor.tui.ascii import PAIRS, plain
from monitor.tui.table import Column, chosen, heading, row
from monitor.tui.text import Span, beside, clip, fit, line, width_of, wrap
from monitor.tui.widgets.graph import cells_of, history, phase_bar, round_up, stacked

ABSENT = "—"


@pytest.mark.parametrize(
    "show_it",
    [
        units.tight_percent,
        units.percent,
        units.number,
        units.size,
        units.rate,
        units.celsius,
        units.hertz,
        units.seconds,
        units.duration,
        units.clock,
        units.age,
        units.count,
        units.gib,
    ],
)
def test_absent_is_a_dash_and_zero_is_not(show_it: object) -> None:
    assert show_it(None) == ABSENT  # type: ignore[operator]
    assert ABSENT not in show_it(0)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.2051, "3.21"),
        (205.1, "205"),
        (12431, "12.4k"),
        (1_250_000, "1.25M"),
        (0.4127, "0.413"),
        (0.0003, "3.00e-04"),
        (12, "12"),
        (9999, "9999"),
        (0, "0"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert units.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0000312, "31.2 µs"),
        (0.0451, "45.1 ms"),
        (2.31, "2.31 s"),
        (252, "4 min 12 s"),
        (7500, "2 h 05 min"),
        (3.3e5, "3 d 19 h"),
    ],
)
def test_times_choose_their_unit(value: float, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("data_share", 0.62, "62 %"),
        ("data_wait_seconds", 0.193, "193 ms"),
        ("rss_bytes", 2**31, "2 GiB"),
        ("num_workers", 0, "0"),
        ("autocast", False, "no"),
        ("cuda.allocated_bytes", 2**30, "1 GiB"),
        ("sm_clock_hertz", 1.98e9, "1.98 GHz"),
        ("samples_per_second", 205.2, "205"),
        ("missing", None, ABSENT),
    ],
)
def test_evidence_is_shown_with_the_unit_of_its_key(key: str, value: object, text: str) -> None:
    assert units.value_of(key, value) == text


def test_a_gain_shows_its_range_with_fitting_digits() -> None:
    assert units.gain_range(1.7, 2.1, 2.4) == "×2.1 (1.7–2.4)"
    assert units.gain_range(1.0, 1.01, 1.01) == "×1.01 (1.00–1.01)"
    assert units.gain_range(8, 12, 15) == "×12 (8–15)"


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=80), st.integers(1, 30), st.integers(1, 5))
def test_a_history_fills_its_box_and_gaps_stay_blank(
    samples: list[float | None], width: int, height: int
) -> None:
    rows = history(samples, width, height)
    assert len(rows) == height and all(len(text) == width for text in rows)
    if not any(value is not None for value in samples[-2 * width :]):
        assert set("".join(rows)) == {"\u2800"}


def test_a_history_is_right_anchored_with_two_samples_a_cell() -> None:
    assert history([1.0], 2) == ["\u2800\u28b8"]
    assert history([1.0, 0.0, 1.0], 2) == ["\u28b8\u2878".replace("\u2878", chr(0x2800 + 0x40 + 0xB8))]


def test_a_history_has_a_fixed_range() -> None:
    """97–99 % is nearly full, not full swings."""
    assert set(history([0.97, 0.99, 0.98, 0.99], 2)[0]) == {"\u28ff"}


def test_a_zero_reading_differs_from_no_reading() -> None:
    assert history([0.0, 0.0], 1) != history([None, None], 1)


@given(st.floats(1e-9, 1e12))
def test_tops_are_just_above(value: float) -> None:
    assert value * 0.999 <= round_up(value) <= value * 2.01


SHARES = st.dictionaries(
    st.sampled_from(["data", "transfer", "forward", "backward", "optimizer", "other", "validate"]),
    st.floats(0, 1),
    max_size=7,
)


@given(SHARES, st.integers(1, 120), st.booleans())
def test_a_phase_bar_fills_its_width_exactly(shares: dict[str, float], width: int, plain_: bool) -> None:
    assert width_of(phase_bar(shares, width, plain=plain_)) == width


@given(SHARES, st.integers(1, 60))
def test_phase_cells_are_in_proportion(shares: dict[str, float], width: int) -> None:
    total = sum(shares.values())
    for name, cells in cells_of(shares, width):
        assert abs(cells - shares[name] / total * width) <= 1


def test_a_phase_bar_names_its_parts() -> None:
    shares = {"data": 0.62, "forward": 0.15, "backward": 0.2, "other": 0.03}
    assert "data 62" in "".join(span.text for span in phase_bar(shares, 60))
    plain_bar = "".join(span.text for span in phase_bar(shares, 60, plain=True))
    assert plain_bar.startswith("ddd") and "data 62" in plain_bar and plain_bar.rstrip(".").endswith("b")


def test_stacked_columns_have_the_first_phase_at_the_bottom() -> None:
    rows = stacked([{"data": 0.5, "forward": 0.5}] * 4, 4, 2, plain=True)
    assert [row_[0].text for row_ in rows] == ["ffff", "dddd"]
    assert stacked([{"data": 0.75, "forward": 0.25}], 1, 2)[0][0] == Span("▀", "half.forward.data")


@given(st.text(max_size=60), st.integers(0, 40))
def test_clip_never_exceeds(text: str, width: int) -> None:
    assert cell_len(clip(text, width)) <= max(width, 0)


@given(st.text(alphabet="abc 界é", max_size=40), st.integers(1, 30), st.sampled_from("<>"))
def test_fit_is_exact_with_wide_characters(text: str, width: int, align: str) -> None:
    assert width_of(fit(Span(text), width, align)) == width


def test_wrap_keeps_every_word() -> None:
    text = "Batches are made in the training process itself, one after the other"
    lines = wrap(text, 20)
    assert " ".join(lines) == text and max(map(len, lines)) <= 20


def test_beside_keeps_slots_in_place() -> None:
    joined = beside([[line("a", width=4, key="left")], [line("b", width=4, key="right")]], [4, 4], gap=2)[0]
    assert [(slot.start, slot.end, slot.key) for slot in joined.slots] == [(0, 4, "left"), (6, 10, "right")]
    assert joined.text == "a     b   "


COLUMNS = (
    Column("a", "Things", 8),
    Column("b", "more", 6, ">", drop=1),
    Column("c", "rest", 6, drop=2, grow=1),
)


def test_columns_go_in_their_turn() -> None:
    assert list(chosen(COLUMNS, 40)) == ["a", "b", "c"]
    assert list(chosen(COLUMNS, 18)) == ["a", "b"]
    assert list(chosen(COLUMNS, 9)) == ["a"]


def test_growing_columns_take_the_room() -> None:
    layout = chosen(COLUMNS, 60)
    assert sum(width for _, width in layout.values()) + 4 == 60


def test_rows_align_with_their_heading() -> None:
    layout = chosen(COLUMNS, 40)
    head, made = heading(layout, sort="b", reverse=True), row(layout, {"a": "x", "b": "7", "c": "tail"})
    assert head.text.index("more↓") + len("more↓") == made.text.index("7") + 1
    assert head.text.index("rest") == made.text.index("tail")


def test_every_glyph_has_one_ascii_character() -> None:
    assert all(len(stand_in) == 1 and stand_in.isascii() for stand_in in PAIRS.values())
    assert plain("▲ 31 % — ×2.1 ⣿⣿") == "! 31 % - x2.1 ##"
    assert plain("名前") == "??"


def test_control_characters_of_other_programs_never_reach_the_terminal() -> None:
    hostile = "train\x1b]0;owned\x07.py\n--x\u202e"
    made = line(Span(hostile), hostile, [Span(hostile)], width=90)
    assert made.text.isprintable() and width_of(fit(hostile, 12)) == 12
    assert plain(hostile).isprintable()
