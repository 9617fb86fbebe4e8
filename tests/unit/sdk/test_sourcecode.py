"""What the source says about a line."""

from __future__ import annotations

from pathlib import Path

from sdk.place import forget_source
from sdk.sourcecode import fixed_line, without_gradients
from sdk.stacks import Frame

SOURCE = """\
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
    forget_source()
    assert [at for at in range(3, 10) if fixed_line(Frame(str(file), at, "forward"))] == [4, 5]
    assert not fixed_line(Frame(str(file), 16, "train"))


def test_lines_without_gradients(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    forget_source()
    assert [at for at in range(1, 19) if without_gradients(Frame(str(file), at, "f"))] == [12, 13, 17, 18]
    assert not without_gradients(Frame(str(tmp_path / "none.py"), 1, "f"))
