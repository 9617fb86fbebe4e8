"""Speech commands with a close eye on the gradients: the norm of every one, at every step."""

import sys

import torch
import torch.nn as nn

torch.manual_seed(9)
COMMANDS = 12
watch = "--fixed" not in sys.argv


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1 = nn.Conv1d(c, c, 3, padding=1)
        self.conv2 = nn.Conv1d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.conv2(torch.relu(self.conv1(x)))


def gradient_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.grad is not None:
            norms[name] = p.grad.data.norm(2).item()
    return norms


net = nn.Sequential(
    nn.Conv1d(1, 24, 9, stride=4),
    *[Residual(24) for _ in range(8)],
    nn.AdaptiveAvgPool1d(1),
    nn.Flatten(),
    nn.Linear(24, COMMANDS),
).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
log = []
for step in range(400):
    wave = torch.randn(16, 1, 160, device="cuda")
    target = torch.randint(COMMANDS, (16,), device="cuda")
    loss = nn.functional.cross_entropy(net(wave), target)
    optimizer.zero_grad()
    loss.backward()
    if watch:
        log.append(gradient_norms(net))
    else:
        total = nn.utils.get_total_norm([p.grad for p in net.parameters()])
        log.append(total)
    optimizer.step()
print(len(log), "steps watched")
