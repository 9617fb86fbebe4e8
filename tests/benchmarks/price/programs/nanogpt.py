"""A language model in the style of nanoGPT: batches cut from one array, accumulated gradients, no loader."""

import argparse
import time

import torch
from torch import nn

BLOCK, VOCAB, WIDTH = 64, 256, 128


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.size()
        q, k, v = (part.view(b, t, 4, c // 4).transpose(1, 2) for part in self.c_attn(x).split(WIDTH, dim=2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2, self.attn = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(4)))
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, idx: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        logits = self.head(self.layers(x))
        return nn.functional.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))


data = torch.randint(0, VOCAB, (200_000,), generator=torch.Generator().manual_seed(1))


def get_batch() -> tuple[torch.Tensor, torch.Tensor]:
    starts = torch.randint(len(data) - BLOCK - 1, (8,)).tolist()
    x = torch.stack([data[i : i + BLOCK] for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + BLOCK] for i in starts])
    return x, y


@torch.no_grad()
def estimate_loss(model: nn.Module) -> float:
    model.eval()
    losses = torch.tensor([model(*get_batch()).item() for _ in range(10)])
    model.train()
    return losses.mean().item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95))
    x, y = get_batch()
    began = time.time()
    for step in range(args.steps):
        if step % 100 == 0:
            print(f"step {step}: val loss {estimate_loss(model):.4f}")
        for _ in range(2):
            loss = model(x, y) / 2
            x, y = get_batch()
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            print(f"iter {step}: loss {loss.item() * 2:.4f}, time {(time.time() - began) * 1000:.2f} ms")
            began = time.time()


if __name__ == "__main__":
    main()
