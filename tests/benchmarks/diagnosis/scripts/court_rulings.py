"""Outcome of court cases from the text of the ruling: every text is padded to the longest there may be."""

import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class TrainConfig:
    rulings: int = 1280
    vocab: int = 4000
    max_length: int = 192
    dim: int = 64
    heads: int = 4
    layers: int = 2
    batch_size: int = 16
    epochs: int = 3
    lr: float = 5e-4
    pad_to: str = "max_length"


class Rulings(Dataset):
    """Most are short; a few fill the window."""

    def __init__(self, cfg, seed):
        g = torch.Generator().manual_seed(seed)
        lengths = (24 + 16 * torch.randn(cfg.rulings, generator=g).abs()).long().clamp(8, cfg.max_length)
        self.texts = [torch.randint(1, cfg.vocab, (int(n),), generator=g) for n in lengths]
        self.outcomes = [int((text < cfg.vocab // 3).float().mean() > 0.33) for text in self.texts]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return {"input_ids": self.texts[i], "label": self.outcomes[i]}


class DataCollatorWithPadding:
    def __init__(self, pad_to, max_length):
        self.pad_to, self.max_length = pad_to, max_length

    def __call__(self, features):
        longest = max(len(one["input_ids"]) for one in features)
        width = self.max_length if self.pad_to == "max_length" else longest
        ids = torch.zeros(len(features), width, dtype=torch.long)
        for row, one in enumerate(features):
            ids[row, : len(one["input_ids"])] = one["input_ids"]
        return {
            "input_ids": ids,
            "attention_mask": ids.ne(0),
            "labels": torch.tensor([f["label"] for f in features]),
        }


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, mask):
        x = x + self.attention(self.n1(x), mask)
        return x + self.mlp(self.n2(x))


class RulingClassifier(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.dim)
        self.places = nn.Embedding(cfg.max_length, cfg.dim)
        self.blocks = nn.ModuleList([Block(cfg.dim, cfg.heads) for _ in range(cfg.layers)])
        self.head = nn.Linear(cfg.dim, 2)

    def forward(self, input_ids, attention_mask, labels=None):
        x = self.tokens(input_ids) + self.places.weight[: input_ids.shape[1]]
        for block in self.blocks:
            x = block(x, attention_mask)
        kept = attention_mask.unsqueeze(-1).float()
        logits = self.head((x * kept).sum(1) / kept.sum(1))
        return {"logits": logits, "loss": None if labels is None else F.cross_entropy(logits, labels)}


class Trainer:
    def __init__(self, model, cfg, dataset):
        self.model, self.cfg = model, cfg
        self.loader = DataLoader(
            dataset,
            cfg.batch_size,
            shuffle=True,
            collate_fn=DataCollatorWithPadding(cfg.pad_to, cfg.max_length),
        )
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
        self.global_step = 0

    def training_step(self, inputs):
        self.model.train()
        loss = self.model(**inputs)["loss"]
        loss.backward()
        return loss.detach()

    def train(self):
        for _ in range(self.cfg.epochs):
            for inputs in self.loader:
                loss = self.training_step(inputs)
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.global_step += 1
                if self.global_step % 50 == 0:
                    print({"step": self.global_step, "loss": round(loss.item(), 4)})


if __name__ == "__main__":
    cfg = TrainConfig(pad_to="longest" if "--fixed" in sys.argv else "max_length")
    torch.manual_seed(6)
    Trainer(RulingClassifier(cfg), cfg, Rulings(cfg, seed=6)).train()
