"""A recurrent model learns to add two marked numbers of a sequence."""

import torch
from torch import nn

torch.manual_seed(0)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 16, batch_first=True)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


model = Adder().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
losses = []
for _step in range(60):
    x = torch.rand(16, 6, 2, device="cuda")
    loss = nn.functional.mse_loss(model(x), x[:, :, 0].sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.detach())
print("loss", losses[0].item(), losses[-1].item())
