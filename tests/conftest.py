"""Shared test helpers: required programs, waiting with a deadline, a private gpumon directory."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests import durations

# The same examples on every machine, with no deadline; `make fuzz` looks for new ones. A few are enough to
# see whether a test still works.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("same", deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
settings.register_profile("few", settings.get_profile("same"), max_examples=5)
settings.register_profile("explore", deadline=None, max_examples=2000, suppress_health_check=SLOW)
settings.load_profile("same")

os.environ.setdefault("OMP_NUM_THREADS", "1")
# What is tested is English unless a test asks for another language.
os.environ.pop("GPUMON_LANG", None)
for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
    if name in os.environ:
        os.environ[name] = "C.UTF-8"
# A shell's background job ignores Ctrl-C, and so would every child the tests want to interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Importing makes objects that stay; looking through them again and again would take longer than most tests.
gc.disable()

# Keep locks and sockets of the daemons that tests start apart from the developer's.
os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="gpumon-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_RUNTIME_DIR"], ignore_errors=True)

T = TypeVar("T")
PATIENCE = 600.0
"""Seconds after which something counts as hung: no test fails for being slow."""


TIMED = (
    "integration/advice/",
    *(
        f"integration/device/test_{name}.py"
        for name in ("account", "lane", "scripts", "selftest", "timeline")
    ),
    "integration/experiments/test_criticality.py",
    "integration/trainers/test_twins.py",
)
"""Tests that compare times of real trainings: `make test` runs them last, beside each other only."""


def is_timed(path: Path) -> bool:
    return any(part in path.as_posix() for part in TIMED)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Importing files none of whose tests are wanted takes longer than some that are."""
    unwanted = config.option.markexpr == "timed" and collection_path.suffix == ".py"
    return True if unwanted and not is_timed(collection_path) else None


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """What failed among the others and is skipped when run again alone has not passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped") if reporter else None
    if exitstatus == pytest.ExitCode.OK and session.config.option.lf and skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first: if one of them began last, the other processes would wait for it."""
    seconds = durations.recorded()
    items.sort(key=lambda item: -seconds.get(item.nodeid.partition("::")[0], 0))
    for item in items:
        if is_timed(item.path):
            item.add_marker(pytest.mark.timed)


def pytest_collection_finish() -> None:
    """What is there by now stays: a collection of garbage in a test looks at what that test has made."""
    gc.freeze()
    gc.enable()


def require_program(name: str) -> str:
    """Path of a program the test needs; without it the test is skipped, or fails under CI."""
    found = shutil.which(name)
    if found:
        return found
    reason = f"{name} is not installed (Debian: apt-get install {name})"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def wait_for(what: Callable[[], T | Literal[False] | None], *, every: float = 0.05) -> T:
    """Call `what` until it returns something true; fail with its last answer if it seems to hang."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = what()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"still {answer!r} after {PATIENCE:.0f} s")
        time.sleep(every)


def undisturbed(test: Callable[..., None], tries: int = 5) -> Callable[..., None]:
    """For a test that compares measured times: on a crowded machine a measurement may be disturbed, so one of
    a few attempts has to hold. A real fault fails every time."""

    @functools.wraps(test)
    def attempt(*arguments: Any, **named: Any) -> None:
        for _ in range(tries - 1):
            with contextlib.suppress(AssertionError):
                return test(*arguments, **named)
        return test(*arguments, **named)

    return attempt


@pytest.fixture
def gpumon_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A ring directory just for this test, set as GPUMON_DIR."""
    directory = tmp_path / "rings"
    directory.mkdir()
    monkeypatch.setenv("GPUMON_DIR", str(directory))
    yield directory
