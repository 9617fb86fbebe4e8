"""A small language model learns to write ballads: low-rank adapters on a model that stays as it is, packed blocks."""

import math
import sys
import time
from dataclasses import dataclass, fields

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class TrainingArguments:
    vocab: int = 512
    block: int = 48
    layers: int = 3
    heads: int = 4
    width: int = 96
    lora_rank: int = 8
    lora_alpha: int = 16
    learning_rate: float = 2e-3
    warmup_steps: int = 20
    max_steps: int = 280
    batch_size: int = 16
    micro_batch_size: int = 1  # what fits the small card
    logging_steps: int = 40
    seed: int = 100

    @property
    def gradient_accumulation_steps(self):
        return self.batch_size // self.micro_batch_size

    @classmethod
    def parse(cls, words):
        kinds = {one.name: one.type for one in fields(cls)}
        given = {}
        for word in words:
            if word == "--fixed":
                given["micro_batch_size"] = cls.batch_size
            else:
                name, value = word.lstrip("-").split("=")
                given[name] = kinds[name](value)
        return cls(**given)


class LoRALinear(nn.Module):
    """A layer that does not learn, and a thin one beside it that does."""

    def __init__(self, before, after, args):
        super().__init__()
        self.base = nn.Linear(before, after, bias=False).requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(args.lora_rank, before) / math.sqrt(before))
        self.lora_b = nn.Parameter(torch.zeros(after, args.lora_rank))
        self.scaling = args.lora_alpha / args.lora_rank

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.lora_a), self.lora_b) * self.scaling


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads = args.heads
        self.norm_1 = nn.RMSNorm(args.width, elementwise_affine=False)
        self.norm_2 = nn.RMSNorm(args.width, elementwise_affine=False)
        self.attn = LoRALinear(args.width, 3 * args.width, args)
        self.proj = LoRALinear(args.width, args.width, args)
        self.gate_up = nn.Linear(args.width, 4 * args.width, bias=False).requires_grad_(False)
        self.down = nn.Linear(2 * args.width, args.width, bias=False).requires_grad_(False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.attn(self.norm_1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Writer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.wte = nn.Embedding(args.vocab, args.width).requires_grad_(False)
        self.wpe = nn.Embedding(args.block, args.width).requires_grad_(False)
        self.blocks = nn.ModuleList([Block(args) for _ in range(args.layers)])
        self.norm = nn.RMSNorm(args.width)
        self.head = nn.Linear(args.width, args.vocab, bias=False).requires_grad_(False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def packed_ballads(args):
    """One long row of tokens with refrains, cut into blocks."""
    refrains = torch.randint(args.vocab, (40, 24))
    verses = torch.randint(args.vocab, (3000, 24)) % 80
    chosen = torch.where((torch.arange(3000) % 3 == 0)[:, None], refrains[torch.randint(40, (3000,))], verses)
    tokens = chosen.flatten()
    count = (len(tokens) - 1) // args.block
    return tokens[: count * args.block].view(count, -1), tokens[1 : count * args.block + 1].view(count, -1)


def cosine_with_warmup(step, args):
    if step < args.warmup_steps:
        return (step + 1) / args.warmup_steps
    done = (step - args.warmup_steps) / (args.max_steps - args.warmup_steps)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def train(args):
    torch.manual_seed(args.seed)
    inputs, targets = packed_ballads(args)
    model = Writer(args)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(
        f"trainable: {sum(p.numel() for p in trainable):,} of {sum(p.numel() for p in model.parameters()):,}"
    )
    optimizer = torch.optim.AdamW(trainable, lr=args.learning_rate, weight_decay=0.0, fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: cosine_with_warmup(step, args))
    accumulation = args.gradient_accumulation_steps
    iter_num, total, since = 0, torch.zeros(()), time.time()
    while iter_num < args.max_steps * accumulation:
        rows = torch.randint(len(inputs), (args.micro_batch_size,))
        scores = model(inputs[rows])
        loss = F.cross_entropy(scores.view(-1, args.vocab), targets[rows].view(-1)) / accumulation
        loss.backward()
        total += loss.detach()
        iter_num += 1
        if iter_num % accumulation:
            continue
        nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        step = iter_num // accumulation
        if step % args.logging_steps == 0:
            print(f"step {step}: loss {total.item() / args.logging_steps:.4f}, {time.time() - since:.1f} s")
            total.zero_()


if __name__ == "__main__":
    train(TrainingArguments.parse(sys.argv[1:]))
