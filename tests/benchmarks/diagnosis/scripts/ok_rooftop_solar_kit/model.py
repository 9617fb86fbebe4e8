"""Values, marks and places embedded; encoder; a decoder that writes the whole horizon in one go."""

import math

import torch
from torch import nn


class DataEmbedding(nn.Module):
    def __init__(self, channels, width, dropout, longest=256):
        super().__init__()
        self.values = nn.Conv1d(channels, width, 3, padding=1, padding_mode="circular", bias=False)
        self.marks = nn.Linear(3, width, bias=False)
        place = torch.arange(longest)[:, None]
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        self.register_buffer(
            "places", torch.stack([(place * rate).sin(), (place * rate).cos()], 2).flatten(1)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, marks):
        values = self.values(x.transpose(1, 2)).transpose(1, 2)
        return self.dropout(values + self.marks(marks) + self.places[: x.shape[1]])


class Forecaster(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.pred_len = args.pred_len
        self.enc_embedding = DataEmbedding(args.channels, args.d_model, args.dropout)
        self.dec_embedding = DataEmbedding(args.channels, args.d_model, args.dropout)
        one = dict(
            dim_feedforward=4 * args.d_model, dropout=args.dropout, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(args.d_model, args.n_heads, **one),
            args.e_layers,
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(args.d_model, args.n_heads, **one), args.d_layers
        )
        self.projection = nn.Linear(args.d_model, args.channels)

    def forward(self, x, x_marks, start, y_marks):
        memory = self.encoder(self.enc_embedding(x, x_marks))
        y = self.decoder(self.dec_embedding(start, y_marks), memory)
        return self.projection(y[:, -self.pred_len :])
