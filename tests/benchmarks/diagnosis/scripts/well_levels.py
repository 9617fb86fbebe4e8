"""Water in wells a month ahead: own windows, a dilated network with quantiles, curves drawn while it trains."""

import argparse
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

QUANTILES = (0.1, 0.5, 0.9)


def measurements(wells, days, rng):
    day = np.arange(days)
    season = np.sin(2 * np.pi * (day[None] / 365 + rng.random((wells, 1))))
    rain = rng.gamma(0.4, 1.0, (wells, days))
    return (season + 0.05 * np.cumsum(rain - rain.mean(1, keepdims=True), 1)).astype(np.float32)


class Windows:
    """Past and future of any well from any day on, as views of one tensor."""

    def __init__(self, levels, past, future):
        self.past = past
        self.views = torch.from_numpy(levels).unfold(1, past + future, 1)

    def draw(self, count):
        well = torch.randint(self.views.shape[0], (count,))
        start = torch.randint(self.views.shape[1], (count,))
        rows = self.views[well, start]
        level = rows[:, : self.past].mean(1, keepdim=True)
        rows = rows - level
        return rows[:, : self.past], rows[:, self.past :]


class Dilated(nn.Module):
    def __init__(self, future, width, depth):
        super().__init__()
        self.enter = nn.Conv1d(1, width, 1)
        self.layers = nn.ModuleList(
            [nn.Conv1d(width, 2 * width, 3, padding=2**i, dilation=2**i) for i in range(depth)]
        )
        self.leave = nn.Linear(width, future * len(QUANTILES))

    def forward(self, past):
        x = self.enter(past[:, None])
        for layer in self.layers:
            value, gate = layer(x).chunk(2, 1)
            x = x + value.tanh() * gate.sigmoid()
        return self.leave(x[..., -1]).unflatten(1, (len(QUANTILES), -1))


def pinball(forecast, truth):
    error = truth[:, None] - forecast
    q = torch.tensor(QUANTILES)[None, :, None]
    return torch.maximum(q * error, (q - 1) * error).mean()


class Figures:
    """Losses, and the forecast of four windows, as pictures that a browser shows."""

    def __init__(self, folder, windows):
        self.folder = Path(folder)
        self.past, self.future = windows.draw(4)
        self.losses = []

    def draw(self, model, step):
        with torch.no_grad():
            forecast = model(self.past)
        figure, axes = plt.subplots(1, 3, figsize=(9, 3))
        axes[0].plot(self.losses)
        axes[0].set_title(f"step {step}")
        for axis, past, future, quantiles in zip(axes[1:], self.past, self.future, forecast):
            axis.plot(torch.cat([past, future]).numpy())
            days = range(len(past), len(past) + len(future))
            axis.fill_between(days, quantiles[0].numpy(), quantiles[2].numpy(), alpha=0.3)
        figure.savefig(self.folder / "latest.png")
        plt.close(figure)


def train(args, folder):
    windows = Windows(measurements(60, 1500, np.random.default_rng(5)), args.past, args.future)
    model = Dilated(args.future, args.width, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=args.steps)
    figures = Figures(folder, windows)
    for step in range(args.steps):
        past, future = windows.draw(args.batch)
        loss = pinball(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        figures.losses.append(loss.item())
        if step % args.draw_every == args.draw_every - 1:
            figures.draw(model, step + 1)
            print(step + 1, f"{np.mean(figures.losses[-20:]):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--past", type=int, default=120)
    parser.add_argument("--future", type=int, default=30)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--draw-every", type=int, default=15)
    parser.add_argument("--fixed", action="store_true", help="draw every 200 steps")
    args = parser.parse_args()
    if args.fixed:
        args.draw_every = 200
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory() as folder:
        train(args, folder)
