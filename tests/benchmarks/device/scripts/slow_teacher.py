"""Mean teacher: the teacher follows the student, one parameter after the other."""

import copy
import sys

import torch
from torch import nn

batched = "--fixed" in sys.argv
torch.manual_seed(19)


class Net(nn.Module):
    def __init__(self, depth=18, d=40):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"lin": nn.Linear(d, d), "norm": nn.LayerNorm(d)}) for _ in range(depth)
        )
        self.head = nn.Linear(d, 10)

    def forward(self, x):
        for block in self.blocks[::6]:
            x = x + torch.relu(block["lin"](block["norm"](x)))
        return self.head(x)


def follow(teacher, student, decay=0.99):
    if batched:
        torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 1 - decay)
        return
    state = student.state_dict()
    for name, value in teacher.state_dict().items():
        value.copy_(decay * value + (1 - decay) * state[name])


student = Net().cuda()
teacher = copy.deepcopy(student).requires_grad_(False)
used = [p for i, b in enumerate(student.blocks) if i % 6 == 0 for p in b.parameters()]
optimizer = torch.optim.SGD([*used, *student.head.parameters()], lr=0.01)
for step in range(1100):
    x = torch.randn(32, 40, device="cuda")
    with torch.no_grad():
        wanted = teacher(x).softmax(1)
    loss = nn.functional.cross_entropy(student(x + 0.1 * torch.randn_like(x)), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        follow(teacher, student)
print("loss", loss.item())
