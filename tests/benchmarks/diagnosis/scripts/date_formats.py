"""Translating dates from one way of writing to another: a transformer, teacher forcing, label smoothing."""

import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass
class TransformerConfig:
    vocab: int = 64
    dim: int = 64
    heads: int = 4
    encoder_layers: int = 3
    decoder_layers: int = 3
    max_len: int = 64
    gradient_checkpointing: bool = True


@dataclass
class TrainingArguments:
    max_steps: int = 170
    per_device_batch: int = 24
    learning_rate: float = 7e-4
    warmup_steps: int = 60
    label_smoothing: float = 0.1
    max_grad_norm: float = 1.0
    logging_steps: int = 50
    seed: int = 19


class EncoderBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.attn = nn.MultiheadAttention(cfg.dim, cfg.heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))
        self.n1, self.n2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class DecoderBlock(EncoderBlock):
    def __init__(self, cfg):
        super().__init__(cfg)
        self.cross = nn.MultiheadAttention(cfg.dim, cfg.heads, batch_first=True)
        self.n3 = nn.LayerNorm(cfg.dim)

    def forward(self, x, memory, causal):
        h = self.n1(x)
        x = x + self.attn(h, h, h, attn_mask=causal, need_weights=False)[0]
        x = x + self.cross(self.n3(x), memory, memory, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class Seq2Seq(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Parameter(torch.randn(cfg.max_len, cfg.dim) * 0.02)
        self.encoder = nn.ModuleList([EncoderBlock(cfg) for _ in range(cfg.encoder_layers)])
        self.decoder = nn.ModuleList([DecoderBlock(cfg) for _ in range(cfg.decoder_layers)])
        self.norm = nn.LayerNorm(cfg.dim)
        causal = torch.full((cfg.max_len, cfg.max_len), -math.inf).triu(1)
        self.register_buffer("causal", causal, persistent=False)

    def _run(self, block, *inputs):
        if self.cfg.gradient_checkpointing and self.training:
            return checkpoint(block, *inputs, use_reentrant=False)
        return block(*inputs)

    def _embed(self, tokens):
        return self.embed(tokens) + self.pos[: tokens.shape[1]]

    def forward(self, source, target_in):
        memory = self._embed(source)
        for block in self.encoder:
            memory = self._run(block, memory)
        n = target_in.shape[1]
        x = self._embed(target_in)
        for block in self.decoder:
            x = self._run(block, x, memory, self.causal[:n, :n])
        return F.linear(self.norm(x), self.embed.weight)


class DatePairs:
    """Dates as rows of characters: '3 May 1987' and '1987-05-03', made up as they are asked for."""

    def __init__(self, cfg, generator, pool=4000):
        self.source = torch.randint(4, cfg.vocab, (pool, 32), generator=generator)
        self.target = torch.cat([torch.ones(pool, 1, dtype=torch.long), self.source.flip(1)], dim=1)
        self.generator = generator

    def batch(self, n):
        rows = torch.randint(len(self.source), (n,), generator=self.generator)
        return self.source[rows], self.target[rows]


def inverse_sqrt(warmup):
    return lambda step: min((step + 1) / warmup, math.sqrt(warmup / (step + 1)))


class Seq2SeqTrainer:
    def __init__(self, model, data, args):
        self.model, self.data, self.args = model, data, args
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, fused=True)
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, inverse_sqrt(args.warmup_steps))

    def compute_loss(self, source, target):
        logits = self.model(source, target[:, :-1])
        return F.cross_entropy(
            logits.flatten(0, 1), target[:, 1:].flatten(), label_smoothing=self.args.label_smoothing
        )

    def train(self):
        self.model.train()
        for step in range(1, self.args.max_steps + 1):
            loss = self.compute_loss(*self.data.batch(self.args.per_device_batch))
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
            self.optimizer.step()
            self.lr_scheduler.step()
            self.optimizer.zero_grad(set_to_none=True)
            if step % self.args.logging_steps == 0:
                print({"step": step, "loss": round(loss.item(), 4), "lr": self.lr_scheduler.get_last_lr()[0]})


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--max-steps", type=int, default=TrainingArguments.max_steps)
    cli.add_argument("--fixed", action="store_true", help="keep the activations")
    parsed = cli.parse_args()
    args = TrainingArguments(max_steps=parsed.max_steps)
    torch.manual_seed(args.seed)
    cfg = TransformerConfig(gradient_checkpointing=not parsed.fixed)
    Seq2SeqTrainer(Seq2Seq(cfg), DatePairs(cfg, torch.Generator().manual_seed(args.seed)), args).train()
