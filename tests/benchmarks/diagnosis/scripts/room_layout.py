"""Depth, surfaces and room type from one trunk; training stops early when the validation score stands still."""

import argparse
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    steps: int = 400
    batch_size: int = 16
    lr: float = 3e-3
    image: int = 32
    train_images: int = 1024
    val_images: int = 256
    patience_every: int = 20
    patience: int = 10_000
    log_every: int = 50
    seed: int = 17


class Callback:
    def on_fit_start(self, trainer): ...

    def on_batch_end(self, trainer, loss): ...

    def on_fit_end(self, trainer): ...


class ConsoleLog(Callback):
    def on_batch_end(self, trainer, loss):
        if trainer.step % trainer.cfg.log_every == 0:
            print(f"step {trainer.step:4d} loss {loss.item():.4f}")


class EarlyStopping(Callback):
    def __init__(self, every, patience):
        self.every, self.patience = every, patience
        self.best, self.waited = float("inf"), 0

    def on_batch_end(self, trainer, loss):
        if trainer.step % self.every:
            return
        score = trainer.score()
        self.waited = 0 if score < self.best else self.waited + 1
        self.best = min(self.best, score)
        trainer.should_stop = self.waited > self.patience

    def on_fit_end(self, trainer):
        print(f"best validation score {self.best:.4f}")


class MultiTaskNet(nn.Module):
    def __init__(self, width=24, surfaces=6, rooms=5):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        self.heads = nn.ModuleDict(
            {
                "depth": nn.Conv2d(width, 1, 1),
                "surface": nn.Conv2d(width, surfaces, 1),
                "room": nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, rooms)),
            }
        )
        self.log_var = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in self.heads})

    def forward(self, x):
        features = self.trunk(x)
        return {name: head(features) for name, head in self.heads.items()}


def task_losses(out, target):
    return {
        "depth": F.l1_loss(out["depth"].squeeze(1), target["depth"]),
        "surface": F.cross_entropy(out["surface"], target["surface"]),
        "room": F.cross_entropy(out["room"], target["room"]),
    }


class Rooms:
    """Images and dict targets, all in memory."""

    def __init__(self, n, size, generator):
        self.image = torch.randn(n, 3, size, size, generator=generator)
        self.target = {
            "depth": self.image.mean(1),
            "surface": (self.image.argmax(1) + 3 * (self.image[:, 0] > 0).long()),
            "room": torch.randint(5, (n,), generator=generator),
        }

    def rows(self, index):
        return self.image[index], {name: value[index] for name, value in self.target.items()}

    def __len__(self):
        return len(self.image)


class Trainer:
    def __init__(self, cfg, callbacks):
        self.cfg = cfg
        self.callbacks = callbacks
        self.generator = torch.Generator().manual_seed(cfg.seed)
        self.train_set = Rooms(cfg.train_images, cfg.image, self.generator)
        self.val_set = Rooms(cfg.val_images, cfg.image, self.generator)
        self.model = MultiTaskNet()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.05, cfg.steps)
        self.step, self.should_stop = 0, False

    def call(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)

    def weighted(self, losses):
        return sum(
            loss * torch.exp(-self.model.log_var[k]) + self.model.log_var[k] for k, loss in losses.items()
        )

    @torch.no_grad()
    def score(self):
        self.model.eval()
        total = 0.0
        for index in torch.arange(len(self.val_set)).split(64):
            images, target = self.val_set.rows(index)
            total += sum(task_losses(self.model(images), target).values()).item() * len(index)
        self.model.train()
        return total / len(self.val_set)

    def fit(self):
        self.call("on_fit_start")
        self.model.train()
        while self.step < self.cfg.steps and not self.should_stop:
            index = torch.randint(len(self.train_set), (self.cfg.batch_size,), generator=self.generator)
            images, target = self.train_set.rows(index)
            loss = self.weighted(task_losses(self.model(images), target))
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.step += 1
            self.call("on_batch_end", loss.detach())
        self.call("on_fit_end")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=Config.steps)
    cli.add_argument("--fixed", action="store_true", help="look at the validation set every 200 steps")
    args = cli.parse_args()
    cfg = Config(steps=args.steps, patience_every=200 if args.fixed else Config.patience_every)
    torch.manual_seed(cfg.seed)
    Trainer(cfg, [ConsoleLog(), EarlyStopping(cfg.patience_every, cfg.patience)]).fit()
