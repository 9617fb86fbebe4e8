"""Knobs in real scripts: they affect the losses as their class says, and what is impossible says why."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from monitor.model.finding import Effect
from sdk.knobs.catalog import KNOBS
from tests import warm
from tests.conftest import PATIENCE
from tests.unit.sdk.knobs_scripts import PLAIN, RANDOM_SAMPLES, STUBBORN, SWITCHED

ROOT = Path(__file__).parents[3]
pytest.importorskip("torch")
pytestmark = pytest.mark.slow


class Scripts:
    """Runs them as trials; each only once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, dict[str, Any]] = {}
        self._count = 0

    def run(self, script: str, *, steps: int = 30, **settings: Any) -> dict[str, Any]:
        chosen = {name.replace("__", "."): value for name, value in settings.items()}
        key = json.dumps([script, steps, chosen])
        if key not in self._known:
            self._known[key] = self._run(script, {"set": chosen, "steps": steps, "seed": 7})
        return self._known[key]

    def _run(self, script: str, trial: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        folder = self._folder / str(self._count)
        (folder / "rings").mkdir(parents=True, mode=0o700)
        (folder / "train.py").write_text(script)
        environment = os.environ | {
            "PYTHONPATH": str(ROOT / "sdk" / "autostart"),
            "GPUMON_AUTO": "1",
            "GPUMON_RUN_ID": f"knobs-{self._count}",
            "GPUMON_DIR": str(folder / "rings"),
            "GPUMON_TRIAL": json.dumps(trial | {"folder": str(folder)}),
        }
        done = subprocess.run(
            [warm.python(), "train.py"], cwd=folder, env=environment, capture_output=True, text=True,
            timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "the end was reached" not in done.stdout
        told = [json.loads(path.read_text()) for path in folder.glob("*.json")]
        assert len(told) == 1
        return told[0]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    return Scripts(tmp_path_factory.mktemp("knobs"))


def test_every_knob_has_a_class_of_the_advice_and_words() -> None:
    for name, knob in KNOBS.items():
        assert knob.name == name and knob.effect in get_args(Effect)
        assert knob.takes and knob.words("on")


def test_a_trial_ends_after_its_steps_and_keeps_the_losses(scripts: Scripts) -> None:
    told = scripts.run(PLAIN)
    assert told["steps"] == len(told["losses"]) == 30
    assert told["memory_bytes"] > 10_000_000


IDENTICAL: dict[str, Any] = {
    "loader__num_workers": "2",
    "loader__persistent_workers": "on",
    "loader__prefetch_factor": "4",
    "optimizer__set_to_none": "on",
    "gc__collect": "off",
    "gc__freeze": "on",
    "gc__threshold": "20000",
    "anomaly": "off",
}


@pytest.mark.slow
def test_what_is_called_identical_changes_no_loss(scripts: Scripts) -> None:
    before, after = scripts.run(PLAIN), scripts.run(PLAIN, **IDENTICAL)
    assert {name: one["state"] for name, one in after["knobs"].items()} == {
        name.replace("__", "."): "applied" for name in IDENTICAL
    }
    assert after["losses"] == before["losses"]


def test_whole_batches_are_those_of_the_rows(scripts: Scripts) -> None:
    """In the loop, and in forked workers, where only the losses can show it."""
    before = scripts.run(PLAIN)
    after = scripts.run(PLAIN, loader__whole_batches="on")
    forked = scripts.run(PLAIN, loader__whole_batches="on", loader__num_workers="2")
    assert after["knobs"]["loader.whole_batches"]["state"] == "applied"
    assert after["losses"] == forked["losses"] == before["losses"]
    kept = scripts.run(RANDOM_SAMPLES, loader__whole_batches="on")
    assert kept["knobs"]["loader.whole_batches"]["state"] == "waiting"
    assert kept["losses"] == scripts.run(RANDOM_SAMPLES)["losses"]


def test_what_is_called_rounding_changes_losses_by_rounding(scripts: Scripts) -> None:
    before = scripts.run(PLAIN)
    after = scripts.run(PLAIN, optimizer__fused="on", threads__torch="2", precision__matmul_precision="high")
    assert {one["state"] for one in after["knobs"].values()} == {"applied"}
    assert after["losses"] == pytest.approx(before["losses"], rel=1e-3)


@pytest.mark.slow
def test_workers_draw_other_random_numbers(scripts: Scripts) -> None:
    """A data set that draws some: the same number of workers is not identical, and the losses show it."""
    before, after = scripts.run(RANDOM_SAMPLES), scripts.run(RANDOM_SAMPLES, loader__num_workers="1")
    assert scripts.run(RANDOM_SAMPLES, steps=20)["losses"] == before["losses"][:20]
    assert after["losses"] != before["losses"]


def test_a_larger_batch_is_another_training(scripts: Scripts) -> None:
    before, after = scripts.run(PLAIN), scripts.run(PLAIN, loader__batch_size="20")
    assert after["knobs"]["loader.batch_size"] == {"state": "applied", "why": "10 → 20"}
    assert after["losses"] != before["losses"]


def test_what_cannot_be_applied_says_why(scripts: Scripts) -> None:
    told = scripts.run(
        STUBBORN,
        loader__num_workers="2",
        loader__prefetch_factor="4",
        optimizer__fused="on",
        model__channels_last="on",
        gc__collect="off",
        anomaly="off",
        log__every="10",
    )["knobs"]
    why = {name: (one["state"], one["why"]) for name, one in told.items()}
    assert why == {
        "loader.num_workers": (
            "refused",
            "the data set is iterable: other workers would share it out differently",
        ),
        "loader.prefetch_factor": ("refused", "the loader has no workers"),
        "optimizer.fused": ("refused", "Own is an optimizer of its own"),
        "model.channels_last": ("refused", "Linear has no convolution over images"),
        "gc.collect": ("waiting", "the script did not call `gc.collect`"),
        "anomaly": ("waiting", "the script does not switch anomaly mode on"),
        "log.every": ("waiting", "nothing was logged to TensorBoard, W&B or MLflow"),
    }


def test_an_accelerator_knob_needs_one(scripts: Scripts) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    names = ("loader__pin_memory", "transfer__non_blocking", "precision__matmul_tf32", "cudnn__benchmark")
    switched: dict[str, Any] = dict.fromkeys(names, "on")
    told = scripts.run(PLAIN, **switched)["knobs"]
    assert {one["why"] for one in told.values()} == {"torch sees no CUDA device here"}


def test_what_is_in_force_from_the_start_can_be_switched_back_to_the_scripts_own_choice(
    tmp_path: Path,
) -> None:
    """The script asks for five threads, anomaly mode and a plain optimizer behind it; its workers for one."""
    (tmp_path / "switched.py").write_text(SWITCHED)
    done = subprocess.run(
        [warm.python(), "switched.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    at_first, later, states, worker, inside = json.loads(done.stdout)
    assert at_first == ["already", "waiting", "waiting"] and later == ["applied"] * 3
    on, off = [3, False, True, None], [5, True, None, False]
    assert states == [on, off, on, off]
    assert worker == 1 and inside is False


def test_free_data_is_the_first_batch_again(scripts: Scripts) -> None:
    told = scripts.run(PLAIN, free__data="on", free__checkpoints="on")
    assert told["steps"] == 30 and {one["state"] for one in told["knobs"].values()} == {"applied"}
    assert told["losses"][0] == scripts.run(PLAIN)["losses"][0]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("loader.num_workers", "many", "loader.num_workers is a whole number of at least 0, not many"),
        ("optimizer.fused", "maybe", "optimizer.fused is on or off, not maybe"),
        ("gc.collect", "on", "gc.collect can only be switched off"),
        ("precision.autocast", "fp16", "fp16 needs a gradient scaler in the loop"),
        ("cpu.affinity", "a-b", "cpu.affinity is a list of cores such as 0-3,8, not a-b"),
    ],
)
def test_a_wrong_value_is_one_sentence(name: str, text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        KNOBS[name].read(text)
