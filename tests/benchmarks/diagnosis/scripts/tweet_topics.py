"""Topics of short messages: words become numbers when the batch is put together."""

import random
import re
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(2)
WORDS = ["".join(random.choices("abcdefghijklmnop", k=random.randint(3, 9))) for _ in range(3000)]
TEXTS = [
    (" ".join(random.choices(WORDS, k=random.randint(20, 60))) + "!", random.randrange(6))
    for _ in range(9000)
]
INDEX = {word: i + 1 for i, word in enumerate(WORDS)}


def to_ids(text):
    return [INDEX.get(token, 0) for token in re.findall(r"[a-z]+", text.lower())]


if "--fixed" in sys.argv:
    ROWS = [(torch.tensor((to_ids(text) + [0] * 60)[:60]), label) for text, label in TEXTS]
    collate = None
else:
    ROWS = TEXTS

    def collate(rows):
        ids = torch.zeros(len(rows), 60, dtype=torch.long)
        for i, (text, _) in enumerate(rows):
            for j, number in enumerate(to_ids(text)[:60]):
                ids[i, j] = number
        return ids, torch.tensor([label for _, label in rows])


class Topics(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(3001, 64)
        self.mix = nn.Conv1d(64, 128, 3, padding=1)
        self.out = nn.Linear(128, 6)

    def forward(self, ids):
        return self.out(self.mix(self.words(ids).transpose(1, 2)).relu().amax(2))


net = Topics()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
for epoch in range(2):
    for ids, labels in DataLoader(ROWS, 64, shuffle=True, collate_fn=collate):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(ids), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
