"""Do they learn? Each recipe passes the baseline that costs nothing, on small data in a short run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitor.model.errors import EXIT_INTERRUPTED
from tests.conftest import wait_for
from tests.integration.trainers.launch import finish, start

pytestmark = pytest.mark.slow
RUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # recipe: (metric, its baseline, options)
    "tcn": ("rmse", "rmse_mean", ("--synthetic_size=0.2", "--channels=8", "--batch_size=128", "--epochs=4")),
    "tom500": (
        "dice",
        "dice_brightness",
        ("--synthetic_size=0.02", "--image_size=64", "--slices=12", "--width=8", "--epochs=6"),
    ),
    "reid": ("mAP", "mAP_untrained", ("--width=8", "--epochs=14", "--image_height=32", "--image_width=16")),
    "graph": ("rmse", "rmse_last_value", ("--synthetic_size=0.4", "--hidden_channels=32", "--epochs=3")),
    "sequence": (
        "rmse",
        "rmse_week_ago",
        ("--synthetic_size=0.5", "--hidden_size=32", "--sequence_length=30", "--epochs=10", "--lr=3e-3"),
    ),
}


@pytest.mark.parametrize("recipe", RUNS)
def test_a_short_run_beats_the_forecast_that_costs_nothing(recipe: str, tmp_path: Path) -> None:
    """It need not go on once it has."""
    metric, baseline, options = RUNS[recipe]
    common = ("--synthetic", "--no-monitor", "--quiet", "--products=all", "--validation_interval=1")
    child = start("-m", f"trainers.{recipe}", *common, *options, f"--out={tmp_path}")
    written = tmp_path / recipe / "metrics.jsonl"
    wait_for(lambda: is_beaten(metric, baseline, lines(written)) or child.poll() is not None, every=0.2)
    child.terminate()
    code, _, err = finish(child)
    assert code in (0, EXIT_INTERRUPTED) and is_beaten(metric, baseline, lines(written)), err
    assert len({line[baseline] for line in lines(written)}) == 1, "the baseline does not learn"


def lines(path: Path) -> list[dict[str, float]]:
    """The whole ones: the last may be in the making."""
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def is_beaten(metric: str, baseline: str, found: list[dict[str, float]]) -> bool:
    if metric == "rmse":
        return any(line[metric] < 0.9 * line[baseline] for line in found)
    return any(line[metric] > 1.2 * line[baseline] for line in found)
