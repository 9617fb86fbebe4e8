from torch import nn

from .registry import MODELS


class Depthwise(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c_in, c_in, 3, stride, 1, groups=c_in, bias=False),
            nn.BatchNorm2d(c_in),
            nn.ReLU(inplace=True),
            nn.Conv2d(c_in, c_out, 1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.body(x)


@MODELS.register
class LeafNet(nn.Module):
    def __init__(self, width, species):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 2, 1)
        self.stages = nn.Sequential(
            Depthwise(width, 2 * width, 1),
            Depthwise(2 * width, 4 * width, 2),
            Depthwise(4 * width, 4 * width, 2),
        )
        self.fc = nn.Linear(4 * width, species)

    def forward(self, x):
        return self.fc(self.stages(self.stem(x)).mean((2, 3)))
