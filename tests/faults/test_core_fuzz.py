"""The bounded share of `make sanitize`."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import require_program
from tests.faults.fuzz_core import call_oddly


@pytest.mark.slow
def test_odd_calls_of_the_c_core_are_answered() -> None:
    """GIVEN the C core under the sanitizers WHEN called as nobody would THEN they find nothing wrong."""
    try:
        done = call_oddly(require_program("cc"), calls=5000, seed=7)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the compiler has no sanitizers: {error.stderr.decode()[-200:]}")
    assert done.returncode == 0, done.stderr
