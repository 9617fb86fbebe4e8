"""Random words anywhere in a ring: the reader neither raises nor produces anything that cannot be encoded."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.model.snapshot import encode
from monitor.runs.reader import RunReader
from monitor.store.store import Store
from sdk import ring
from tests.unit.runs.rings import Script

words = st.one_of(
    st.integers(0, 2**64 - 1),
    st.just(2**64 - 1),
    st.integers(0, 70),
    st.sampled_from([2**63, 2**62, 2**56, 2**32, 10**12]),
)
places = st.one_of(
    st.integers(0, ring.HEADER_WORDS - 1),
    st.integers(ring.SCALARS_AT // 8, ring.META_AT // 8 + 20),
    st.integers(ring.DATA_AT // 8, ring.DATA_AT // 8 + 60 * ring.SLOT_WORDS),
)


@pytest.mark.slow
@given(st.lists(st.tuples(places, words), max_size=12), st.booleans())
def test_no_word_anywhere_hurts(changes: list[tuple[int, int]], while_followed: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        script = Script(directory, scalars=["a"], phases=["p"])
        for at in range(50):
            script.step(10.0, {0: 3.0, 12: 1.0}, samples=at)
        store = Store(directory / "h.db")
        reader = RunReader([directory], sink=store)
        if while_followed:
            reader.poll(script.now())
        with open(script.path, "r+b") as file:
            for place, word in changes:
                file.seek(place * 8)
                file.write(struct.pack("<Q", word))
        script.steps([10.0] * 3)
        for later in (0.0, 1.0, 5000.0):
            reader.poll(script.now(later))
            runs = reader.runs(script.now(later), (), ())
            assert encode(runs) and store.error is None
            for rank in (rank for run in runs for rank in run.ranks):
                assert rank.lost <= rank.steps
                assert not rank.phases or abs(sum(p.share for p in rank.phases) - 1.0) < 1e-6
        assert encode(store.steps("run-1")) and reader.dropped is not None
        reader.close()
        store.close()
