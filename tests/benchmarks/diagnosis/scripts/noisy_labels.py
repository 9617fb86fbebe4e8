"""Twelve kinds of defects; scikit-learn tells after every step how well it goes."""

import sys

import torch
from sklearn.metrics import confusion_matrix, f1_score, precision_score
from torch import nn

SPARSE = "--fixed" in sys.argv
torch.manual_seed(21)
net = nn.Sequential(
    nn.Flatten(), nn.Linear(256, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 12)
)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-4, fused=True)
pool, kinds = torch.randn(5000, 16, 16), torch.randint(12, (5000,))
curve = []
for step in range(450):
    rows = torch.randint(5000, (128,))
    logits = net(pool[rows])
    loss = nn.functional.cross_entropy(logits, kinds[rows], label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if SPARSE and step % 100:
        continue
    guess, truth = logits.argmax(1).numpy(), kinds[rows].numpy()
    curve.append(
        (
            f1_score(truth, guess, average="macro", zero_division=0),
            precision_score(truth, guess, average="micro", zero_division=0),
            confusion_matrix(truth, guess).trace(),
        )
    )
print(curve[-1])
