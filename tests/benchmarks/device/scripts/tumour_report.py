"""Tumour grading; precision, recall and a confusion matrix after every batch."""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

every = 40 if "--fixed" in sys.argv else 1
torch.manual_seed(8)
GRADES = 4


def confusion_matrix(truth, guess):
    matrix = np.zeros((GRADES, GRADES), dtype=int)
    for t, g in zip(truth, guess):
        matrix[t, g] += 1
    return matrix


def classification_report(truth, guess, probabilities):
    matrix = confusion_matrix(truth, guess)
    report = {}
    for grade in range(GRADES):
        right = matrix[grade, grade]
        report[f"precision/{grade}"] = right / max(matrix[:, grade].sum(), 1)
        report[f"recall/{grade}"] = right / max(matrix[grade].sum(), 1)
        order = np.argsort(-probabilities[:, grade])
        for threshold in np.linspace(0, 1, 60):
            chosen = probabilities[order, grade] >= threshold
            report[f"roc/{grade}/{threshold:.2f}"] = (chosen & (truth[order] == grade)).mean()
    return report


data = TensorDataset(torch.randn(32 * 75, 40), torch.randint(GRADES, (32 * 75,)))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Linear(40, 200), nn.ReLU(), nn.Dropout(0.2), nn.Linear(200, 100), nn.ReLU(), nn.Linear(100, GRADES)
)
model = model.cuda()
optimizer = torch.optim.Adam(model.parameters())
started, step = time.time(), 0
for epoch in range(5):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % every == 0:
            probabilities = out.softmax(1).detach().cpu().numpy()
            report = classification_report(y.cpu().numpy(), probabilities.argmax(1), probabilities)
    print(f"epoch {epoch}: {time.time() - started:.1f} s")
