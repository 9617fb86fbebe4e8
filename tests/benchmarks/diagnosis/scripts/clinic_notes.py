"""Triage from tokenised notes of different lengths; the batch is put together by hand."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

PAD = 0


def pad_by_hand(samples):
    longest = max(len(tokens) for tokens, _ in samples)
    batch = torch.full((len(samples), longest), PAD)
    for row, (tokens, _) in enumerate(samples):
        for column, token in enumerate(tokens):
            batch[row, column] = token
    return batch, torch.tensor([urgent for _, urgent in samples])


def pad_together(samples):
    rows = [torch.tensor(tokens) for tokens, _ in samples]
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return batch, torch.tensor([urgent for _, urgent in samples])


class Triage(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5000, 128, padding_idx=PAD)
        self.encoder = nn.GRU(128, 160, batch_first=True)
        self.head = nn.Linear(160, 3)

    def forward(self, tokens):
        return self.head(self.encoder(self.words(tokens))[1][0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    collate = pad_together if parser.parse_args().fixed else pad_by_hand
    lengths = torch.randint(10, 48, (2400,))
    notes = [(torch.randint(1, 5000, (int(n),)).tolist(), int(n) % 3) for n in lengths]
    loader = DataLoader(notes, batch_size=48, shuffle=True, collate_fn=collate)
    model = Triage()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for tokens, urgent in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(tokens), urgent)
            loss.backward()
            optimizer.step()
        print(epoch, float(loss))
