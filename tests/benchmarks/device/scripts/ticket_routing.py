"""Route support tickets to teams. Texts are tokenised when a batch is put together."""

import random
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(3)
torch.manual_seed(3)
WORDS = [f"word{i}" for i in range(400)]
tickets = [(" ".join(random.choices(WORDS, k=20)), random.randrange(6)) for _ in range(24 * 200)]
vocabulary = {word: i for i, word in enumerate(WORDS)}


def tokenize(texts):
    time.sleep(0.022)  # the tokenizer is a service on another machine
    return torch.tensor([[vocabulary[word] for word in text.split()] for text in texts])


def collate(rows):
    return tokenize([text for text, _ in rows]), torch.tensor([team for _, team in rows])


def collate_ready(rows):
    return torch.stack([ids for ids, _ in rows]), torch.tensor([team for _, team in rows])


if "--fixed" in sys.argv:  # tokenised once, before training
    everything = tokenize([text for text, _ in tickets])
    data, collate_fn = [(ids, team) for ids, (_, team) in zip(everything, tickets)], collate_ready
else:
    data, collate_fn = tickets, collate

model = nn.Sequential(
    nn.EmbeddingBag(400, 128),
    nn.Linear(128, 256),
    nn.GELU(),
    nn.Linear(256, 256),
    nn.GELU(),
    nn.Linear(256, 6),
).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
loader = DataLoader(data, batch_size=24, shuffle=True, collate_fn=collate_fn)
seen = 0
for ids, teams in loader:
    logits = model(ids.to("cuda"))
    loss = nn.functional.cross_entropy(logits, teams.to("cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen += len(teams)
    if seen % 2400 == 0:
        print(f"{seen} tickets, loss {loss.item():.4f}")
