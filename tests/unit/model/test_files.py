"""Files a user names that never end, or are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from monitor.gpu.scenario import load_scenario
from monitor.model.errors import UserError
from monitor.model.files import read_text
from monitor.model.policy import load_policy
from monitor.model.settings import load
from monitor.traces.reader import read
from monitor.tui.feed import hosts_file

ZERO = Path("/dev/zero")


@pytest.mark.skipif(not ZERO.exists(), reason="no such device here")
@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (load_policy, "longer than 1 MiB"),
        (hosts_file, "longer than 1 MiB"),
        (lambda path: load_scenario(path, 1), "longer than 1 MiB"),
        (lambda path: load(environ={"GPUMON_CONFIG": str(path)}), "longer than 1 MiB"),
        (read, "is not a file"),
    ],
)
def test_what_never_ends_is_one_sentence(reading: Callable[[Path], object], said: str) -> None:
    with pytest.raises(UserError) as caught:
        reading(ZERO)
    assert said in caught.value.sentence and str(ZERO) in caught.value.sentence


def test_an_ordinary_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("é\n", encoding="utf-8")
    assert read_text(tmp_path / "a") == "é\n"
