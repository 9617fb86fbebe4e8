"""A language model in the style of minGPT: a Trainer class with callbacks around a DataLoader."""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler


class SortDataset(Dataset):
    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        given = torch.randint(3, size=(12,), dtype=torch.long)
        whole = torch.cat((given, torch.sort(given)[0]))
        x, y = whole[:-1].clone(), whole[1:].clone()
        y[:11] = -1
        return x, y


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(3, 48), nn.Embedding(32, 48)
        layer = nn.TransformerEncoderLayer(48, 3, 192, dropout=0.1, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(48, 3)

    def forward(self, idx: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        length = idx.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.body(self.tokens(idx) + self.places(torch.arange(length)), mask=mask, is_causal=True)
        logits = self.head(x)
        loss = nn.functional.cross_entropy(logits.view(-1, 3), targets.view(-1), ignore_index=-1)
        return logits, loss


class Trainer:
    def __init__(self, model: nn.Module, dataset: Dataset, max_iters: int) -> None:
        self.model, self.dataset, self.max_iters = model, dataset, max_iters
        self.callbacks: dict[str, list[Callable[[Trainer], None]]] = defaultdict(list)
        self.iter_num, self.iter_time, self.iter_dt = 0, time.time(), 0.0

    def trigger(self, event: str) -> None:
        for callback in self.callbacks[event]:
            callback(self)

    def run(self) -> None:
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-4)
        sampler = RandomSampler(self.dataset, replacement=True, num_samples=int(1e10))
        loader = DataLoader(self.dataset, sampler=sampler, batch_size=64)
        self.model.train()
        batches = iter(loader)
        while self.iter_num < self.max_iters:
            x, y = next(batches)
            _, self.loss = self.model(x, y)
            self.model.zero_grad(set_to_none=True)
            self.loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimizer.step()
            self.trigger("on_batch_end")
            self.iter_num += 1
            now = time.time()
            self.iter_dt, self.iter_time = now - self.iter_time, now


def tell(trainer: Trainer) -> None:
    if trainer.iter_num % 100 == 0:
        print(f"iter {trainer.iter_num}: loss {trainer.loss.item():.5f}, {trainer.iter_dt * 1000:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer(Model(), SortDataset(), args.steps)
    trainer.callbacks["on_batch_end"].append(tell)
    trainer.run()


if __name__ == "__main__":
    main()
