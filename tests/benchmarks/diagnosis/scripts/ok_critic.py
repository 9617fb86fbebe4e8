"""A Wasserstein GAN with gradient penalty: several critic steps for each generator step, double backward."""

from dataclasses import dataclass, field

import torch
from torch import autograd, nn


@dataclass
class Optim:
    lr: float = 2e-4
    betas: tuple[float, float] = (0.0, 0.9)


@dataclass
class Config:
    z: int = 64
    side: int = 16
    width: int = 24
    batch: int = 64
    n_critic: int = 4
    penalty: float = 10.0
    generator_steps: int = 60
    optim: Optim = field(default_factory=Optim)


class Critic(nn.Sequential):
    def __init__(self, width, side):
        super().__init__(
            nn.Conv2d(1, width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, 1),
            nn.InstanceNorm2d(2 * width, affine=True),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(2 * width * (side // 4) ** 2, 1),
        )


class Generator(nn.Sequential):
    def __init__(self, z, width, side):
        super().__init__(
            nn.Linear(z, 2 * width * (side // 4) ** 2),
            nn.Unflatten(1, (2 * width, side // 4, side // 4)),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, 2, 1),
            nn.Tanh(),
        )


class WGAN:
    def __init__(self, cfg):
        self.cfg = cfg
        self.critic, self.generator = Critic(cfg.width, cfg.side), Generator(cfg.z, cfg.width, cfg.side)
        self.critic_opt, self.generator_opt = self.adam(self.critic), self.adam(self.generator)

    def adam(self, net):
        return torch.optim.Adam(
            net.parameters(), lr=self.cfg.optim.lr, betas=self.cfg.optim.betas, fused=True
        )

    def gradient_penalty(self, real, fake):
        mix = torch.rand(len(real), 1, 1, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = autograd.grad(self.critic(between).sum(), between, create_graph=True)
        return (slope.flatten(1).norm(2, dim=1) - 1).pow(2).mean()

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.generator(torch.randn(len(real), self.cfg.z))
        distance = self.critic(real).mean() - self.critic(fake).mean()
        loss = -distance + self.cfg.penalty * self.gradient_penalty(real, fake)
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        return distance.detach()

    def generator_step(self):
        loss = -self.critic(self.generator(torch.randn(self.cfg.batch, self.cfg.z))).mean()
        self.generator_opt.zero_grad()
        loss.backward()
        self.generator_opt.step()


def main():
    cfg = Config()
    torch.manual_seed(33)
    pictures = nn.functional.interpolate(torch.randn(3000, 1, 4, 4), size=(cfg.side, cfg.side)).tanh()
    gan = WGAN(cfg)
    for step in range(cfg.generator_steps):
        for _ in range(cfg.n_critic):
            distance = gan.critic_step(pictures[torch.randint(len(pictures), (cfg.batch,))])
        gan.generator_step()
        if step % 10 == 0:
            print(f"{step}: distance {distance.item():.4f}")


if __name__ == "__main__":
    main()
