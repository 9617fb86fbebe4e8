"""An image classifier with mixup, soft labels, an average of the weights and a warm-up; one validation an epoch."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Beta
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Mixup:
    def __init__(self, alpha, classes, smoothing):
        self.beta, self.classes, self.smoothing = Beta(alpha, alpha), classes, smoothing

    def __call__(self, images, labels):
        share = self.beta.sample()
        other = torch.randperm(len(images))
        soft = F.one_hot(labels, self.classes) * (1 - self.smoothing) + self.smoothing / self.classes
        return images.lerp(images[other], share), soft.lerp(soft[other], share)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )

    def forward(self, x):
        return x + self.body(x)


def resnet(width, classes):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1),
        Residual(width),
        nn.Conv2d(width, 2 * width, 3, 2, 1),
        Residual(2 * width),
        Residual(2 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, classes),
    )


class AverageMeter:
    def __init__(self):
        self.sum, self.n = torch.zeros(()), 0

    def update(self, value, n):
        self.sum += value.detach() * n
        self.n += n

    @property
    def mean(self):
        return (self.sum / self.n).item()


class Trainer:
    def __init__(self, args, data):
        self.args, self.data = args, data
        self.model = resnet(args.width, args.classes)
        self.average = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
        self.mixup = Mixup(args.mixup, args.classes, args.smoothing)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=True
        )
        steps = args.epochs * (len(data["train"][0]) // args.batch_size)
        self.scheduler = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, 1.0, args.warmup),
                torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps - args.warmup),
            ],
            [args.warmup],
        )

    def batches(self):
        images, labels = self.data["train"]
        for rows in torch.randperm(len(images)).split(self.args.batch_size):
            if len(rows) == self.args.batch_size:
                yield images[rows], labels[rows]

    def train_epoch(self, epoch):
        meter = AverageMeter()
        for step, (images, labels) in enumerate(self.batches()):
            images, soft = self.mixup(images, labels)
            with torch.autocast("cpu", enabled=self.args.amp):
                loss = F.cross_entropy(self.model(images), soft)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.average.update_parameters(self.model)
            meter.update(loss, len(images))
            if step % 50 == 0:
                print(f"[{epoch}:{step}] {meter.mean:.4f}")

    @torch.no_grad()
    def validate(self):
        images, labels = self.data["val"]
        self.average.eval()
        right = (self.average(images).argmax(1) == labels).float().mean()
        self.average.train()
        return right.item()

    def fit(self):
        for epoch in range(self.args.epochs):
            self.train_epoch(epoch)
            print(f"epoch {epoch}: accuracy of the average {self.validate():.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--width", type=int, default=24)
    p.add_argument("--classes", type=int, default=10)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--warmup", type=int, default=20)
    p.add_argument("--mixup", type=float, default=0.2)
    p.add_argument("--smoothing", type=float, default=0.1)
    p.add_argument("--amp", action="store_true")
    args = p.parse_args()
    torch.manual_seed(64)
    data = {
        name: (torch.randn(n, 3, 32, 32), torch.randint(args.classes, (n,)))
        for name, n in (("train", 5760), ("val", 192))
    }
    Trainer(args, data).fit()
