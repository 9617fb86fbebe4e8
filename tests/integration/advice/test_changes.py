"""Every change that is shown can be applied, still trains, and affects the training as stated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.diagnosis.catalog import SCRIPTS
from tests.integration.advice.changes import is_diff, report, without_and_with

CORPUS = (
    "segmentation_scores",
    "ranking_auc",
    "verbose_log",
    "layer_report",
    "deep_norms",
    "gradient_watch",
    "best_so_far",
    "mean_teacher",
    "save_often",
    "knn_graphs",
    "polite_worker",
    "claims_cleanup",
    "plain_adam",
    "many_hands",
)
"""Scripts whose first finding changes their own lines; others: `python -m tests.benchmarks.diagnosis`."""
SHOWN = ("verbose_log", "plain_adam", "many_hands")
"""Of these: a change of a call that every run meets, so it is shown once the script has run long enough."""
ENOUGH_STEPS = 150
"""The changes that are shown then are those that are shown after all steps."""
OWN = Path(__file__).parent / "scripts"
ROUNDING = 1e-3
"""Of the loss, after forty steps with additions in a different order."""


def check(script: Path, finding: dict[str, Any], folder: Path) -> None:
    """Apply a finding's change to a copy and compare the losses of both."""
    remedy = finding["remedy"]
    before, after = without_and_with(script, remedy["change"], folder)
    if remedy["effect"] == "identical":
        assert before == after, finding["id"]
    elif remedy["effect"] == "rounding":
        assert after == pytest.approx(before, rel=ROUNDING, abs=ROUNDING), finding["id"]
    else:
        assert len(before) == len(after)


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
def test_a_change_that_is_shown_can_be_applied_and_does_what_it_says(name: str, tmp_path: Path) -> None:
    """On a crowded machine a short run may end before its lines are sampled: then the whole script is run."""
    script = SCRIPTS / f"{name}.py"
    shown = changes(script, tmp_path, ENOUGH_STEPS)
    if not shown and name in SHOWN:
        shown = changes(script, tmp_path)
    assert shown or name not in SHOWN
    for finding in shown:
        check(script, finding, tmp_path)


def changes(script: Path, folder: Path, most_steps: int | None = None) -> list[dict[str, Any]]:
    """The findings about a script that show a change of its lines."""
    found = report(script, folder, most_steps)["findings"]
    return [one for one in found if is_diff(one["remedy"]["change"])]


EXPECTED = {
    "shared_forward": ("compute.validation_too_often",),
    "policy_gradient": ("healthy.ok", "compute.small_batch", "compute.python_loop"),
    "clipping": ("compute.small_batch", "compute.grad_norm_every_step", "healthy.ok"),
    "distillation": ("healthy.ok",),
    "random_batches": ("compute.user_code",),
}
"""What may come first for loops that wrong advice would wreck."""
SURROUNDINGS = ("compute.contention", "input.cpu_saturated")
"""What a crowded machine rightly adds."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_loops_that_wrong_advice_would_wreck(name: str, tmp_path: Path) -> None:
    """GIVEN a pass, an action, a clipping or a draw that the training needs WHEN the loop is judged THEN no
    change touches it, and the cause, if there is one, is right."""
    script = OWN / f"{name}.py"
    told = report(script, tmp_path)["findings"]
    found = [one for one in told if one["id"] not in SURROUNDINGS]
    ids = [one["id"] for one in found] or ["healthy.ok"]  # of which there is no word beside surroundings
    assert told and ids[0] in EXPECTED[name], told
    if name == "distillation":
        assert not set(ids) & {"compute.validation_too_often", "compute.metrics_every_step"}
    if name == "random_batches":
        assert "compute.constant_recomputed" not in ids and found[0]["remedy"]["effect"] == "in_expectation"
    for one in found:
        change = one["remedy"]["change"]
        assert "%" not in change or name == "shared_forward", change
        if is_diff(change):
            assert "foreach=True" in change or "fused=True" in change or name == "shared_forward"
            check(script, one, tmp_path)
