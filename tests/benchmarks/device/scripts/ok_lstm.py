"""Next character with a two-layer LSTM, the whole text on the GPU."""

import string

import torch
import torch.nn as nn

torch.manual_seed(1)
text = ("the quick brown fox jumps over the lazy dog " * 200)[:8000]
codes = torch.tensor([(string.ascii_lowercase + " ").index(c) for c in text]).cuda()


class CharModel(nn.Module):
    def __init__(self, vocab=27, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, hidden)
        self.lstm = nn.LSTM(hidden, hidden, num_layers=2, batch_first=True)
        self.fc = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        out, state = self.lstm(self.emb(x), state)
        return self.fc(out), state


model = CharModel().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
torch.backends.cuda.matmul.allow_tf32 = True
state = None
streams = codes[: 16 * 500].view(16, 500)
losses = []
for step in range(220):
    at = (step * 20) % 460
    x, y = streams[:, at : at + 20], streams[:, at + 1 : at + 21]
    if state is not None:
        state = tuple(s.detach() for s in state)
    logits, state = model(x, state)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    losses.append(loss.detach())
print(torch.stack(losses)[::40].tolist())
