"""A change is shown only if it can be applied: real lines of a script, as the SDK has read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.advice.context.run import RunContext
from monitor.advice.engine import Engine
from monitor.advice.evidence import edits, frameworks, loading
from monitor.advice.evidence.whole_batches import batch_sampler
from monitor.model.policy import DEFAULT_POLICY
from tests.integration.advice.changes import apply, is_diff
from tests.unit.advice import cases_loop, cases_machine
from tests.unit.advice.build import cuda_run, first, run_of, snapshot_of
from tests.unit.advice.shapes import looped
from tests.unit.sdk.watched import facts

CASES = {**cases_loop.CASES, **cases_machine.CASES}
SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(max(1, 16))
torch.autograd.set_detect_anomaly(True)
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(
    model.parameters(),
    lr=1e-3,
)
checked = DataLoader(data, batch_size=8)
loader = DataLoader(data, batch_size=8, num_workers=0)
for step, (x, y) in enumerate(loader):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    return file


def context(config: dict[str, Any]) -> RunContext:
    run = run_of(config=config)
    return RunContext(snapshot_of(run), run, DEFAULT_POLICY)


@pytest.mark.parametrize("rule", sorted(CASES))
def test_a_change_is_a_diff_of_known_lines_or_a_command(rule: str) -> None:
    """These snapshots have no source: no rule may invent lines of it."""
    for finding in Engine().once(CASES[rule][0]).findings:
        lines = finding.remedy.change.splitlines()
        assert is_diff(finding.remedy.change) or not [one for one in lines if one[:2] in ("- ", "+ ")]


def test_settings_are_changed_in_the_call_that_sets_them(script: Path) -> None:
    run = context(facts(script))
    changed = apply(SCRIPT, edits.keywords(run, "optimizer", fused="True"))
    assert "    lr=1e-3, fused=True,\n)" in changed
    assert "loader = DataLoader(data, batch_size=8, num_workers=2, persistent_workers=True)" in apply(
        SCRIPT, loading.with_workers(run, 2)
    ), "the loader of the steps, not the other one"
    assert "set_num_threads(2)" in apply(SCRIPT, edits.first_argument(run, "threads", "2"))
    assert "set_detect_anomaly(False)" in apply(SCRIPT, edits.first_argument(run, "anomaly", "False"))
    assert "1.0, foreach=True)" in apply(SCRIPT, edits.keywords(run, "clip", foreach="True"))
    top = apply(SCRIPT, edits.inserted(run, "torch.backends.cudnn.benchmark = True"))
    assert "TensorDataset\ntorch.backends.cudnn.benchmark = True\n" in top


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        (
            "DataLoader(data, batch_size=8, shuffle=True, num_workers=0)",
            "DataLoader(data, batch_size=None, shuffle=False, num_workers=0, "
            "sampler=torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(data), 8, False))",
        ),
        (
            "torch.utils.data.DataLoader(data, 4 * 2, drop_last=True)",
            "torch.utils.data.DataLoader(data, None, drop_last=False, sampler=torch.utils.data.BatchSampler("
            "torch.utils.data.SequentialSampler(data), 4 * 2, True))",
        ),
        (
            "DataLoader(data, sampler=order, batch_size=size)",
            "DataLoader(data, sampler=torch.utils.data.BatchSampler(order, size, False), batch_size=None)",
        ),
        ("DataLoader(data, batch_size=8, shuffle=training)", ""),
        ("DataLoader(data, batch_size=8, generator=draws)", ""),
        ("DataLoader(make(data), batch_size=8)", ""),
        ("DataLoader(data, 8, True, order)", ""),
        ("DataLoader(data)", ""),
    ],
)
def test_a_loader_of_rows_becomes_one_of_whole_batches(script: Path, call: str, changed: str) -> None:
    """GIVEN a call WHEN its source shows the order and the size of batches THEN both go to a sampler."""
    source = SCRIPT.replace("DataLoader(data, batch_size=8, num_workers=0)", call)
    script.write_text(source)
    change = batch_sampler(context(facts(script)))
    assert bool(change) is bool(changed)
    if change:
        assert f"loader = {changed}\n" in apply(source, change)


def test_a_call_made_at_two_places_is_described_in_words(script: Path) -> None:
    script.write_text(SCRIPT + "other = torch.optim.SGD(model.parameters(), lr=0.1)\n")
    assert edits.keywords(context(facts(script)), "optimizer", fused="True") == ""


def test_work_no_step_needs_goes_below_a_condition_on_the_loops_own_counter(script: Path) -> None:
    run = run_of(
        {"forward": 0.002, "backward": 0.003, "between": 0.01}, config=facts(script, ("between", "print("))
    )
    found = first(run)
    assert found.id == "compute.logging_too_often" and found.remedy.effect == "identical"
    assert "    if step % 100 == 0:\n        print(step, loss.item())\n" in apply(SCRIPT, found.remedy.change)


def test_nothing_a_hostile_ring_says_breaks_a_change() -> None:
    for raw in (
        {"lines": [[0, "x"]], "end": [9, 9]},
        {"lines": "x"},
        {"lines": [[0, 1]]},
        5,
        {"keywords": {"a": 1}},
    ):
        run = context({"sites": {"loader": raw, "threads": raw, "top": raw}})
        assert edits.keywords(run, "loader", a="1") == "" and edits.first_argument(run, "threads", "1") == ""
        assert edits.inserted(run, "x = 1") == "" and batch_sampler(run) == ""


def test_a_framework_is_told_its_own_setting() -> None:
    run = context({"framework": "transformers"})
    assert "eval_steps=300" in frameworks.setting(run, "validate", every=300)
    assert frameworks.setting(context({}), "validate", every=300) == ""
    assert "val_check_interval=300" in frameworks.setting(
        context({"framework": "pytorch_lightning"}), "validate", every=300
    )
    assert "save_steps=50" in frameworks.setting(context({"framework": "trl"}), "save", every=50)


def test_every_setting_of_a_framework_can_be_written() -> None:
    for name, known in frameworks.SETTINGS.items():
        for what in known:
            said = frameworks.setting(context({"framework": name}), what, every=300, workers=2, batch=64)
            assert said.startswith(" Here: `") and "{" not in said, (name, what)


def test_what_a_later_step_reads_is_never_offered_once_or_less_often() -> None:
    found = first(looped("graph = rebuild(points)", work={"job": "", "needed": "yes"}))
    assert found.id == "compute.user_code" and not found.remedy.change
    assert "The step uses" in found.remedy.summary and "less often" in found.remedy.avoid


def test_on_a_gpu_clipping_is_fused_by_itself() -> None:
    run = cuda_run({"forward": 0.003, "backward": 0.005, "grad_norm": 0.004})
    ids = [one.id for one in Engine().once(snapshot_of(run)).findings]
    assert "compute.grad_norm_every_step" not in ids
