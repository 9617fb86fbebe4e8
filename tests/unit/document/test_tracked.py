"""What is written into a tracker, and for whom."""

from __future__ import annotations

import json
import os

import msgspec
import pytest

from monitor.catalog.dossier import Dossier
from monitor.cli.track import targets
from monitor.document.tracked import tracked
from monitor.model.errors import UserError
from tests.unit.document import made

USED = {"folder": "/work", "tensorboard": [{"log_dir": "/work/logs"}]}


def dossier(**changed: object) -> Dossier:
    run = made.run()
    return made.dossier(msgspec.structs.replace(run, **changed), made.finding())


def test_figures_are_numbers_and_absent_ones_are_left_out() -> None:
    told = json.loads(json.dumps(tracked(dossier(tokens_per_second=None))))
    assert told["figures"]["gpumon/step_p50_seconds"] > 0
    assert "gpumon/tokens_per_second" not in told["figures"]
    assert all(isinstance(value, float) for point in told["points"] for value in point["figures"].values())
    assert any(name.startswith("gpumon/finding/") for name in told["texts"])


def test_a_strangers_run_is_not_tracked() -> None:
    """The run says where to write; somebody else's could name any place."""
    with pytest.raises(UserError, match="another user's"):
        targets(dossier(owner_uid=os.geteuid() + 1, config={"trackers": USED}))
    with pytest.raises(UserError, match="another user's"):
        targets(dossier(owner_uid=None, config={"trackers": USED}))


@pytest.mark.parametrize("config", [{}, {"trackers": {}}, {"trackers": "?"}])
def test_a_run_without_a_tracker_says_so(config: dict[str, object]) -> None:
    with pytest.raises(UserError, match="was not seen logging to") as caught:
        targets(dossier(owner_uid=os.geteuid(), config=config))
    assert caught.value.code == 1


def test_what_the_script_used_is_what_is_written() -> None:
    assert targets(dossier(owner_uid=os.geteuid(), config={"trackers": USED})) == USED
