"""Which opening is it? A report of precision and recall for every batch."""

import sys

import torch
from sklearn.metrics import classification_report, confusion_matrix
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

quiet = "--fixed" in sys.argv
boards = torch.randn(12800, 768)
labels = torch.randint(0, 24, (12800,))
net = nn.Sequential(nn.Linear(768, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 24))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
history = []


def summary(logits, truth):
    guess = logits.argmax(1)
    table = classification_report(truth, guess, output_dict=True, zero_division=0)
    return table["macro avg"]["f1-score"], confusion_matrix(truth, guess).trace()


for epoch in range(2):
    for number, (x, y) in enumerate(DataLoader(TensorDataset(boards, labels), batch_size=64, shuffle=True)):
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if not quiet or number == 0:
            history.append(summary(logits.detach(), y))
print(history[-1])
