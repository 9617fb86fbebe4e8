"""Soft actor-critic on many arms at once: replay in tensors, two critics with slow copies, tuned entropy."""

import argparse
import copy

import torch
import torch.nn.functional as F
from torch import nn


class Arms:
    """n two-joint arms that reach for a point."""

    def __init__(self, n):
        self.angle, self.goal = torch.zeros(n, 2), torch.randn(n, 2)

    def observe(self):
        return torch.cat([self.angle.sin(), self.angle.cos(), self.goal], dim=1)

    def step(self, action):
        self.angle = self.angle + 0.2 * action
        first, both = self.angle[:, 0], self.angle.sum(1)
        tip = torch.stack([first.cos() + both.cos(), first.sin() + both.sin()], dim=1)
        apart = (tip - self.goal).norm(dim=1)
        reached = apart < 0.1
        self.goal = torch.where(reached[:, None], torch.randn_like(self.goal), self.goal)
        return self.observe(), -apart + 5 * reached.float()


class Replay:
    def __init__(self, capacity, widths):
        self.store = {name: torch.zeros(capacity, width) for name, width in widths.items()}
        self.capacity, self.count = capacity, 0

    def extend(self, **values):
        n = len(next(iter(values.values())))
        rows = torch.arange(self.count, self.count + n) % self.capacity
        for name, value in values.items():
            self.store[name][rows] = value
        self.count += n

    def sample(self, n):
        rows = torch.randint(min(self.count, self.capacity), (n,))
        return {name: value[rows] for name, value in self.store.items()}


def mlp(n_in, hidden, n_out):
    return nn.Sequential(
        nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_out)
    )


class Actor(nn.Module):
    def __init__(self, n_state, n_action, hidden):
        super().__init__()
        self.net = mlp(n_state, hidden, 2 * n_action)

    def forward(self, state):
        mean, log_std = self.net(state).chunk(2, dim=1)
        law = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = law.rsample()
        action = raw.tanh()
        log_p = (law.log_prob(raw) - (1 - action.pow(2) + 1e-6).log()).sum(1, keepdim=True)
        return action, log_p


class SAC:
    def __init__(self, n_state, n_action, args):
        self.args = args
        self.actor = Actor(n_state, n_action, args.hidden)
        self.critics = nn.ModuleList([mlp(n_state + n_action, args.hidden, 1) for _ in range(2)])
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = torch.zeros((), requires_grad=True)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=args.lr, fused=True)
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=args.lr, fused=True)
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=args.lr)

    def values(self, critics, state, action):
        both = torch.cat([state, action], dim=1)
        return [critic(both) for critic in critics]

    def update(self, batch):
        alpha = self.log_alpha.detach().exp()
        with torch.no_grad():
            following, log_p = self.actor(batch["following"])
            low = torch.minimum(*self.values(self.targets, batch["following"], following))
            target = batch["reward"] + self.args.gamma * (low - alpha * log_p)
        critic_loss = sum(
            F.mse_loss(q, target) for q in self.values(self.critics, batch["state"], batch["action"])
        )
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        action, log_p = self.actor(batch["state"])
        actor_loss = (
            alpha * log_p - torch.minimum(*self.values(self.critics, batch["state"], action))
        ).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        alpha_loss = -(self.log_alpha * (log_p.detach() - 2)).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.targets.parameters()), list(self.critics.parameters()), self.args.tau
            )
        return critic_loss.detach()

    @torch.no_grad()
    def act(self, state):
        return self.actor(state)[0]


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--updates", type=int, default=240)
    cli.add_argument("--arms", type=int, default=128)
    cli.add_argument("--batch-size", type=int, default=512)
    cli.add_argument("--hidden", type=int, default=256)
    cli.add_argument("--lr", type=float, default=3e-4)
    cli.add_argument("--gamma", type=float, default=0.97)
    cli.add_argument("--tau", type=float, default=0.01)
    args = cli.parse_args()
    torch.manual_seed(44)
    arms = Arms(args.arms)
    state = arms.observe()
    agent = SAC(state.shape[1], 2, args)
    replay = Replay(50_000, {"state": 6, "action": 2, "reward": 1, "following": 6})
    for update in range(args.updates):
        action = agent.act(state)
        following, reward = arms.step(action)
        replay.extend(state=state, action=action, reward=reward[:, None], following=following)
        state = following
        loss = agent.update(replay.sample(args.batch_size))
        if update % 40 == 0:
            print(f"{update}: critic {loss.item():.4f}")


if __name__ == "__main__":
    main()
