"""An average of the weights after every step, an evaluation every tenth."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(16, 32, device="cuda"), torch.randint(0, 4, (16,), device="cuda")
for step in range(30):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    ema.update_parameters(model)
    if step % 10 == 9:
        ema.eval()
        with torch.no_grad():
            right = sum((ema(x).argmax(1) == y).sum() for _batch in range(5))
        print("accuracy", right.item() / 80)
