"""A character language model as in many small repositories: accumulation, clipping, warm-up, rare evaluation."""

import argparse
import contextlib
import math
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln_2(x))


class CharLM(nn.Module):
    def __init__(self, vocab, block_size, n_layer, n_head, n_embd):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block(n_embd, n_head) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
        for block in self.h:
            x = block(x)
        return F.cross_entropy(self.lm_head(self.ln_f(x)).flatten(0, 1), targets.flatten())


parser = argparse.ArgumentParser()
parser.add_argument("--max-iters", type=int, default=160)
parser.add_argument("--batch-size", type=int, default=12)
parser.add_argument("--block-size", type=int, default=64)
parser.add_argument("--grad-accum", type=int, default=2)
parser.add_argument("--n-layer", type=int, default=3)
parser.add_argument("--n-head", type=int, default=4)
parser.add_argument("--n-embd", type=int, default=96)
parser.add_argument("--learning-rate", type=float, default=1e-3)
parser.add_argument("--warmup-iters", type=int, default=30)
parser.add_argument("--grad-clip", type=float, default=1.0)
parser.add_argument("--eval-interval", type=int, default=80)
parser.add_argument("--eval-iters", type=int, default=4)
parser.add_argument("--log-interval", type=int, default=50)
parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
args = parser.parse_args()

torch.manual_seed(1337)
ctx = contextlib.nullcontext() if args.dtype == "float32" else torch.autocast("cpu", dtype=torch.bfloat16)
corpus = torch.randint(65, (120_000,))
splits = {"train": corpus[:110_000], "val": corpus[110_000:]}


def get_batch(split):
    data = splits[split]
    start = torch.randint(len(data) - args.block_size - 1, (args.batch_size, 1))
    window = data[start + torch.arange(args.block_size + 1)]
    return window[:, :-1], window[:, 1:]


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    losses = torch.stack([model(*get_batch("val")) for _ in range(args.eval_iters)])
    model.train()
    return losses.mean().item()


def get_lr(it):
    if it < args.warmup_iters:
        return args.learning_rate * (it + 1) / args.warmup_iters
    progress = (it - args.warmup_iters) / (args.max_iters - args.warmup_iters)
    return args.learning_rate * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))


model = CharLM(65, args.block_size, args.n_layer, args.n_head, args.n_embd)
decay = [p for p in model.parameters() if p.dim() >= 2]
plain = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
    lr=args.learning_rate, betas=(0.9, 0.99), fused=True,
)  # fmt: skip

X, Y = get_batch("train")
t0 = time.time()
for it in range(args.max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    if it and it % args.eval_interval == 0:
        print(f"step {it}: val loss {estimate_loss(model):.4f}")
    for _ in range(args.grad_accum):
        with ctx:
            loss = model(X, Y) / args.grad_accum
        X, Y = get_batch("train")
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % args.log_interval == 0:
        print(f"iter {it}: loss {loss.item() * args.grad_accum:.4f}, {time.time() - t0:.1f} s")
