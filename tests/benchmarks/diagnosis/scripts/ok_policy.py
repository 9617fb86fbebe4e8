"""REINFORCE on many games at once: acting needs the policy in every step."""

import torch
from torch import nn

GAMES, MOVES = 256, 8
policy = nn.Sequential(nn.Linear(32, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4, fused=True)
push = torch.randn(4, 32) * 0.1


def play():
    """All games side by side, a few moves each."""
    state, chosen, rewards = torch.randn(GAMES, 32), [], []
    for _ in range(MOVES):
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        state = state + push[action]
        chosen.append(choice.log_prob(action))
        rewards.append(-state.detach().square().mean(1))
    return torch.stack(chosen), torch.stack(rewards).flip(0).cumsum(0).flip(0)


for update in range(100):
    logs, returns = play()
    advantage = (returns - returns.mean()) / returns.std()
    loss = -(logs * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
