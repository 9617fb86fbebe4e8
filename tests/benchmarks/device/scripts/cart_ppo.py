"""PPO on carts: the policy is on the GPU, the carts are simulated one by one in Python."""

import math
import sys

import torch
from torch import nn
from torch.distributions import Categorical

VECTORISED = "--fixed" in sys.argv
ENVS, HORIZON, UPDATES = 16, 12, 110
torch.manual_seed(0)


class Cart:
    def __init__(self):
        self.state = [0.0, 0.0, 0.03, 0.0]

    def step(self, action):
        x, v, angle, spin = self.state
        for _ in range(400):  # small integration steps
            force = 10.0 if action else -10.0
            spin += 0.00005 * (9.8 * math.sin(angle) - force * math.cos(angle))
            angle += 0.00005 * spin
            v += 0.00005 * force
            x += 0.00005 * v
        self.state = [x, v, angle, spin] if abs(angle) < 0.3 else [0.0, 0.0, 0.03, 0.0]
        return self.state, 1.0 - abs(angle)


def step_all(state, action):
    force = action.float() * 20 - 10
    x, v, angle, spin = state.unbind(1)
    spin = spin + 0.012 * (9.8 * angle.sin() - force * angle.cos())
    angle = angle + 0.012 * spin
    state = torch.stack([x + 0.012 * v, v + 0.012 * force, angle, spin], 1)
    return torch.where(angle.abs().unsqueeze(1) < 0.3, state, torch.zeros_like(state)), 1 - angle.abs()


policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)).cuda()
value = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1)).cuda()
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=3e-4)
carts = [Cart() for _ in range(ENVS)]
observation = torch.zeros(ENVS, 4, device="cuda")
for update in range(UPDATES):
    memory = []
    for _ in range(HORIZON):
        with torch.no_grad():
            choice = Categorical(logits=policy(observation), validate_args=False)
            action = choice.sample()
        if VECTORISED:
            after, reward = step_all(observation, action)
        else:
            results = [cart.step(a) for cart, a in zip(carts, action.cpu().tolist())]
            after = torch.tensor([s for s, _ in results], device="cuda")
            reward = torch.tensor([r for _, r in results], device="cuda")
        memory.append((observation, action, choice.log_prob(action), reward))
        observation = after
    seen, actions, old, rewards = (torch.cat(parts) for parts in zip(*memory))
    for _ in range(3):
        now = Categorical(logits=policy(seen), validate_args=False)
        estimate = value(seen).squeeze(1)
        gain = (rewards - estimate).detach()
        ratio = (now.log_prob(actions) - old).exp()
        loss = (
            -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() + (estimate - rewards).pow(2).mean()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("mean reward", rewards.mean().item())
