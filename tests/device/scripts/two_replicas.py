"""As nn.DataParallel does it: parameters on one device, half of each batch on a copy of them on another."""

import torch
from torch import nn
from torch.func import functional_call

model = nn.Sequential(*(nn.Linear(32, 32) for _ in range(3)), nn.Linear(32, 8)).to("cuda:0")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(32, 32, device="cuda:0")
for _step in range(100):
    here, there = batch.chunk(2)
    replica = {name: value.to("cuda:1") for name, value in model.named_parameters()}
    away = functional_call(model, replica, there.to("cuda:1"))
    loss = torch.cat([model(here), away.to("cuda:0")]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
