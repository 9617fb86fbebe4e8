"""Data, losses and the epochs."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from litter_kit.boxes import MATCHERS, grid_anchors
from litter_kit.network import Detector


class Beach(Dataset):
    """Coloured rectangles on sand."""

    def __init__(self, options):
        maker = torch.Generator().manual_seed(31)
        size = options.size
        self.pictures = 0.1 * torch.rand(options.pictures, 3, size, size, generator=maker)
        self.targets = []
        for picture in self.pictures:
            count = int(torch.randint(4, options.most + 1, (1,), generator=maker))
            corner = torch.randint(0, size - 36, (count, 2), generator=maker)
            side = torch.randint(10, 36, (count, 2), generator=maker)
            labels = torch.randint(options.classes, (count,), generator=maker)
            for (x, y), (w, h), label in zip(corner.tolist(), side.tolist(), labels.tolist()):
                picture[label % 3, y : y + h, x : x + w] += 0.5 + 0.1 * label
            self.targets.append({"boxes": torch.cat([corner, corner + side], 1).float(), "labels": labels})

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.pictures[index], self.targets[index]


def collate(samples):
    pictures, targets = zip(*samples)
    return torch.stack(pictures), list(targets)


class Criterion:
    def __init__(self, anchors, matcher):
        self.anchors, self.matcher = anchors, matcher

    def __call__(self, kind, place, targets):
        labels, offsets = self.matcher(self.anchors, targets)
        found = labels > 0
        weight = torch.where(found, 1.0, 0.1)
        kinds = F.cross_entropy(kind.flatten(0, 1), labels.flatten(), reduction="none")
        return (kinds * weight.flatten()).sum() / weight.sum(), F.smooth_l1_loss(place[found], offsets[found])


def train(options):
    torch.manual_seed(31)
    loader = DataLoader(
        Beach(options.data), options.schedule.batch, shuffle=True, collate_fn=collate, drop_last=True
    )
    model = Detector(options.model.width, len(options.model.anchors), options.data.classes)
    anchors = grid_anchors(options.data.size, options.model.stride, options.model.anchors)
    criterion = Criterion(anchors, MATCHERS[options.matcher]())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    for epoch in range(options.schedule.epochs):
        total = torch.zeros(2)
        for pictures, targets in loader:
            losses = criterion(*model(pictures), targets)
            optimizer.zero_grad()
            sum(losses).backward()
            optimizer.step()
            total += torch.stack(losses).detach()
        print(f"epoch {epoch}: kinds {total[0] / len(loader):.3f}, places {total[1] / len(loader):.3f}")
