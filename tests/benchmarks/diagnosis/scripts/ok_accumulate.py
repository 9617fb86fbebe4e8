"""Text classifier with gradient accumulation, a checkpoint and a validation per epoch."""

import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ACCUMULATE = 4


class Documents(Dataset):
    def __init__(self, count, length=128):
        self.tokens = torch.randint(0, 2000, (count, length))
        self.labels = self.tokens[:, 0] % 4

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return self.tokens[i], self.labels[i]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(2000, 96)
        self.conv = nn.Conv1d(96, 128, 5, padding=2)
        self.out = nn.Linear(128, 4)

    def forward(self, tokens):
        return self.out(torch.relu(self.conv(self.embed(tokens).transpose(1, 2))).amax(-1))


def main():
    train_loader = DataLoader(Documents(1536), batch_size=32, shuffle=True)
    valid_loader = DataLoader(Documents(128), batch_size=64)
    model, loss_fn = Reader(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    path = os.path.join(tempfile.mkdtemp(), "model.pt")
    for epoch in range(4):
        model.train()
        for i, (tokens, labels) in enumerate(train_loader):
            (loss_fn(model(tokens), labels) / ACCUMULATE).backward()
            if (i + 1) % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            hits = sum((model(tokens).argmax(1) == labels).sum() for tokens, labels in valid_loader)
        torch.save(model.state_dict(), path)
        print(f"epoch {epoch}: accuracy {int(hits) / 128:.3f}")


if __name__ == "__main__":
    main()
