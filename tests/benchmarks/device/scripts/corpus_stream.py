"""Continue pre-training on a streamed corpus, four micro-batches to an update."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.manual_seed(11)
ACCUMULATE = 4
MICRO_BATCHES = 4 * 110


class Corpus(IterableDataset):
    """Shards of a corpus; each block of tokens takes a while to arrive."""

    def __iter__(self):
        info = get_worker_info()
        step = info.num_workers if info else 1
        generator = torch.Generator().manual_seed(5)
        for _ in range(info.id if info else 0, MICRO_BATCHES, step):
            time.sleep(0.013)
            yield torch.randint(0, 200, (4, 17), generator=generator)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


embed = nn.Embedding(200, 64)
model = nn.Sequential(embed, Block(64), Block(64), nn.LayerNorm(64), nn.Linear(64, 200)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
workers = 3 if "--fixed" in sys.argv else 0
loader = DataLoader(Corpus(), batch_size=None, num_workers=workers)
for number, tokens in enumerate(loader, start=1):
    tokens = tokens.cuda(non_blocking=True)
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    (loss / ACCUMULATE).backward()
    if number % ACCUMULATE == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if number % 200 == 0:
        print(f"{number}: {loss.item():.3f}")
