"""Pictures with and without labels, and two strengths of distortion for whole batches."""

import torch


def make_pictures(count, seed):
    torch.manual_seed(seed)
    kinds = torch.randint(8, (count,))
    shapes = torch.rand(8, 3, 8, 8)
    pictures = torch.nn.functional.interpolate(shapes[kinds], size=28, mode="bilinear")
    return pictures + 0.3 * torch.randn_like(pictures), kinds


def weak(batch):
    """Each picture mirrored or not, all shifted by a few pixels."""
    batch = torch.where(torch.rand(len(batch), 1, 1, 1) < 0.5, batch, batch.flip(-1))
    return batch.roll(tuple(torch.randint(-3, 4, (2,)).tolist()), (2, 3))


def strong(batch):
    """Weak, then contrast, brightness and a hole in each picture."""
    batch = weak(batch) * torch.empty(len(batch), 1, 1, 1).uniform_(0.6, 1.4)
    batch = batch + torch.empty(len(batch), 1, 1, 1).uniform_(-0.3, 0.3)
    x, y = torch.randint(28, (2, len(batch), 1))
    line = torch.arange(28)
    hole = ((line - x).abs() < 5)[:, None, None, :] & ((line - y).abs() < 5)[:, None, :, None]
    return batch.masked_fill(hole, 0.0)


class Labelled:
    def __init__(self, pictures, kinds, size):
        self.pictures, self.kinds, self.size = pictures, kinds, size

    def __iter__(self):
        while True:
            rows = torch.randint(len(self.pictures), (self.size,))
            yield weak(self.pictures[rows]), self.kinds[rows]


class Unlabelled:
    def __init__(self, pictures, size):
        self.pictures, self.size = pictures, size

    def __iter__(self):
        while True:
            for rows in torch.randperm(len(self.pictures)).split(self.size):
                if len(rows) == self.size:
                    yield weak(self.pictures[rows]), strong(self.pictures[rows])
