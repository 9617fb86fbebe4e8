"""What a step needs and what it does not, from the source of a loop, never from its author's names."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

import pytest

from sdk.structure.flow import Flow
from sdk.structure.reader import Reader
from sdk.structure.source import Function, forget, read
from tests.unit.sdk.renaming import renamed
from tests.unit.sdk.watched import facts, line_of, piece

SCRIPTS = Path(__file__).parents[2] / "integration" / "advice" / "scripts"
CORPUS = Path(__file__).parents[2] / "benchmarks" / "diagnosis" / "scripts"

LOOP = """\
import copy, json, logging, time
import numpy as np
import torch
from torch import nn

def report(step, model):
    for name, weight in model.named_parameters():
        print(step, name, weight.mean())

def quality(output, labels):
    return sum(int(a == b) for a, b in zip(output.tolist(), labels.tolist()))

def prepare(x):
    return x / x.norm()

model = nn.Sequential(nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
logger = logging.getLogger("x")
batches = [torch.randn(4, 8) for _ in range(9)]
best, history = None, []
for step, x in enumerate(batches):
    x = prepare(x)
    output = model(x)
    loss = output.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    report(step, model)
    previous = quality(output, x)
    best = copy.deepcopy(model)
    norms = [p.grad.norm().item() for p in model.parameters()]
    logger.info("%s", previous)
    history.append(loss.item())
"""


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(LOOP)
    return file


def test_what_leads_to_the_update_is_needed(loop: Path) -> None:
    made = piece(loop, "x / x.norm()", "x = prepare(x)", phase="data")
    assert made["needed"] == "yes" and made["job"] == "" and "guard" not in made
    passed = piece(loop, "output = model(x)", phase="forward", modules=True)
    assert passed["needed"] == "yes" and passed["grad"] and "guard" not in passed


def test_jobs_are_told_by_library_functions_and_by_where_results_go(loop: Path) -> None:
    seen = {
        "    report(step, model)": "log",
        "previous = quality(": "metrics",
        "best = copy": "copy",
        "norms = ": "grad_norm",
        "logger.info": "log",
    }
    for fragment, job in seen.items():
        found = piece(loop, fragment)
        assert (found["needed"], found["job"]) == ("no", job), fragment
        assert found["guard"]["counter"] == "step"


def test_clipping_and_the_update_are_no_pieces_of_work(loop: Path) -> None:
    found = facts(loop, ("grad_norm", "clip_grad_norm_"), ("optimizer", "optimizer.step()"))
    assert found.get("work", []) == []
    clip = next(one for one in found["hotspots"] if one["phase"] == "grad_norm")
    assert clip["update"] and clip["job"] == "clip"


def test_neighbours_that_no_step_needs_are_one_piece(loop: Path) -> None:
    found = facts(loop, ("between", "previous = quality("), ("between", "best = copy"))
    (one,) = found["work"]
    assert [text for _, text in one["guard"]["lines"]] == [
        "previous = quality(output, x)",
        "best = copy.deepcopy(model)",
    ]


CASES: dict[str, tuple[str, tuple[str, ...], bool, dict[str, Any]]] = {
    "shared_forward": ("validate", ("return (model(nodes", "result = test()"), True, {"needed": "no"}),
    "policy_gradient": (
        "forward",
        ("Categorical(policy(state))", "action = select_action"),
        True,
        {"needed": "yes"},
    ),
    "distillation": ("forward", ("scores = teacher(x)",), True, {"needed": "yes", "no_grad": True}),
    "random_batches": (
        "between",
        ("torch.randperm", "x, y = batch"),
        False,
        {"needed": "yes", "random": True},
    ),
}


@pytest.mark.parametrize("script", sorted(CASES))
def test_loops_whose_training_must_not_be_touched(script: str) -> None:
    phase, seen, modules, expected = CASES[script]
    found = piece(SCRIPTS / f"{script}.py", *seen, phase=phase, modules=modules)
    assert expected.items() <= found.items()
    assert "guard" not in found and "hoist" not in found, "no change is offered"


def test_lines_of_a_shared_forward_belong_to_who_called_it() -> None:
    file = SCRIPTS / "shared_forward.py"
    trained = ("forward", "x = torch.relu(self.conv1", "loss = nn.functional")
    tested = ("validate", "x = torch.relu(self.conv1", "return (model(nodes", "result = test()")
    work = {one["phase"]: one for one in facts(file, trained, tested, modules=True)["work"]}
    assert work["forward"]["code"].startswith("loss =") and work["forward"]["needed"] == "yes"
    assert work["validate"]["code"] == "result = test()" and work["validate"]["needed"] == "no"


TEMPLATE = """\
import random
import torch
from torch import nn

{before}
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = 0
kept_values, total, state = [], 0.0, 1.0
while step < 50:
    x = torch.randn(8, 4)
    loss = model(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {line}
    step += 1
{after}
"""


def in_loop(folder: Path, line: str, before: str = "", after: str = "") -> dict[str, Any]:
    file = folder / "loop.py"
    file.write_text(TEMPLATE.format(line=line, before=textwrap.dedent(before), after=after))
    return piece(file, line.splitlines()[0])


def test_a_result_that_decides_about_the_steps_is_needed(tmp_path: Path) -> None:
    assert in_loop(tmp_path, "if float(loss) < 1e-9: break")["needed"] == "yes"
    judge = "def judge(m):\n    return float(m(torch.zeros(1, 4)))\n"
    assert in_loop(tmp_path, "state = judge(model)", judge)["needed"] == "no"
    lowered = "state = judge(model)\n    optimizer.param_groups[0]['lr'] = state"
    assert in_loop(tmp_path, lowered, judge)["needed"] == "yes"


BANK = """\
def embed():
    with torch.no_grad():
        return model(rows)

def mine(anchors, bank):
    return (model(rows[anchors]).detach() @ bank.T).argmax(1)

rows = torch.randn(50, 4)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
waited = 0
for step in range(9):
    if step % 5 == 0: bank = embed()
    far = mine(torch.arange(8), bank)
    loss = (model(rows[:8]) - model(rows[far])).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    error = embed().mean()
    schedule.step(error)
    waited = waited + 1 if error > 1 else 0
    if waited > 3: break
"""


def test_a_pass_without_gradients_feeds_the_loss_or_only_steers(tmp_path: Path) -> None:
    file = tmp_path / "bank.py"
    file.write_text("import torch\nfrom torch import nn\n" + BANK)
    bank = piece(file, "return model(rows)", "bank = embed()", phase="validate", modules=True)
    assert bank["needed"] == "yes" and bank["feeds"]
    judged = piece(file, "return model(rows)", "error = embed()", phase="validate", modules=True)
    assert judged["needed"] == "yes" and "feeds" not in judged, "it lowers the learning rate, and it stops"


def test_what_changes_the_model_is_needed_however_it_gets_there(tmp_path: Path) -> None:
    direct = "def shake(m):\n    for p in m.parameters():\n        p.data.add_(0.1)\n"
    assert in_loop(tmp_path, "shake(model)", direct)["needed"] == "yes"
    nested = direct + "\nclass Helper:\n    def run(self, m):\n        shake(m)\n\nhelper = Helper()\n"
    assert in_loop(tmp_path, "helper.run(model)", nested)["needed"] == "yes"
    assert in_loop(tmp_path, "strange(model)", "from somewhere import strange")["needed"] == "unknown"


def test_an_average_carries_its_old_value_and_is_never_offered_less_often(tmp_path: Path) -> None:
    average = """\
    class Twin:
        def __init__(self, m):
            self.weights = {n: p.detach().clone() for n, p in m.named_parameters()}
        def follow(self, m):
            for n, p in m.named_parameters():
                self.weights[n] = 0.9 * self.weights[n] + 0.1 * p.detach()

    twin = Twin(nn.Linear(4, 1))
    """
    found = in_loop(tmp_path, "twin.follow(model)", average)
    assert found["needed"] == "no" and found["carried"] and found["job"] == "copy" and "guard" not in found


def test_a_change_is_offered_only_where_it_runs(tmp_path: Path) -> None:
    assert in_loop(tmp_path, "print(step, loss.item())")["guard"]["counter"] == "step"
    read_later = in_loop(tmp_path, "value = sorted(x.flatten().tolist())", after="print(value)")
    assert read_later["guard"]["counter"] == "step", "bound in the first round: the counter is 0 there"
    uncounted = LOOP.replace("for step, x in enumerate(batches)", "for x in batches").replace("step, ", "")
    file = tmp_path / "uncounted.py"
    file.write_text(uncounted)
    assert "guard" not in piece(file, "best = copy")


def test_a_name_bound_too_late_is_no_change_that_runs(tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    text = TEMPLATE.format(line="value = sorted(x.flatten().tolist())", before="", after="print(value)")
    file.write_text(
        text.replace("step = 0", "step = 0")
        .replace("    x = torch.randn(8, 4)", "    step += 1\n    x = torch.randn(8, 4)")
        .replace("\n    step += 1\nprint", "\nprint")
    )
    assert "guard" not in piece(file, "value = sorted"), "the counter is 1 when it is first asked"


STRIDES = LOOP.replace("for step, x in enumerate(batches)", "for step in range(0, 36, 4)").replace(
    "    x = prepare(x)", "    x = prepare(batches[step // 4])"
)


def test_what_counts_in_strides_counts_no_steps(tmp_path: Path) -> None:
    """GIVEN `range(0, n, 4)` WHEN something is to be done every 100 steps THEN `step % 100` is not that."""
    file = tmp_path / "strides.py"
    file.write_text(STRIDES)
    assert "guard" not in piece(file, "best = copy")
    file.write_text(STRIDES.replace(", 4)", ", 1)"))
    assert piece(file, "best = copy")["guard"]["counter"] == "step"


def test_lines_under_a_test_for_multiples_say_of_what(tmp_path: Path) -> None:
    saved = "if step % 3 == 0:\n        torch.save(model.state_dict(), 'model.pt')"
    file = tmp_path / "loop.py"

    def guarded(line: str) -> dict[str, Any]:
        file.write_text(TEMPLATE.format(line=line, before="every = 3", after=""))
        return piece(file, "torch.save")

    assert guarded(saved)["guard"]["within"] == 3
    twice = saved.replace("if step % 3 == 0:", "if step % 4 == 0 and step % 6 == 0:")
    assert guarded(twice)["guard"]["within"] == 12
    assert "guard" not in guarded(saved.replace("% 3", "% every")), "of what is not known"
    assert "within" not in guarded("torch.save(model.state_dict(), 'model.pt')")["guard"]


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "gone.py"
    file.write_text(LOOP)
    forget()
    assert read(str(tmp_path / "never.py")) is None
    broken = tmp_path / "broken.py"
    broken.write_text("def (:\n")
    assert read(str(broken)) is None


PLAIN = (
    "phase",
    "share",
    "seconds",
    "steps",
    "steps_seen",
    "hot",
    "file",
    "code",
    "function",
    "guard",
    "hoist",
)


def _values(flow: Flow, node: ast.stmt) -> tuple[bool, bool]:
    return flow.feeds([node]), flow.learns([node])


def statement_facts(file: Path) -> list[tuple[int, str, bool, bool, bool]]:
    """(line, needed, feeds, learnt from, carried) of every statement of a script's training loop."""
    forget()
    source = read(str(file))
    assert source is not None
    flow = Flow(Reader())
    scopes = [source.tree, *(one for one in source.names if isinstance(one, Function))]
    for scope in scopes:
        if any(one.update or one.leads for one in flow.reader.effects(source, scope)):
            flow.add(source, scope)
    return [
        (one.node.lineno, flow.needed([one.node]), *_values(flow, one.node), bool(one.carries))
        for one in flow.effects
    ]


@pytest.mark.parametrize("path", sorted([*SCRIPTS.glob("*.py"), *CORPUS.glob("*.py")]), ids=lambda p: p.stem)
def test_other_names_of_the_author_change_no_fact(path: Path, tmp_path: Path) -> None:
    """GIVEN a script WHEN every name its author chose is replaced THEN every fact is the same."""
    plain, other = renamed(path.read_text(), "loss_scores_ema")
    first, second = tmp_path / "plain.py", tmp_path / "other.py"
    first.write_text(plain)
    second.write_text(other)
    assert statement_facts(first) == statement_facts(second)


def test_names_that_look_like_jobs_decide_nothing(tmp_path: Path) -> None:
    """`previous` contains "iou", `schema` "ema", `lossless` "loss": only the structure decides the facts."""
    plain, other = renamed(LOOP, "topk_validate_log")
    first, second = tmp_path / "one.py", tmp_path / "two.py"
    first.write_text(plain)
    second.write_text(other)
    for line in ("    report(step", "previous =", "best = copy", "norms ="):
        at = line_of(plain, line)
        one = facts(first, ("between", plain.splitlines()[at - 1]))["work"]
        two = facts(second, ("between", other.splitlines()[at - 1]))["work"]
        strip = [{key: value for key, value in item.items() if key not in PLAIN} for item in (*one, *two)]
        assert len(strip) == 2 and strip[0] == strip[1]


GIVEN = """\
import torch
from torch import nn

def summed(gradient, xs):
    total = 0
    for x in xs:
        total = total + gradient(x)
    return total

for step, xs in enumerate(batches):
    found = summed(gradient, xs)
    spread = found.std().item()
    for parameter, one in zip(model.parameters(), found):
        parameter.grad = one / len(xs)
    optimizer.step()
    for parameter in model.parameters():
        parameter.grad = None
"""


def test_what_becomes_a_gradient_is_needed(tmp_path: Path) -> None:
    """GIVEN gradients that are computed and put where the optimizer finds them THEN a step needs them, as it
    needs what `backward()` does."""
    file = tmp_path / "private.py"
    file.write_text(GIVEN)
    made = piece(file, "total = total +", "found = summed(", phase="forward", update="optimizer.step(")
    assert made["needed"] == "yes" and made["job"] == "" and "guard" not in made
    aside = piece(file, "spread = found", phase="forward", update="optimizer.step(")
    assert aside["needed"] == "no"
