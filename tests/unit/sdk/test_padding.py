"""Which batches are wider than any of their rows."""

from __future__ import annotations

import torch

from sdk.loader.padding import BATCHES, Padding

WIDTH, ROWS = 64, 4


def ids(longest: int, width: int = WIDTH, pad: int = 0) -> torch.Tensor:
    """A batch in which one row has this many ids, the others half of them."""
    found = torch.full((ROWS, width), pad)
    found[0, :longest] = torch.arange(1, longest + 1)
    found[1:, : longest // 2] = 7
    return found


def share(*batches: object) -> float | None:
    padding = Padding()
    for at in range(BATCHES):
        padding.see(batches[at % len(batches)])
    return padding.share


def test_columns_that_no_row_fills_are_counted_at_either_end() -> None:
    assert share(ids(16), ids(32)) == (48 + 32) / 2 / WIDTH
    assert share(ids(16).flip(1), ids(32).flip(1)) == (48 + 32) / 2 / WIDTH, "padded on the left"
    assert share(ids(16, pad=-1), ids(32, pad=-1)) == (48 + 32) / 2 / WIDTH, "whatever the number is"


def test_ids_are_found_in_what_a_collate_function_returns() -> None:
    assert share({"x": [ids(16), 3]}, {"x": [ids(32), 3]}) == share(ids(16), ids(32))


def test_batches_as_wide_as_their_longest_row_have_nothing_to_spare() -> None:
    assert share(ids(16, width=16), ids(32, width=32)) is None
    assert share(ids(WIDTH), ids(WIDTH)) is None


def test_columns_that_are_always_empty_are_part_of_the_data() -> None:
    assert share(ids(32), ids(32)) is None


def test_numbers_that_are_no_ids_are_not_looked_at() -> None:
    assert share(ids(16).float(), ids(32).float()) is None
    assert share(torch.zeros(WIDTH, dtype=torch.int64)) is None


def test_a_table_of_flags_is_not_padded() -> None:
    flags = [torch.zeros(ROWS, WIDTH, dtype=torch.int64) for _ in range(2)]
    flags[0][:, 3:12:2] = 1
    flags[1][:, 5:32:3] = 1
    assert share(*flags) is None


def test_it_stops_looking() -> None:
    padding = Padding()
    assert padding.looks
    padding.see(torch.zeros(3))
    assert not padding.looks, "the first batch has no ids"
