"""A generator that goes up from frames to samples, and discriminators at several scales."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

LRELU_SLOPE = 0.1


class ResBlock(nn.Module):
    def __init__(self, channels, kernel=3, dilations=(1, 3)):
        super().__init__()
        self.convs = nn.ModuleList(
            weight_norm(nn.Conv1d(channels, channels, kernel, dilation=d, padding=d * (kernel - 1) // 2))
            for d in dilations
        )

    def forward(self, x):
        for conv in self.convs:
            x = x + conv(F.leaky_relu(x, LRELU_SLOPE))
        return x


class Generator(nn.Module):
    def __init__(self, h):
        super().__init__()
        channels = h.upsample_initial_channel
        self.conv_pre = weight_norm(nn.Conv1d(h.num_mels, channels, 7, padding=3))
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        for rate in h.upsample_rates:
            self.ups.append(
                weight_norm(nn.ConvTranspose1d(channels, channels // 2, 2 * rate, rate, padding=rate // 2))
            )
            channels //= 2
            self.resblocks.append(ResBlock(channels))
        self.conv_post = weight_norm(nn.Conv1d(channels, 1, 7, padding=3))

    def forward(self, mel):
        x = self.conv_pre(mel)
        for up, block in zip(self.ups, self.resblocks):
            x = block(up(F.leaky_relu(x, LRELU_SLOPE)))
        return torch.tanh(self.conv_post(F.leaky_relu(x))).squeeze(1)


class Judged(NamedTuple):
    scores: list
    maps: list


class ScaleDiscriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(
            [
                weight_norm(nn.Conv1d(1, 16, 15, 4, padding=7)),
                weight_norm(nn.Conv1d(16, 32, 15, 4, groups=4, padding=7)),
                weight_norm(nn.Conv1d(32, 64, 15, 4, groups=8, padding=7)),
                weight_norm(nn.Conv1d(64, 64, 5, padding=2)),
            ]
        )
        self.conv_post = weight_norm(nn.Conv1d(64, 1, 3, padding=1))

    def forward(self, x):
        maps = []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), LRELU_SLOPE)
            maps.append(x)
        x = self.conv_post(x)
        return x.flatten(1), [*maps, x]


class MultiScaleDiscriminator(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.discriminators = nn.ModuleList(ScaleDiscriminator() for _ in range(scales))
        self.pool = nn.AvgPool1d(4, 2, padding=2)

    def forward(self, real, fake):
        judged = Judged([], []), Judged([], [])
        both = torch.cat([real, fake])[:, None]
        for number, discriminator in enumerate(self.discriminators):
            both = self.pool(both) if number else both
            score, maps = discriminator(both)
            for one, part in zip(judged, (slice(None, len(real)), slice(len(real), None))):
                one.scores.append(score[part])
                one.maps.append([m[part] for m in maps])
        return judged
