"""REINFORCE where the world itself is a tensor program on the GPU."""

import torch
from torch import nn

torch.manual_seed(9)
WORLDS, HORIZON = 512, 4
policy = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)).cuda()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3, fused=True)


def world_step(state, push):
    position, speed, goal = state.unbind(1)
    speed = 0.9 * speed + 0.1 * push
    position = position + speed
    return torch.stack([position, speed, goal], 1), -(position - goal).abs()


for episode in range(160):
    state = torch.randn(WORLDS, 3, device="cuda")
    log_probability, reward = 0.0, 0.0
    for _ in range(HORIZON):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            mean, spread = policy(state).float().unbind(1)
        noise = torch.randn_like(mean)
        push = mean + nn.functional.softplus(spread) * noise
        log_probability = log_probability - 0.5 * noise.square() - nn.functional.softplus(spread).log()
        state, r = world_step(state, push.detach())
        reward = reward + r
    advantage = (reward - reward.mean()).detach()
    loss = -(log_probability * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 50 == 49:
        print(episode + 1, reward.mean().item())
