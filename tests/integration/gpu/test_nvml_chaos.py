"""Many random troubles at once: every tick answers, and once they are over everything is normal again."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.integration.gpu.conftest import Answer, Reader
from tests.nvml.standin import StandIn

INTERVAL = 0.5
TROUBLES = 30


def disturb(nvml: StandIn, dice: random.Random) -> str:
    """One random change; returns its name, for the failure message."""
    gpu = nvml.gpu(dice.randrange(4))
    actions: dict[str, Callable[[], None]] = {
        "hang": gpu.hang,
        "unhang": gpu.unhang,
        "lose": gpu.lose,
        "find": gpu.find,
        "xid": lambda: gpu.xid(31),
        "hang all": nvml.hang,
        "unhang all": nvml.unhang,
        "unload": nvml.unload,
        "reload": nvml.load,
        "fewer": lambda: setattr(nvml, "count", 3),
        "more": lambda: setattr(nvml, "count", 4),
        "absent": lambda: gpu.absent("power", "fan"),
        "present": lambda: gpu.set(power=1000, fan=10),
    }
    name = dice.choice(list(actions))
    actions[name]()
    return name


def heal(nvml: StandIn) -> None:
    nvml.unhang()
    for index in range(4):
        nvml.gpu(index).unhang()
        nvml.gpu(index).find()
    nvml.count = 4
    nvml.load()


def well(answer: Answer) -> bool:
    return (
        answer.source is not None
        and answer.source.ok
        and len(answer.gpus) == 4
        and all(gpu.state == "ok" and gpu.age_seconds == 0 for gpu in answer.gpus)
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_random_trouble(nvml: StandIn, open_reader: Callable[..., Reader], seed: int) -> None:
    dice = random.Random(seed)
    nvml.count = 4
    reader = open_reader(interval=INTERVAL)
    reader.read()
    history: list[str] = []
    for _ in range(TROUBLES):
        history.append(disturb(nvml, dice))
        answer = reader.read()
        for gpu in answer.gpus:
            assert (gpu.state == "ok") == (gpu.age_seconds == 0 and gpu.state_detail is None), (seed, history)
    heal(nvml)
    reader.until(well)
    reader.close()
