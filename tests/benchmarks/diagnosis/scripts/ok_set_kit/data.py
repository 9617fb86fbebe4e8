"""Coloured rectangles on a striped carpet."""

import torch
from torch.utils.data import Dataset


class Carpet(Dataset):
    def __init__(self, count, classes, seed, size=64):
        g = torch.Generator().manual_seed(seed)
        stripes = 0.1 * torch.sin(torch.arange(size) / 3.0)
        self.images = stripes + 0.1 * torch.rand(count, 3, size, size, generator=g)
        self.targets = []
        for image in self.images:
            n = int(torch.randint(1, 7, (1,), generator=g))
            wh = torch.randint(8, 24, (n, 2), generator=g)
            xy = (torch.rand(n, 2, generator=g) * (size - wh)).long()
            labels = torch.randint(classes, (n,), generator=g)
            for (x, y), (w, h), label in zip(xy.tolist(), wh.tolist(), labels.tolist()):
                image[label % 3, y : y + h, x : x + w] += 0.6
                image[(label // 2) % 3, y : y + h, x : x + w] -= 0.3
            self.targets.append({"labels": labels, "boxes": torch.cat([xy + wh / 2, wh], 1) / size})

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.targets[index]


def collate_fn(batch):
    images, targets = zip(*batch)
    return torch.stack(images), list(targets)
