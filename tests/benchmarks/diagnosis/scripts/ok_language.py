"""A language model over characters, state carried on from piece to piece; looked at once an epoch."""

import torch
from torch import nn

torch.manual_seed(0)
text = torch.randint(0, 64, (24, 6400))


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 96)
        self.lstm = nn.LSTM(96, 192, 2, batch_first=True)
        self.out = nn.Linear(192, 64)

    def forward(self, letters, state=None):
        hidden, state = self.lstm(self.embed(letters), state)
        return self.out(hidden), state


model = Letters()
optimizer = torch.optim.Adam(model.parameters(), 2e-3, fused=True)
for epoch in range(2):
    state = None
    for start in range(0, 6400 - 80, 80):
        piece, following = text[:, start : start + 80], text[:, start + 1 : start + 81]
        logits, state = model(piece, state)
        state = tuple(part.detach() for part in state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(
            epoch,
            nn.functional.cross_entropy(model(text[:, :80])[0].flatten(0, 1), text[:, 1:81].flatten()).item(),
        )
    model.train()
