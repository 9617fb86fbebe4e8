"""non_blocking=True everywhere — but the loader's batches are not in pinned memory."""

import sys

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

fixed = sys.argv[1:] == ["--fixed"]


class Spectra(Dataset):
    def __init__(self):
        rng = np.random.default_rng(1)
        self.bank = torch.from_numpy(rng.standard_normal((4, 64, 300), dtype=np.float32))

    def __len__(self):
        return 24 * 360

    def __getitem__(self, k):
        return self.bank[k % 4], k % 3


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Conv1d(64, 64, 11, stride=10)
        self.att = nn.MultiheadAttention(64, 4, batch_first=True)
        self.cls = nn.Linear(64, 3)

    def forward(self, s):
        h = self.inp(s).transpose(1, 2)
        h = h + self.att(h, h, h, need_weights=False)[0]
        return self.cls(h.mean(1))


torch.manual_seed(1)
device = torch.device("cuda")
loader = DataLoader(Spectra(), batch_size=24, num_workers=2, pin_memory=fixed, persistent_workers=True)
model = Attend().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(loader))
for spectra, kind in loader:
    spectra, kind = spectra.to(device, non_blocking=True), kind.to(device, non_blocking=True)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(spectra), kind)
    loss.backward()
    optimizer.step()
    scheduler.step()
print("loss", loss.item(), "lr", scheduler.get_last_lr())
