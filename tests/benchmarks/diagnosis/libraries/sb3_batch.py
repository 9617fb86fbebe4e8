"""PPO of Stable-Baselines3 that learns from four moments at a time."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys

import gymnasium
import numpy
from gymnasium import spaces
from stable_baselines3 import PPO


class Drift(gymnasium.Env):
    """Stay near zero."""

    observation_space = spaces.Box(-10.0, 10.0, (8,))
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.left = self.np_random.normal(size=8).astype(numpy.float32), 100
        return self.state, {}

    def step(self, action):
        self.left -= 1
        self.state = numpy.clip(self.state + 0.1 * (int(action) - 1), -10, 10).astype(numpy.float32)
        return self.state, -float(abs(self.state).sum()), False, self.left == 0, {}


fixed = "--fixed" in sys.argv
agent = PPO(
    "MlpPolicy", Drift(), n_steps=512, batch_size=256 if fixed else 4, n_epochs=10,
    policy_kwargs={"net_arch": [256, 256]}, device="cpu",
)  # fmt: skip
agent.learn(512 * (12 if fixed else 2))
