"""Do they learn? Each recipe passes the baseline that costs nothing, on small data in a short run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    metric, baseline, options = RUNS[recipe]
    common = ("--synthetic", "--no-monitor", "--quiet", "--products=all", "--validation_interval=1")
    code, _, err = finish(start("-m", f"trainers.{recipe}", *common, *options, f"--out={tmp_path}"))
    assert code == 0, err
    lines = [json.loads(line) for line in (tmp_path / recipe / "metrics.jsonl").read_text().splitlines()]
    free = lines[0][baseline]
    assert all(line[baseline] == free for line in lines)  # the baseline does not learn
    if metric == "rmse":
        assert min(line[metric] for line in lines) < 0.9 * free
    else:
        assert max(line[metric] for line in lines) > 1.2 * free
