"""Frames are folded to a quarter, encoded, and decoded with attention; a second head is for CTC."""

import math

import torch
from torch import nn


def positions(length, width):
    place = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
    return torch.stack([place.sin(), place.cos()], 2).flatten(1)


class SpeechTransformer(nn.Module):
    def __init__(self, bands, symbols, width=96, heads=4, longest=640):
        super().__init__()
        self.fold = nn.Sequential(
            nn.Conv1d(bands, width, 3, 2, 1), nn.ReLU(), nn.Conv1d(width, width, 3, 2, 1), nn.ReLU()
        )
        one = dict(dim_feedforward=3 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, heads, **one),
            2,
            nn.LayerNorm(width),
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(width, heads, **one), 1, nn.LayerNorm(width)
        )
        self.embed = nn.Embedding(symbols, width, padding_idx=0)
        self.ctc, self.out = nn.Linear(width, symbols), nn.Linear(width, symbols)
        self.register_buffer("places", positions(longest, width))
        self.register_buffer("causal", torch.ones(longest, longest, dtype=torch.bool).triu(1))

    def forward(self, source, source_lengths, prev_output):
        x = self.fold(source.transpose(1, 2)).transpose(1, 2)
        lengths = (source_lengths + 3) // 4
        x = x + self.places[: x.shape[1]]
        hidden = torch.arange(x.shape[1])[None] >= lengths[:, None]
        memory = self.encoder(x, src_key_padding_mask=hidden)
        n = prev_output.shape[1]
        y = self.embed(prev_output) + self.places[:n]
        y = self.decoder(y, memory, tgt_mask=self.causal[:n, :n], memory_key_padding_mask=hidden)
        return self.out(y), self.ctc(memory), lengths
