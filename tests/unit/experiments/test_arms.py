"""What is tried: taken from the command line, or from the advice."""

from __future__ import annotations

import msgspec
import pytest

from monitor.experiments.arm import Arm, read_arm, together
from monitor.experiments.candidates import candidates, from_findings
from monitor.model.errors import UserError
from monitor.model.finding import Finding, Remedy
from tests import scene


def test_settings_that_belong_together() -> None:
    arm = read_arm("loader.num_workers=4 optimizer.fused=on")
    assert arm.settings == {"loader.num_workers": "4", "optimizer.fused": "on"}
    assert arm.effect == "rounding"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("loader.workers=4", "no such knob: loader.workers"),
        ("loader.num_workers", "loader.num_workers needs a value: 0, 1, 2, …"),
        ("loader.num_workers=x", "loader.num_workers is a whole number of at least 0, not x"),
        ("", "--set needs a knob and its value"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        read_arm(text)
    assert caught.value.sentence == sentence


def test_what_contradicts_is_left_out() -> None:
    arms = [Arm({"optimizer.fused": "on"}), Arm({"optimizer.foreach": "on"}), Arm({"gc.collect": "off"})]
    assert together(arms).settings == {"optimizer.fused": "on", "gc.collect": "off"}


@pytest.mark.parametrize(
    ("rule", "summary", "settings"),
    [
        (
            "input.no_workers",
            "Give the DataLoader 2 workers (num_workers=2; …",
            {"loader.num_workers": "2", "loader.persistent_workers": "on"},
        ),
        (
            "input.too_few_workers",
            "Raise num_workers from 1 to 6: making a sample waits",
            {"loader.num_workers": "6", "loader.persistent_workers": "on"},
        ),
        ("input.too_many_workers", "Use num_workers=0: samples are cheap", {"loader.num_workers": "0"}),
        ("compute.optimizer_unfused", "Give Adam fused=True", {"optimizer.fused": "on"}),
        (
            "compute.threads_oversubscribed",
            "Use 2 threads: OMP_NUM_THREADS=2, or torch.set_num_threads(2)",
            {"threads.torch": "2"},
        ),
        ("compute.sleep", "Remove the sleep", None),
    ],
)
def test_a_remedy_that_is_a_knob(rule: str, summary: str, settings: dict[str, str] | None) -> None:
    found = from_findings((Finding(rule, "warning", "title", remedy=Remedy(summary)),))
    assert [arm.settings for arm in found] == ([settings] if settings else [])


def test_where_a_first_look_suggests_nothing_the_usual_is_tried() -> None:
    quick = msgspec.structs.replace(scene.run(), phases=(), config={"loader": {"num_workers": 0}})
    assert [arm.label for arm in candidates((), quick, 2, 4)] == [
        "loader.num_workers=2 loader.persistent_workers=on",
        "optimizer.fused=on",
        "anomaly=off gc.collect=off",
    ]
    assert [arm.label for arm in candidates((), quick, 2, 1)] == [
        "loader.num_workers=2 loader.persistent_workers=on"
    ]
