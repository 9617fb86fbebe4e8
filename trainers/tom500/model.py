"""The UNet, and its loss in a plain and in a scatter-free form."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainers.tuning.norm import BatchNormRelu
from trainers.tuning.winograd import Conv3x3


def double_conv(inputs: int, outputs: int, kernels: bool) -> nn.Sequential:
    """Two convolutions, each normalised."""
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers += [Conv3x3(channels, outputs, kernels), BatchNormRelu(outputs, kernels)]
        layers += [nn.Identity()]  # where a ReLU once was: the names in checkpoints stay
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """(batch, 1, height, width) → (batch, classes, height, width)."""

    def __init__(self, classes: int, width: int, depth: int, kernels: bool = False) -> None:
        super().__init__()
        self.depth, self.kernels = depth, kernels
        widths = [width * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            double_conv(i, o, kernels) for i, o in zip([1, *widths], widths, strict=False)
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, stride=2) for i, o in pairs)
        self.mix = nn.ModuleList(double_conv(2 * o, o, kernels) for _, o in pairs)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[-2:]
        unit = 2**self.depth
        if height % unit or width % unit:  # a size that does not halve so often: padded, and cut again
            image = F.pad(image, (0, -width % unit, 0, -height % unit), mode="replicate")
        kept = [self.down[0](image)]
        for block in self.down[1:]:
            kept.append(block(F.max_pool2d(kept[-1], 2)))
        x: Tensor = kept.pop()
        for up, mix in zip(self.up, self.mix, strict=True):
            x = mix(torch.cat([kept.pop(), up(x)], dim=1))
        return self._scores(x)[..., :height, :width]

    def _scores(self, x: Tensor) -> Tensor:
        if not self.kernels:
            scores: Tensor = self.head(x)
            return scores
        # over channels-last memory one pixel is one row; the library's 1×1 convolution copies instead
        rows = F.linear(x.permute(0, 2, 3, 1), self.head.weight.flatten(1), self.head.bias)
        return rows.permute(0, 3, 1, 2)


def one_hot_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy + soft dice with an explicit one-hot tensor."""
    chance = logits.softmax(1)
    hot = F.one_hot(labels, logits.shape[1]).permute(0, 3, 1, 2).float()
    return F.cross_entropy(logits, labels) + _dice_loss(
        (chance * hot).sum((0, 2, 3)), chance, hot.sum((0, 2, 3))
    )


def masked_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The same value from one log-softmax and a comparison: nothing is scattered, forth or back."""
    log_chance = logits.log_softmax(1)
    chance = log_chance.exp()
    classes = torch.arange(logits.shape[1], device=labels.device).view(1, -1, 1, 1)
    mask = (labels.unsqueeze(1) == classes).to(chance.dtype)
    entropy = -(log_chance * mask).sum() / labels.numel()
    return entropy + _dice_loss((chance * mask).sum((0, 2, 3)), chance, mask.sum((0, 2, 3)))


def _dice_loss(shared: Tensor, chance: Tensor, counts: Tensor) -> Tensor:
    return 1 - ((2 * shared + 1) / (chance.sum((0, 2, 3)) + counts + 1)).mean()
