"""Trains, and looks at the test set now and then: a few percent of the time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)


def loader_of(rows, batch, **more):
    x = torch.randn(rows, 32)
    return DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=batch, pin_memory=True, **more)


train_loader, test_loader = loader_of(32 * 120, 32, shuffle=True), loader_of(64 * 4, 64)
model = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def test():
    model.eval()
    right = torch.zeros((), device="cuda")
    with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16):
        for x, y in test_loader:
            right += (model(x.cuda(non_blocking=True)).argmax(1) == y.cuda(non_blocking=True)).sum()
    model.train()
    return right.item() / 256


for epoch in range(2):
    for x, y in train_loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "accuracy", test())
