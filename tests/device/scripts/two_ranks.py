"""Two ranks of DistributedDataParallel (torchrun). "device": the second is late, with twice the work; "even":
it is not."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

late = sys.argv[1]
dist.init_process_group("nccl")
rank, device = dist.get_rank(), torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)


class Shard(Dataset):
    def __len__(self):
        return 8 * 150

    def __getitem__(self, item):
        return torch.full((32,), item % 7 / 7.0)


passes = 2 if late == "device" and rank == 1 else 1
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to(device)
model = DistributedDataParallel(net, device_ids=[device.index])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, batch in enumerate(DataLoader(Shard(), batch_size=8)):
    inputs = batch.to(device)
    loss = model(inputs).square().mean()
    for _ in range(passes - 1):
        loss = loss + net(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, round(loss.item(), 4))
dist.destroy_process_group()
