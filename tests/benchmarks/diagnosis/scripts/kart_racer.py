"""Karts on a winding track: proximal policy optimization with continuous steering, an agent and its memory in one file."""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Normal

RAYS, FRAMES = 64, 3


class KartTrack:
    """A few karts at once; each sees its distance to the kerb along rays, in the last three frames."""

    def __init__(self, karts, seed):
        self.rng = np.random.default_rng(seed)
        self.karts = karts
        self.rays = np.linspace(-math.pi, math.pi, RAYS, endpoint=False, dtype=np.float32)
        self.place = np.zeros(karts, dtype=np.float32)
        self.offset = self.rng.uniform(-0.5, 0.5, karts).astype(np.float32)
        self.heading = np.zeros(karts, dtype=np.float32)
        self.speed = np.full(karts, 0.5, dtype=np.float32)
        self.frames = np.repeat(self._look()[:, None], FRAMES, 1)

    def _look(self):
        bend = np.sin(0.3 * self.place)[:, None]
        angle = self.rays[None] + self.heading[:, None] - 0.5 * bend
        side = np.where(np.sin(angle) > 0, 1 - self.offset[:, None], 1 + self.offset[:, None])
        return np.minimum(side / (np.abs(np.sin(angle)) + 0.05), 4.0).astype(np.float32)

    def observe(self):
        return self.frames.reshape(self.karts, -1).copy()

    def step(self, actions):
        steer, throttle = np.tanh(actions).T
        bend = 0.3 * np.sin(0.3 * self.place)
        self.heading = 0.9 * self.heading + 0.2 * steer - 0.1 * bend
        self.speed = np.clip(self.speed + 0.05 * throttle, 0.1, 1.5)
        self.place = self.place + self.speed * np.cos(self.heading)
        self.offset = self.offset + 0.3 * self.speed * np.sin(self.heading)
        out = np.abs(self.offset) > 1
        reward = (self.speed * np.cos(self.heading) - self.offset**2 - 2.0 * out).astype(np.float32)
        self.offset[out] = self.rng.uniform(-0.5, 0.5, out.sum())
        self.heading[out], self.speed[out] = 0.0, 0.5
        self.frames = np.concatenate([self.frames[:, 1:], self._look()[:, None]], 1)
        return self.observe(), reward, out


class PPOMemory:
    FIELDS = ("states", "actions", "log_probs", "values", "advantages", "returns")

    def __init__(self, batch_size):
        self.batch_size = batch_size
        self.clear()

    def clear(self):
        for name in (*self.FIELDS, "rewards", "dones"):
            setattr(self, name, [])

    def store(self, **row):
        for name, value in row.items():
            getattr(self, name).append(value)

    def flatten(self):
        """From (time, kart) to one list of rows."""
        for name in self.FIELDS:
            setattr(self, name, [one for row in getattr(self, name) for one in row])

    def __len__(self):
        return len(self.states)

    def generate_batches(self):
        order = np.random.permutation(len(self))
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            yield [
                torch.tensor([getattr(self, name)[i] for i in rows], dtype=torch.float32)
                for name in self.FIELDS
            ]


class TensorMemory(PPOMemory):
    def flatten(self):
        self.tensors = [torch.from_numpy(np.concatenate(getattr(self, name))) for name in self.FIELDS]

    def generate_batches(self):
        order = torch.from_numpy(np.random.permutation(len(self.tensors[0])))
        for rows in order.split(self.batch_size):
            yield [tensor[rows] for tensor in self.tensors]


def mlp(before, after, gain, hidden=256):
    layers = [nn.Linear(before, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, after)]
    for layer, one in zip(layers, (math.sqrt(2), math.sqrt(2), gain)):
        nn.init.orthogonal_(layer.weight, one)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


class ActorCritic(nn.Module):
    def __init__(self, state_dim, action_dim):
        super().__init__()
        self.actor, self.critic = mlp(state_dim, action_dim, 0.01), mlp(state_dim, 1, 1.0)
        self.log_std = nn.Parameter(torch.full((action_dim,), -0.5))

    def policy(self, states):
        return Normal(self.actor(states), self.log_std.exp())

    def value(self, states):
        return self.critic(states).squeeze(-1)


class Agent:
    def __init__(self, args):
        self.args = args
        self.net = ActorCritic(RAYS * FRAMES, 2)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=args.lr, eps=1e-5, fused=True)
        self.memory = (TensorMemory if args.fixed else PPOMemory)(args.batch_size)

    @torch.no_grad()
    def choose(self, observation):
        states = torch.from_numpy(observation)
        policy = self.net.policy(states)
        actions = policy.sample()
        return (x.numpy() for x in (actions, policy.log_prob(actions).sum(-1), self.net.value(states)))

    def estimate(self, last):
        """Generalized advantages, backwards in time."""
        memory, running, following = self.memory, 0.0, last
        for t in reversed(range(len(memory.rewards))):
            alive = 1.0 - memory.dones[t].astype(np.float32)
            delta = memory.rewards[t] + self.args.gamma * following * alive - memory.values[t]
            running = delta + self.args.gamma * self.args.lam * alive * running
            memory.advantages.append(running)
            following = memory.values[t]
        memory.advantages.reverse()
        memory.returns = [a + v for a, v in zip(memory.advantages, memory.values)]

    def learn(self, last):
        self.estimate(last)
        self.memory.flatten()
        for _ in range(self.args.n_epochs):
            for states, actions, old, _, advantages, returns in self.memory.generate_batches():
                policy = self.net.policy(states)
                ratio = (policy.log_prob(actions).sum(-1) - old).exp()
                advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
                clipped = ratio.clamp(1 - self.args.clip, 1 + self.args.clip)
                actor_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
                critic_loss = (self.net.value(states) - returns).square().mean()
                loss = actor_loss + 0.5 * critic_loss - 0.001 * policy.entropy().mean()
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
                self.optimizer.step()
        self.memory.clear()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--karts", type=int, default=16)
    parser.add_argument("--horizon", type=int, default=128)
    parser.add_argument("--updates", type=int, default=28)
    parser.add_argument("--n-epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--lam", type=float, default=0.95)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--fixed", action="store_true", help="a rollout becomes tensors once, as arrays")
    args = parser.parse_args()
    torch.manual_seed(5)
    np.random.seed(5)
    track, agent = KartTrack(args.karts, seed=5), Agent(args)
    observation = track.observe()
    for update in range(1, args.updates + 1):
        gained = 0.0
        for _ in range(args.horizon):
            actions, log_probs, values = agent.choose(observation)
            following, rewards, dones = track.step(actions)
            agent.memory.store(
                states=observation,
                actions=actions,
                log_probs=log_probs,
                values=values,
                rewards=rewards,
                dones=dones,
            )
            observation = following
            gained += rewards.mean()
        _, _, last = agent.choose(observation)
        loss = agent.learn(last)
        if update % 4 == 0:
            print(f"update {update}: reward {gained / args.horizon:.3f} loss {loss:.3f}")


if __name__ == "__main__":
    main()
