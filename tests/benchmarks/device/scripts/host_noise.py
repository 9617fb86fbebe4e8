"""A small diffusion model with an average of its weights; the noise is drawn on the CPU."""

import argparse

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Denoiser(nn.Module):
    def __init__(self, channels=32):
        super().__init__()
        self.time = nn.Embedding(1000, channels)
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.middle = nn.Conv2d(channels, channels, 3, padding=1)
        self.last = nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, x, t):
        h = torch.relu(self.first(x) + self.time(t)[:, :, None, None])
        return self.last(torch.relu(self.middle(h)))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--fixed", action="store_true")
    return parser.parse_args()


args = parse()
torch.manual_seed(31)
betas = torch.linspace(1e-4, 0.02, 1000)
alphas = torch.cumprod(1 - betas, 0)
model = Denoiser().cuda()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
images = torch.rand(32, 3, 96, 96, device="cuda")
if args.fixed:
    alphas = alphas.cuda()
for step in range(args.steps):
    where = "cuda" if args.fixed else "cpu"
    t = torch.randint(0, 1000, (32,), device=where)
    noise = torch.randn(32, 3, 96, 96, device=where).cuda()
    a = alphas[t].cuda()[:, None, None, None]
    noisy = a.sqrt() * images + (1 - a).sqrt() * noise
    with torch.autocast("cuda", torch.bfloat16):
        loss = (model(noisy, t.cuda()) - noise).pow(2).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    ema.update_parameters(model)
print("loss", loss.item())
