"""Which lines are a pass of a model: by who called them, what they are made of, whose loop they are in."""

from __future__ import annotations

from pathlib import Path

from tests.unit.sdk.watched import facts, line_of, piece

SCRIPTS = Path(__file__).parents[2] / "integration" / "advice" / "scripts"
CORPUS = Path(__file__).parents[2] / "benchmarks" / "diagnosis" / "scripts"

SAMPLING = """\
import copy
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return self.layer(x)

net = Net()
average = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

@torch.no_grad()
def draw():
    x = torch.randn(8, 4)
    for _ in range(9):
        x = average(x)
    return x

for step in range(50):
    loss = net(torch.randn(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        images = draw()
        torch.save(images, "images.pt")
"""


def test_lines_of_a_model_learn_or_not_by_who_called_them(tmp_path: Path) -> None:
    """GIVEN a model's line that the profile has seen with gradients WHEN another pass runs it without THEN
    that pass is no part of what is learnt."""
    file = tmp_path / "sampling.py"
    file.write_text(SAMPLING)
    at = line_of(SAMPLING, "return self.layer(x)")
    trained = ("forward", "return self.layer(x)", "loss = net(")
    drawn = ("between", "return self.layer(x)", "x = average(x)", "images = draw()")
    seen = {(str(file), at): True}
    work = {one["phase"]: one for one in facts(file, trained, drawn, modules=True, grad=seen)["work"]}
    assert work["forward"]["grad"] and work["between"]["no_grad"]
    assert work["between"]["job"] == "validate" and work["between"]["needed"] != "yes"


BY_HAND = """\
import torch

x, y = torch.rand(90, 4), torch.rand(90, 1)
w = (torch.randn(4, 1) * 0.1).requires_grad_()
b = torch.zeros(1, requires_grad=True)
for step in range(50):
    table = x.cos()
    guess = torch.relu(table @ w + b)
    loss = ((guess - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad = None
"""


def test_a_model_of_plain_tensors_is_a_model(tmp_path: Path) -> None:
    file = tmp_path / "by_hand.py"
    file.write_text(BY_HAND)
    assert piece(file, "guess = torch.relu(", phase="forward").get("grad")
    assert not piece(file, "table = x.cos()", phase="forward").get("grad"), "made of data alone"


FITTED = """\
import lightning as L

def main():
    # backward( is in the library
    trainer = L.Trainer()
    trainer.fit(Task(), loader)

if __name__ == "__main__":
    main()
"""


def test_a_call_of_a_librarys_loop_leads_to_the_update_and_is_no_work_of_its_own(tmp_path: Path) -> None:
    """GIVEN a loop inside a library, started two functions deep WHEN forward and backward were seen below it
    THEN nothing in the script counts as work beside the model."""
    file = tmp_path / "fit.py"
    file.write_text(FITTED)
    stack = "trainer.fit(", "    main()"
    found = facts(file, ("backward", *stack), ("optimizer", *stack), ("forward", *stack), ("other", *stack))
    assert not found.get("work"), found["work"]


DIRECT = """\
import torch

class Layer(torch.nn.Linear):
    def forward(self, x):
        return torch.relu(torch.mm(x, self.weight.T))

    def fit(self, good, bad):
        optimizer = torch.optim.Adam(self.parameters())
        for _ in range(100):
            high = self.forward(good).mean(1)
            low = self.forward(bad).mean(1)
            loss = (low - high).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

Layer(4, 4).fit(torch.ones(2, 4), torch.zeros(2, 4))
"""


def test_a_direct_call_of_forward_is_a_pass_of_the_model(tmp_path: Path) -> None:
    """No hook of torch's sees it: the name `forward`, which is torch's own, tells."""
    file = tmp_path / "layers.py"
    file.write_text(DIRECT)
    found = piece(file, "return torch.relu", "low = self", phase="other")
    assert found["module"] and found["line"] == line_of(DIRECT, "low = self")


CONTRASTED = """\
import torch
from torch import nn

class Contrast(nn.Module):
    def forward(self, x, other):
        q = self.query(x)
        with torch.no_grad():
            k = self.key(other)
        return q @ k.T

for x, other in batches:
    scores = model(x, other); loss = scores.mean(); loss.backward(); optimizer.step()
"""


def test_what_a_model_does_without_gradients_is_no_evaluation(tmp_path: Path) -> None:
    """GIVEN a model with an encoder that is not trained, called on the very line of the update THEN its pass
    is part of the model."""
    file = tmp_path / "contrast.py"
    file.write_text(CONTRASTED)
    found = facts(file, ("forward", "k = self.key(other)", "loss.backward()"), modules=True)["work"]
    passes = [one for one in found if one["phase"] == "forward"]
    assert [one["job"] for one in passes] == [""] and passes[0]["in_forward"]
