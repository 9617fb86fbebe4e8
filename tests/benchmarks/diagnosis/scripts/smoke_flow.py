"""How smoke drifts from one frame to the next: optical flow learned without truth, by warping one frame onto the other."""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class AverageMeter:
    def __init__(self, names):
        self.names = names
        self.reset()

    def reset(self):
        self.sum, self.count = torch.zeros(len(self.names)), 0

    def update(self, values):
        self.sum += torch.stack([value.detach().float() for value in values])
        self.count += 1

    def __str__(self):
        return "  ".join(f"{n} {v:.4f}" for n, v in zip(self.names, (self.sum / self.count).tolist()))


def smoke(count, size, seed):
    """Pairs of frames; the second is the first, moved and turned a little."""
    g = torch.Generator().manual_seed(seed)
    noise = sum(
        F.interpolate(torch.randn(count, 1, n, n, generator=g), size=size, mode="bicubic") for n in (4, 8, 16)
    )
    first = torch.sigmoid(noise)
    angle, dx, dy = (torch.rand(3, count, generator=g) - 0.5) * 0.16
    theta = torch.stack(
        [torch.stack([angle.cos(), -angle.sin(), dx], 1), torch.stack([angle.sin(), angle.cos(), dy], 1)], 1
    )
    second = F.grid_sample(
        first,
        F.affine_grid(theta, first.shape, align_corners=True),
        align_corners=True,
        padding_mode="border",
    )
    return torch.cat([first, second], 1)


class Warper(nn.Module):
    """Samples a picture where the flow points to."""

    def __init__(self, height, width, dtype=None):
        super().__init__()
        ys, xs = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
        grid = torch.from_numpy(np.stack([xs / (width - 1), ys / (height - 1)]) * 2 - 1)
        self.register_buffer("grid", grid.to(dtype or grid.dtype)[None])
        self.register_buffer("scale", torch.tensor([2 / (width - 1), 2 / (height - 1)])[None, :, None, None])

    def forward(self, image, flow):
        where = self.grid + flow * self.scale
        inside = (where.abs() <= 1).all(1, keepdim=True)
        warped = F.grid_sample(
            image.type_as(where), where.permute(0, 2, 3, 1), align_corners=True, padding_mode="border"
        )
        return warped, inside.type_as(where)


def conv(before, after, stride=1):
    return nn.Sequential(nn.Conv2d(before, after, 3, stride, 1), nn.LeakyReLU(0.1, inplace=True))


class FlowNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1, self.conv2 = conv(2, width, 2), conv(width, 2 * width, 2)
        self.conv3 = nn.Sequential(conv(2 * width, 3 * width, 2), conv(3 * width, 3 * width))
        self.up2 = nn.ConvTranspose2d(3 * width, 2 * width, 4, 2, 1)
        self.up1 = nn.ConvTranspose2d(4 * width, width, 4, 2, 1)
        self.predict = nn.Conv2d(2 * width, 2, 3, 1, 1)

    def forward(self, pair):
        one = self.conv1(pair)
        two = self.conv2(one)
        x = F.leaky_relu(self.up2(self.conv3(two)), 0.1)
        x = F.leaky_relu(self.up1(torch.cat([x, two], 1)), 0.1)
        flow = self.predict(torch.cat([x, one], 1))
        return 4 * F.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=False)


class CensusLoss(nn.Module):
    """Compares how each pixel stands to its neighbours, not how bright it is."""

    def __init__(self, patch=5):
        super().__init__()
        self.patch = patch

    def transform(self, image):
        n, _, h, w = image.shape
        around = F.unfold(image, self.patch, padding=self.patch // 2).view(n, -1, h, w)
        difference = around - image
        return difference / torch.sqrt(0.01 + difference.square())

    def forward(self, one, other, mask):
        distance = (self.transform(one) - self.transform(other)).square()
        distance = (distance / (0.1 + distance)).sum(1, keepdim=True)
        return ((distance * mask + 1e-6) ** 0.45).mean()


def ssim_distance(x, y, mask):
    mu_x, mu_y = F.avg_pool2d(x, 3, 1, 1), F.avg_pool2d(y, 3, 1, 1)
    var_x = F.avg_pool2d(x * x, 3, 1, 1) - mu_x**2
    var_y = F.avg_pool2d(y * y, 3, 1, 1) - mu_y**2
    cov = F.avg_pool2d(x * y, 3, 1, 1) - mu_x * mu_y
    ssim = (2 * mu_x * mu_y + 1e-4) * (2 * cov + 9e-4)
    ssim = ssim / ((mu_x**2 + mu_y**2 + 1e-4) * (var_x + var_y + 9e-4))
    return (((1 - ssim) / 2).clamp(0, 1) * mask).mean()


def edge_aware_smoothness(flow, image):
    wx = torch.exp(-10 * (image[..., 1:] - image[..., :-1]).abs())
    wy = torch.exp(-10 * (image[..., 1:, :] - image[..., :-1, :]).abs())
    dx, dy = flow[..., 1:] - flow[..., :-1], flow[..., 1:, :] - flow[..., :-1, :]
    return (dx.abs() * wx).mean() + (dy.abs() * wy).mean()


class UnsupervisedFlowLoss(nn.Module):
    names = ("census", "ssim", "smooth")

    def __init__(self, warper):
        super().__init__()
        self.warper = warper
        self.census = CensusLoss()

    def forward(self, pair, flow):
        first, second = pair[:, :1], pair[:, 1:]
        warped, inside = self.warper(second, flow)
        first = first.type_as(warped)
        return (
            self.census(first, warped, inside),
            ssim_distance(first, warped, inside),
            0.1 * edge_aware_smoothness(flow, pair[:, :1]),
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=4e-4)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--fixed", action="store_true", help="the grid in single precision")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    pairs = smoke(480, args.size, args.seed)
    model = FlowNet()
    warper = Warper(args.size, args.size, torch.float32 if args.fixed else None)
    criterion = UnsupervisedFlowLoss(warper)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    meter = AverageMeter(criterion.names)
    for epoch in range(args.epochs):
        for i, index in enumerate(torch.randperm(len(pairs)).split(args.batch)):
            pair = pairs[index]
            losses = criterion(pair, model(pair))
            optimizer.zero_grad(set_to_none=True)
            sum(losses).backward()
            optimizer.step()
            meter.update(losses)
            if (i + 1) % 20 == 0:
                print(f"Epoch [{epoch}][{i + 1}/{len(pairs) // args.batch}]  {meter}")
                meter.reset()
        scheduler.step()


if __name__ == "__main__":
    main()
