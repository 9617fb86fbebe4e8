"""Street scenes with dict targets: a teacher's logits, boxes and weather from one backbone, losses balanced."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class StreetScenes(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.images = torch.randn(n, 3, 40, 40, generator=g)
        self.boxes = torch.rand(n, 4, generator=g)
        self.weather = torch.randint(4, (n,), generator=g)

    def __len__(self):
        return len(self.images)

    def __getitems__(self, rows):
        """A whole batch at once."""
        return self.images[rows], {"boxes": self.boxes[rows], "weather": self.weather[rows]}


def backbone(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, 1, 1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
    )


class SceneNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.features = backbone(width)
        self.box = nn.Linear(32 * width, 4)
        self.weather = nn.Linear(32 * width, 4)

    def forward(self, x):
        f = self.features(x)
        return {"boxes": self.box(f).sigmoid(), "weather": self.weather(f)}


class BalancedLoss(nn.Module):
    """Each task is weighted by what it cannot know (Kendall and others)."""

    def __init__(self, temperature=2.0):
        super().__init__()
        self.temperature = temperature
        self.log_sigma = nn.Parameter(torch.zeros(3))

    def forward(self, out, target, taught):
        t = self.temperature
        soft = F.kl_div(
            (out["weather"] / t).log_softmax(1), (taught["weather"] / t).softmax(1), reduction="batchmean"
        )
        losses = torch.stack(
            [
                F.smooth_l1_loss(out["boxes"], target["boxes"]),
                F.cross_entropy(out["weather"], target["weather"]),
                soft * t * t,
            ]
        )
        return (losses * (-self.log_sigma).exp() + self.log_sigma).sum(), losses.detach()


class Engine:
    def __init__(self, args):
        self.args = args
        self.student, self.teacher = (
            SceneNet(args.width),
            SceneNet(args.width + 8).eval().requires_grad_(False),
        )
        self.criterion = BalancedLoss()
        parameters = [*self.student.parameters(), *self.criterion.parameters()]
        self.optimizer = torch.optim.AdamW(parameters, lr=args.lr, fused=True)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.8)

    def train_one_epoch(self, loader, epoch):
        self.student.train()
        total = torch.zeros(3)
        for i, (images, targets) in enumerate(loader):
            with torch.no_grad():
                taught = self.teacher(images)
            loss, parts = self.criterion(self.student(images), targets, taught)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.student.parameters(), 10.0)
            self.optimizer.step()
            total += parts
            if (i + 1) % 50 == 0:
                print(
                    f"epoch {epoch} {i + 1}/{len(loader)}", [round(v, 3) for v in (total / (i + 1)).tolist()]
                )
        self.scheduler.step()

    @torch.no_grad()
    def evaluate(self, loader):
        self.student.eval()
        right = sum((self.student(x)["weather"].argmax(1) == y["weather"]).sum() for x, y in loader)
        print(f"weather right: {int(right)} of {len(loader.dataset)}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=48)
    p.add_argument("--width", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-3)
    args = p.parse_args()
    torch.manual_seed(50)

    def as_is(batch):
        return batch

    train = DataLoader(StreetScenes(3000, 1), args.batch_size, shuffle=True, collate_fn=as_is)
    val = DataLoader(StreetScenes(192, 2), args.batch_size, collate_fn=as_is)
    engine = Engine(args)
    for epoch in range(args.epochs):
        engine.train_one_epoch(train, epoch)
    engine.evaluate(val)


if __name__ == "__main__":
    main()
