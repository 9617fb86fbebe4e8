"""Papers and citations: two graph layers on the full graph, dominated by gathers."""

import torch
from torch import nn

torch.manual_seed(8)
torch.set_float32_matmul_precision("high")
N, E, F = 20_000, 120_000, 64
src, dst = torch.randint(N, (E,)).cuda(), torch.randint(N, (E,)).cuda()
degree = torch.bincount(dst.cpu(), minlength=N).clamp(min=1).float().cuda().unsqueeze(1)


class Sage(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.me, self.them = nn.Linear(a, b), nn.Linear(a, b, bias=False)

    def forward(self, x):
        gathered = torch.zeros(N, x.shape[1], device=x.device).index_add(0, dst, x.index_select(0, src))
        return self.me(x) + self.them(gathered / degree)


layers = nn.ModuleList([Sage(F, F), Sage(F, 10)]).cuda()
x, y = torch.zeros(N, F, device="cuda"), torch.zeros(N, dtype=torch.long, device="cuda")
optimizer = torch.optim.Adam(layers.parameters(), lr=0.01, fused=True)
for epoch in range(210):
    h = torch.relu(layers[0](x))
    loss = nn.functional.cross_entropy(layers[1](h), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (epoch + 1) % 100 == 0:
        print(epoch + 1, loss.item())
