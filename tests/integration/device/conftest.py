"""Every test here needs the stand-in device, in its own process; the first one builds it. The device keeps
real time, so a crowded machine disturbs its measurements."""

from __future__ import annotations

import pytest

from tests import device
from tests.conftest import undisturbed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "integration/device" in str(item.path) and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.slow)
            item.obj = undisturbed(item.obj)


@pytest.fixture(scope="session", autouse=True)
def the_device() -> None:
    device.require()
