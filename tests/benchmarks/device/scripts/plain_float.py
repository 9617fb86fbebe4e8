"""A transformer encoder trained in plain float32."""

import sys

import torch
from torch import nn

amp = "--fixed" in sys.argv
torch.manual_seed(0)
encoder = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True),
    num_layers=3,
    enable_nested_tensor=False,
).cuda()
head = nn.Linear(256, 2).cuda()
parameters = [*encoder.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-4)
tokens = torch.randn(64, 32, 128, 256, device="cuda")
labels = torch.randint(2, (64, 32), device="cuda")
for step in range(130):
    x, y = tokens[step % 64], labels[step % 64]
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=amp):
        loss = nn.functional.cross_entropy(head(encoder(x).mean(1)), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 50 == 0:
        print(step, loss.item())
