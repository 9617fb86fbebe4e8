"""float16 with a GradScaler, whose check of the gradients is the one wait in a step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(40)
data = TensorDataset(torch.randn(24 * 110, 50), torch.randn(24 * 110, 5))
loader = DataLoader(
    data, batch_size=24, shuffle=True, num_workers=1, pin_memory=True, persistent_workers=True
)
model = nn.Sequential(
    nn.Linear(50, 100), nn.Hardswish(), nn.Linear(100, 100), nn.Hardswish(), nn.Linear(100, 5)
)
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
scaler = torch.amp.GradScaler("cuda")
for epoch in range(2):
    for x, y in loader:
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(epoch, loss.item(), scaler.get_scale())
