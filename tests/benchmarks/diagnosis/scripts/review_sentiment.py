"""Sentiment from bags of word embeddings; reviews differ in length."""

import argparse
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

VOCABULARY = 5000


def make_reviews(count):
    rng = random.Random(3)
    return [
        ([rng.randrange(1, VOCABULARY) for _ in range(rng.randint(40, 120))], rng.randint(0, 1))
        for _ in range(count)
    ]


def pad_batch(reviews):
    longest = max(len(words) for words, _ in reviews)
    batch = torch.zeros(len(reviews), longest, dtype=torch.long)
    for row, (words, _) in enumerate(reviews):
        for column, word in enumerate(words):
            batch[row, column] = word
    labels = torch.tensor([label for _, label in reviews])
    return batch, labels


def pad_batch_fast(reviews):
    words = pad_sequence([torch.tensor(words) for words, _ in reviews], batch_first=True)
    return words, torch.tensor([label for _, label in reviews])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 64, padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2))

    def forward(self, words):
        return self.mlp(self.embed(words).mean(1))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--fixed", action="store_true")
    fixed = args.parse_args().fixed
    loader = DataLoader(
        make_reviews(1600), batch_size=32, shuffle=True, collate_fn=pad_batch_fast if fixed else pad_batch
    )
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(6):
        total = 0.0
        for words, labels in loader:
            optimizer.zero_grad()
            loss = loss_function(model(words), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(epoch, float(total) / len(loader))


main()
