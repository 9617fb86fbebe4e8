"""A compiled model (any backend will do here) on synthetic sensor data."""

import torch
from torch import nn


class Sensor(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(6, 32, 5, padding=2)
        self.norm = nn.BatchNorm1d(32)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).mean(-1))


torch.manual_seed(6)
plain = Sensor().cuda()
model = torch.compile(plain, backend="eager")
optimizer = torch.optim.Adam(plain.parameters(), lr=1e-3, fused=True)
windows = torch.randn(640, 6, 50, device="cuda")
states = torch.randint(4, (640,), device="cuda")
for epoch in range(12):
    order = torch.randperm(640, device="cuda")
    for rows in order.split(32):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(windows[rows]), states[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
print("loss", loss.item())
