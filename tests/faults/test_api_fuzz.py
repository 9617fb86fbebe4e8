"""The bounded share of `make fuzz` for the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.fuzz_api import fuzz, is_installed


@pytest.mark.slow
def test_the_api_answers_as_it_is_described(tmp_path: Path) -> None:
    if not is_installed():
        pytest.skip("schemathesis is not installed (pip install schemathesis)")
    done = fuzz(tmp_path, examples=15)
    assert done.returncode == 0, done.stdout
