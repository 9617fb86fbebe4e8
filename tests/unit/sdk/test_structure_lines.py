"""What the source says about a line."""

from __future__ import annotations

from pathlib import Path

from sdk.structure.lines import Lines
from sdk.structure.reader import Reader
from sdk.structure.source import forget
from tests.unit.sdk.watched import line_of, piece

SOURCE = """\
import torch

class Net(Module):
    def forward(self, ids):
        length = ids.size(1)
        table = torch.zeros(length, self.width)
        table[:, 0] = torch.sin(torch.arange(length))
        noise = torch.randn(length)
        hidden = self.embed(ids) + table
        state = torch.zeros_like(hidden)
        return hidden

@torch.no_grad()
def judge(net):
    return net(1)

def train():
    net(2)
    with torch.inference_mode():
        net(3)
"""


def test_lines_of_a_forward_that_use_only_sizes(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    forget()
    assert [at for at in range(5, 12) if Lines(Reader()).fixed(str(file), at)] == [6, 7]
    assert not Lines(Reader()).fixed(str(file), 18)


def test_lines_without_gradients(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    forget()
    assert [at for at in range(1, 21) if Lines(Reader()).without_gradients(str(file), at)] == [14, 15, 19, 20]
    assert not Lines(Reader()).without_gradients(str(tmp_path / "none.py"), 1)


NUMPY = """\
import numpy as np
import torch

def drawn(rows, steps, weights):
    others = np.setdiff1d(np.arange(steps), 3)
    rows.append(torch.from_numpy(np.random.choice(others, 5)))
    scaled = torch.relu(weights) * float(np.sqrt(5))
    total = weights.sum()
    return rows, scaled, total
"""


def test_lines_that_compute_with_numpy_record_no_gradient(tmp_path: Path) -> None:
    """GIVEN lines of NumPy alone, with torch beside it, and of torch THEN only the first record nothing."""
    file = tmp_path / "drawn.py"
    file.write_text(NUMPY)
    forget()
    assert [at for at in range(5, 10) if Lines(Reader()).in_numpy(str(file), at)] == [5, 6]


CROWDED = """\
import torch

class Block(torch.nn.Module):
    def forward(self, x):
        n = x.size(1); mask = torch.ones(n, n).triu(1); y = self.attend(x, mask)
        return y

def train(model, batches, optimizer):
    for x in batches:
        y = augment(x); print(y.shape)
        loss = model(y)
        loss.backward(); optimizer.step()
"""


def test_the_time_of_a_line_with_several_statements_belongs_to_none_of_them(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(CROWDED)
    forget()
    lines = Lines(Reader())
    assert not lines.fixed(str(file), line_of(CROWDED, "mask = "))
    assert lines.library_call(str(file), line_of(CROWDED, "augment(x)")) == ""


def test_a_line_is_needed_if_one_of_its_statements_is(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(CROWDED)
    made = piece(file, "y = augment(x); print", phase="other")
    assert made["needed"] == "yes" and made["job"] == "" and "guard" not in made


TAKEN = """\
import torch
from torch.func import functional_call, grad

def surgery(losses, weights):
    for loss in losses:
        found = torch.autograd.grad(
            loss, weights, retain_graph=True
        )
        project(found)
    out = functional_call(losses, weights)
    return grad(torch.sin)
"""


def test_who_takes_gradients_makes_a_pass(tmp_path: Path) -> None:
    file = tmp_path / "taken.py"
    file.write_text(TAKEN)
    forget()
    assert [at for at in range(4, 12) if Lines(Reader()).derives(str(file), at)] == [6, 7, 8, 11]
