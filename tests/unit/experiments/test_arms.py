"""What is tried: taken from the command line, or from the advice."""

from __future__ import annotations

import msgspec
import pytest

from monitor.experiments.arm import EFFECTS, Arm, read_arm, together
from monitor.experiments.candidates import candidates, from_findings
from monitor.model.errors import UserError
from monitor.model.finding import Finding, Remedy
from sdk.knobs.catalog import KNOBS
from tests import scene
from tests.unit.advice.test_rules import CASES, findings_of


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


def test_a_remedy_that_is_a_knob() -> None:
    knobs = {"loader.num_workers": "2", "loader.persistent_workers": "on"}
    with_knobs = Finding("input.no_workers", "warning", "title", remedy=Remedy("Use 2", knobs=knobs))
    without = Finding("compute.sleep", "warning", "title", remedy=Remedy("Remove the sleep"))
    assert [arm.settings for arm in from_findings((without, with_knobs))] == [knobs]


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


@pytest.mark.parametrize("id", sorted(CASES))
def test_rules_and_knobs_say_the_same_about_the_training(id: str) -> None:
    """A remedy that can be tried is never called milder than its knobs are, and its values are valid."""
    for finding in findings_of(CASES[id][0], id):
        for name, value in finding.remedy.knobs.items():
            KNOBS[name].read(value)
        if finding.remedy.knobs:
            assert finding.remedy.effect is not None
            arm = Arm(finding.remedy.knobs)
            assert EFFECTS.index(finding.remedy.effect) >= EFFECTS.index(arm.effect)


def test_the_rules_of_a_first_look_can_be_tried() -> None:
    tried = {id for id, (sick, _) in CASES.items() if any(one.remedy.knobs for one in findings_of(sick, id))}
    assert tried >= {"input.no_workers", "compute.optimizer_unfused", "compute.anomaly_mode", "job.gc_pauses"}
