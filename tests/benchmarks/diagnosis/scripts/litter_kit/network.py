"""The detector: a few strided convolutions and two heads."""

from torch import nn


def conv(before, after, stride=1):
    return nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.SiLU())


class Detector(nn.Module):
    def __init__(self, width, anchors, classes):
        super().__init__()
        self.classes = classes
        self.body = nn.Sequential(
            conv(3, width, 2),
            conv(width, 2 * width, 2),
            conv(2 * width, 4 * width, 2),
            conv(4 * width, 4 * width),
        )
        self.kind = nn.Conv2d(4 * width, anchors * (classes + 1), 1)
        self.place = nn.Conv2d(4 * width, anchors * 4, 1)

    def forward(self, pictures):
        seen = self.body(pictures)
        kind = self.kind(seen).permute(0, 2, 3, 1).reshape(len(pictures), -1, self.classes + 1)
        place = self.place(seen).permute(0, 2, 3, 1).reshape(len(pictures), -1, 4)
        return kind, place
