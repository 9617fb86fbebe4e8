"""No workers, and none needed: a batch is ready long before the GPU is done with the last one."""

import time

import torch
from torch import nn, optim
from torch.utils import data

torch.manual_seed(0)


class Readings(data.Dataset):
    def __init__(self, length):
        self.length = length
        self.table = torch.randn(50, 40)

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        time.sleep(0.0006)
        return self.table[i % 50], self.table[i % 50, :2]


loader = data.DataLoader(Readings(12 * 250), batch_size=12, pin_memory=True)
model = nn.Sequential(nn.Linear(40, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 2)).cuda()
optimizer = optim.SGD(model.parameters(), lr=0.01)
for x, y in loader:
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(x.cuda(non_blocking=True))
        loss = nn.functional.mse_loss(out.float(), y.cuda(non_blocking=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
