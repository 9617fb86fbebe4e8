"""nanoGPT style: a token tensor, random offsets, no DataLoader."""

import math

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)
block_size, batch_size, n_embd, n_head = 64, 16, 128, 4
tokens = torch.randint(0, 65, (20_000,))


def get_batch():
    ix = torch.randint(len(tokens) - block_size - 1, (batch_size,))
    x = torch.stack([tokens[i : i + block_size] for i in ix])
    y = torch.stack([tokens[i + 1 : i + 1 + block_size] for i in ix])
    return x.pin_memory().to("cuda", non_blocking=True), y.pin_memory().to("cuda", non_blocking=True)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(65, n_embd), nn.Embedding(block_size, n_embd)
        self.ln, self.qkv, self.proj = (
            nn.LayerNorm(n_embd),
            nn.Linear(n_embd, 3 * n_embd),
            nn.Linear(n_embd, n_embd),
        )
        self.mlp = nn.Sequential(
            nn.LayerNorm(n_embd), nn.Linear(n_embd, 512), nn.GELU(), nn.Linear(512, n_embd)
        )
        self.register_buffer("positions", torch.arange(block_size))
        self.head = nn.Linear(n_embd, 65, bias=False)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(self.positions)
        q, k, v = (
            t.view(*t.shape[:2], n_head, -1).transpose(1, 2) for t in self.qkv(self.ln(x)).split(n_embd, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.proj(y)
        return self.head(x + self.mlp(x))


model = GPT().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), fused=True)
x, y = get_batch()
for iter_num in range(240):
    for group in optimizer.param_groups:
        group["lr"] = 6e-4 * 0.5 * (1 + math.cos(math.pi * iter_num / 240))
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(x).view(-1, 65), y.view(-1))
    x, y = get_batch()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if iter_num % 100 == 0:
        print(f"iter {iter_num}: loss {loss.item():.4f}")
