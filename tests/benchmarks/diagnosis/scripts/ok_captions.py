"""Captions for small pictures: a convolutional encoder, nn.TransformerDecoder, and decoding that keeps what it read."""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

BEGIN, END = 1, 2


@dataclasses.dataclass
class Config:
    words: int = 60
    length: int = 16
    width: int = 96
    heads: int = 4
    layers: int = 2
    batch: int = 48
    epochs: int = 4
    lr: float = 7e-4
    smoothing: float = 0.1


class Scenes(Dataset):
    """Blobs in a picture, and words that say where they are."""

    def __init__(self, config, count, seed):
        maker = torch.Generator().manual_seed(seed)
        words = torch.randint(3, config.words, (count, config.length - 2), generator=maker)
        lengths = torch.randint(6, config.length - 2, (count, 1), generator=maker)
        words[torch.arange(config.length - 2)[None] > lengths] = 0
        words.scatter_(1, lengths, END)
        self.captions = torch.cat([torch.full((count, 1), BEGIN), words], 1)
        basis = torch.randn(config.words, 3 * 32 * 32, generator=maker) / 4
        basis[:3] = 0
        pictures = torch.stack([basis[row].sum(0) for row in self.captions])
        self.pictures = pictures.reshape(count, 3, 32, 32) + 0.1 * torch.randn(
            count, 3, 32, 32, generator=maker
        )

    def __len__(self):
        return len(self.captions)

    def __getitem__(self, i):
        return self.pictures[i], self.captions[i]


class CachedDecoder(nn.TransformerDecoder):
    """Asked for one more word, it works on that word alone and keeps what the layers saw before."""

    def extend(self, word, memory, seen):
        for number, layer in enumerate(self.layers):
            seen[number] = word if seen[number] is None else torch.cat([seen[number], word], 1)
            word = layer.norm1(
                word + layer.self_attn(word, seen[number], seen[number], need_weights=False)[0]
            )
            word = layer.norm2(word + layer.multihead_attn(word, memory, memory, need_weights=False)[0])
            word = layer.norm3(word + layer.linear2(layer.activation(layer.linear1(word))))
        return word


class Captioner(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.see = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1), nn.GELU(), nn.Conv2d(32, 64, 3, 2, 1), nn.GELU(),
            nn.Conv2d(64, config.width, 3, 2, 1), nn.Flatten(2),
        )  # fmt: skip
        self.embed = nn.Embedding(config.words, config.width, padding_idx=0)
        place = torch.arange(config.length)[:, None] * torch.exp(
            -math.log(1e4) * torch.arange(0, config.width, 2) / config.width
        )
        self.register_buffer("places", torch.cat([place.sin(), place.cos()], 1))
        layer = nn.TransformerDecoderLayer(
            config.width, config.heads, 4 * config.width, 0.0, batch_first=True
        )
        self.decoder = CachedDecoder(layer, config.layers)
        self.out = nn.Linear(config.width, config.words)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(config.length))

    def forward(self, pictures, words):
        memory = self.see(pictures).transpose(1, 2)
        n = words.shape[1]
        x = self.embed(words) + self.places[:n]
        return self.out(self.decoder(x, memory, tgt_mask=self.mask[:n, :n], tgt_is_causal=True))

    @torch.inference_mode()
    def describe(self, pictures):
        memory = self.see(pictures).transpose(1, 2)
        seen = [None] * len(self.decoder.layers)
        words = torch.full((len(pictures), 1), BEGIN)
        for place in range(self.config.length - 1):
            x = self.embed(words[:, -1:]) + self.places[place]
            words = torch.cat([words, self.out(self.decoder.extend(x, memory, seen)).argmax(-1)], 1)
        return words


def evaluate(model, loader):
    model.eval()
    right = total = 0
    for pictures, captions in loader:
        said = model.describe(pictures)[:, 1 : captions.shape[1]]
        meant = captions[:, 1:]
        right += ((said == meant) & (meant > 0)).sum()
        total += (meant > 0).sum()
    model.train()
    return float(right / total)


def main():
    config = Config()
    torch.manual_seed(21)
    train_loader = DataLoader(Scenes(config, 5000, 1), config.batch, shuffle=True, drop_last=True)
    test_loader = DataLoader(Scenes(config, 200, 2), 100)
    model = Captioner(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.98), fused=True)
    for epoch in range(config.epochs):
        total = torch.zeros(())
        for pictures, captions in train_loader:
            scores = model(pictures, captions[:, :-1])
            loss = F.cross_entropy(
                scores.flatten(0, 1),
                captions[:, 1:].flatten(),
                ignore_index=0,
                label_smoothing=config.smoothing,
            )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.detach()
        print(
            f"epoch {epoch}: loss {total / len(train_loader):.3f}, words right {evaluate(model, test_loader):.3f}"
        )


if __name__ == "__main__":
    main()
