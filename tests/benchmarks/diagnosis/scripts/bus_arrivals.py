"""When does the bus come: a recurrent cell called once for every minute."""

import sys

import torch
from torch import nn

MINUTES, STOPS, HIDDEN = 60, 12, 64


class Arrivals(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole = whole
        if whole:
            self.rnn = nn.GRU(STOPS, HIDDEN, batch_first=True)
        else:
            self.cell = nn.GRUCell(STOPS, HIDDEN)
        self.head = nn.Linear(HIDDEN, STOPS)

    def forward(self, minutes):
        if self.whole:
            states, _ = self.rnn(minutes)
            return self.head(states)
        state = minutes.new_zeros(minutes.shape[0], HIDDEN)
        outputs = []
        for t in range(minutes.shape[1]):
            state = self.cell(minutes[:, t], state)
            outputs.append(self.head(state))
        return torch.stack(outputs, dim=1)


torch.manual_seed(8)
net = Arrivals("--fixed" in sys.argv)
opt = torch.optim.Adam(net.parameters(), fused=True)
data = torch.randn(512, MINUTES + 1, STOPS)
for step in range(220):
    batch = data[torch.randperm(512)[:32]]
    loss = nn.functional.l1_loss(net(batch[:, :-1]), batch[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
