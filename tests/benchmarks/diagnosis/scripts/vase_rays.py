"""A vase on a table, learned from views of it: a small radiance field, rays drawn from one picture a step."""

import argparse
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    views: int = 10
    height: int = 360
    width: int = 360
    near: float = 1.5
    far: float = 4.5
    n_rand: int = 320
    n_samples: int = 32
    multires: int = 6
    multires_views: int = 3
    netwidth: int = 64
    netdepth: int = 4
    lrate: float = 1.5e-3
    lrate_decay: float = 0.2
    n_iters: int = 380
    i_print: int = 40
    seed: int = 59


def pose_spherical(theta, phi, radius):
    """Camera to world, looking at the origin."""
    eye = radius * np.array([math.cos(phi) * math.cos(theta), math.cos(phi) * math.sin(theta), math.sin(phi)])
    back = eye / np.linalg.norm(eye)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    pose = np.stack([right, np.cross(back, right), back, eye], 1)
    return torch.from_numpy(pose.astype(np.float32))


def get_rays(height, width, focal, c2w):
    """Origin and direction of the ray through every pixel of a view."""
    j, i = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return rays_through(i, j, height, width, focal, c2w)


def rays_through(i, j, height, width, focal, c2w):
    dirs = torch.stack([(i - width * 0.5) / focal, -(j - height * 0.5) / focal, -torch.ones(i.shape)], -1)
    rays_d = torch.sum(dirs[..., None, :] * c2w[:, :3], -1)
    rays_o = c2w[:, 3].expand(rays_d.shape)
    return rays_o, rays_d


def synthetic_views(cfg):
    """A ball with stripes under a lamp, seen from all around."""
    focal = 0.9 * cfg.width
    poses = [pose_spherical(2 * math.pi * n / cfg.views, 0.5, 3.0) for n in range(cfg.views)]
    images = []
    for pose in poses:
        o, d = get_rays(cfg.height, cfg.width, focal, pose)
        d = F.normalize(d, dim=-1)
        b = (o * d).sum(-1)
        disc = b.square() - (o.square().sum(-1) - 1.0)
        hit = o + (-b - disc.clamp(min=0).sqrt())[..., None] * d
        shade = (hit @ torch.tensor([0.3, 0.5, 0.8])).clamp(min=0.1)[..., None]
        colour = 0.5 + 0.5 * torch.sin(6 * hit + torch.tensor([0.0, 1.0, 2.0]))
        images.append(torch.where((disc > 0)[..., None], shade * colour, torch.ones(3)))
    return torch.stack(images), torch.stack(poses), focal


class Embedder(nn.Module):
    def __init__(self, multires):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(multires))
        self.out_dim = 3 + 6 * multires

    def forward(self, x):
        angles = (x[..., None, :] * self.bands[:, None]).flatten(-2)
        return torch.cat([x, angles.sin(), angles.cos()], -1)


class RadianceField(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed, self.embed_views = Embedder(cfg.multires), Embedder(cfg.multires_views)
        widths = [self.embed.out_dim] + [cfg.netwidth] * cfg.netdepth
        self.pts_linears = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.alpha_linear = nn.Linear(cfg.netwidth, 1)
        nn.init.constant_(self.alpha_linear.bias, 0.3)
        self.views_linear = nn.Linear(cfg.netwidth + self.embed_views.out_dim, cfg.netwidth // 2)
        self.rgb_linear = nn.Linear(cfg.netwidth // 2, 3)

    def forward(self, pts, viewdirs):
        h = self.embed(pts)
        for linear in self.pts_linears:
            h = F.relu(linear(h))
        alpha = self.alpha_linear(h).squeeze(-1)
        views = self.embed_views(viewdirs)[:, None].expand(-1, pts.shape[1], -1)
        h = F.relu(self.views_linear(torch.cat([h, views], -1)))
        return self.rgb_linear(h).sigmoid(), alpha


def render_rays(field, rays_o, rays_d, cfg):
    edges = torch.linspace(cfg.near, cfg.far, cfg.n_samples + 1)
    z = edges[:-1] + (edges[1] - edges[0]) * torch.rand(len(rays_o), cfg.n_samples)
    pts = rays_o[:, None] + rays_d[:, None] * z[..., None]
    rgb, sigma = field(pts, F.normalize(rays_d, dim=-1))
    gaps = torch.cat([z[:, 1:] - z[:, :-1], torch.full_like(z[:, :1], 1e3)], 1)
    alpha = 1 - torch.exp(-F.relu(sigma) * gaps * rays_d.norm(dim=-1, keepdim=True))
    through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], 1), 1)
    weights = alpha * through
    return (weights[..., None] * rgb).sum(1) + (1 - weights.sum(1, keepdim=True))


class WholeView:
    """Rays of the view, of which some are taken."""

    def __init__(self, images, poses, focal, cfg):
        self.images, self.poses, self.focal, self.cfg = images, poses, focal, cfg

    def draw(self):
        cfg = self.cfg
        view = np.random.choice(len(self.images))
        target = self.images[view]
        rays_o, rays_d = get_rays(cfg.height, cfg.width, self.focal, self.poses[view])
        coords = torch.stack(
            torch.meshgrid(torch.arange(cfg.height), torch.arange(cfg.width), indexing="ij"), -1
        ).reshape(-1, 2)
        chosen = np.random.choice(coords.shape[0], size=[cfg.n_rand], replace=False)
        rows, cols = coords[chosen].unbind(1)
        return rays_o[rows, cols], rays_d[rows, cols], target[rows, cols]


class ChosenPixels(WholeView):
    """Pixels first, and only then their rays."""

    def __init__(self, *args):
        super().__init__(*args)
        self.rng = np.random.default_rng(self.cfg.seed)

    def draw(self):
        cfg = self.cfg
        view = np.random.choice(len(self.images))
        chosen = self.rng.choice(cfg.height * cfg.width, size=cfg.n_rand, replace=False)
        rows, cols = torch.from_numpy(chosen // cfg.width), torch.from_numpy(chosen % cfg.width)
        rays = rays_through(cols, rows, cfg.height, cfg.width, self.focal, self.poses[view])
        return *rays, self.images[view][rows, cols]


def train(cfg, source):
    images, poses, focal = synthetic_views(cfg)
    source = source(images, poses, focal, cfg)
    field = RadianceField(cfg)
    optimizer = torch.optim.Adam(field.parameters(), lr=cfg.lrate, betas=(0.9, 0.999), fused=True)
    for step in range(1, cfg.n_iters + 1):
        rays_o, rays_d, target = source.draw()
        rgb = render_rays(field, rays_o, rays_d, cfg)
        loss = F.mse_loss(rgb, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] = cfg.lrate * cfg.lrate_decay ** (step / cfg.n_iters)
        if step % cfg.i_print == 0:
            print(f"[TRAIN] Iter: {step} Loss: {loss.item():.4f} PSNR: {-10 * math.log10(loss.item()):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--n_iters", type=int, default=Config.n_iters)
    parser.add_argument("--fixed", action="store_true", help="make only the rays that are taken")
    args = parser.parse_args()
    torch.manual_seed(Config.seed)
    np.random.seed(Config.seed)
    train(Config(n_iters=args.n_iters), ChosenPixels if args.fixed else WholeView)
