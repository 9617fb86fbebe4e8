"""Fine-tuning with four micro-batches to a step; the loader is ready before it is asked."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __len__(self):
        return 8 * 4 * 110

    def __getitem__(self, i):
        time.sleep(0.0004)
        return torch.full((20,), i % 100), i % 3


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.ff = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        self.head = nn.Linear(64, 3)

    def forward(self, ids):
        x = self.embed(ids)
        return self.head((x + self.ff(x)).mean(1))


torch.manual_seed(5)
model = Classifier().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=20)
loader = DataLoader(
    Sentences(), batch_size=8, shuffle=True, num_workers=1, pin_memory=True, prefetch_factor=4
)
optimizer.zero_grad()
for i, (ids, y) in enumerate(loader, 1):
    ids, y = ids.cuda(non_blocking=True), y.cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(ids), y) / 4
    loss.backward()
    if i % 4 == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        warmup.step()
    if i % 160 == 0:
        print(i // 4, loss.item() * 4)
