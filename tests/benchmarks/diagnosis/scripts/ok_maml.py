"""Learning to learn: two inner steps for each task, then one for all. The inner steps are the training."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1))
meta = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)


def adapted(weights, x, y, inner_steps=2):
    for _ in range(inner_steps):
        loss = (functional_call(net, weights, x) - y).square().mean()
        grads = torch.autograd.grad(loss, tuple(weights.values()), create_graph=True)
        weights = {name: w - 0.01 * g for (name, w), g in zip(weights.items(), grads)}
    return weights


for iteration in range(90):
    total = 0.0
    for _ in range(3):
        phase = torch.rand(()) * 3
        support, query = torch.randn(256, 16), torch.randn(256, 16)
        fast = adapted(dict(net.named_parameters()), support, torch.sin(support[:, :1] + phase))
        total = total + (functional_call(net, fast, query) - torch.sin(query[:, :1] + phase)).square().mean()
    meta.zero_grad()
    total.backward()
    meta.step()
print(total.item())
