"""Generator, discriminator, and the adversarial loss."""

import torch
from torch import nn


def init_net(net, gain=0.02):
    def init_func(m):
        if isinstance(m, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(m.weight, 0.0, gain)
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.weight, 1.0, gain)
            nn.init.zeros_(m.bias)

    return net.apply(init_func)


class Down(nn.Sequential):
    def __init__(self, before, after, norm=True):
        parts = [nn.LeakyReLU(0.2), nn.Conv2d(before, after, 4, 2, 1, bias=not norm)]
        super().__init__(*parts, *([nn.BatchNorm2d(after)] if norm else []))


class Up(nn.Sequential):
    def __init__(self, before, after):
        super().__init__(
            nn.ReLU(), nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after)
        )


class UnetGenerator(nn.Module):
    def __init__(self, ngf):
        super().__init__()
        self.stem = nn.Conv2d(3, ngf, 4, 2, 1)
        widths = [ngf, 2 * ngf, 4 * ngf, 4 * ngf]
        self.downs = nn.ModuleList(Down(a, b) for a, b in zip(widths, widths[1:]))
        self.ups = nn.ModuleList(
            Up(b * (1 if n == 0 else 2), a) for n, (a, b) in enumerate(zip(widths[-2::-1], widths[:0:-1]))
        )
        self.head = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(2 * ngf, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        seen = [self.stem(x)]
        for down in self.downs:
            seen.append(down(seen[-1]))
        y = seen.pop()
        for up in self.ups:
            y = torch.cat([up(y), seen.pop()], 1)
        return self.head(y)


class NLayerDiscriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(6, ndf, 4, 2, 1), Down(ndf, 2 * ndf), Down(2 * ndf, 4 * ndf),
            nn.LeakyReLU(0.2), nn.Conv2d(4 * ndf, 1, 4, 1, 1),
        )  # fmt: skip

    def forward(self, x):
        return self.model(x)


class GANLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("real_label", torch.tensor(1.0))
        self.register_buffer("fake_label", torch.tensor(0.0))
        self.loss = nn.MSELoss()

    def forward(self, prediction, target_is_real):
        label = self.real_label if target_is_real else self.fake_label
        return self.loss(prediction, label.expand_as(prediction))
