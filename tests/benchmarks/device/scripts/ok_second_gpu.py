"""The same as everywhere, on cuda:1."""

import torch
from torch import nn

device = torch.device("cuda:1")
torch.manual_seed(0)


class Mixer(nn.Module):
    def __init__(self, tokens=16, width=48):
        super().__init__()
        self.across = nn.Linear(tokens, tokens)
        self.within = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.out = nn.Linear(width, 6)

    def forward(self, x):
        x = x + self.across(x.transpose(1, 2)).transpose(1, 2)
        return self.out((x + self.within(x)).mean(1))


model = Mixer().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
patches = torch.randn(256, 16, 48, device=device)
kinds = torch.randint(6, (256,), device=device)
for step in range(250):
    rows = torch.randint(256, (20,), device=device)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(patches[rows]), kinds[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
