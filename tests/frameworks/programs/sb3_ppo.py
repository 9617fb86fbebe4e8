"""Stable-Baselines3: PPO plays, then trains on what it played."""

from __future__ import annotations

from typing import Any

from tests.frameworks.reference import REST, Reference


def train(reference: Reference, with_callback: bool) -> None:
    import gymnasium
    import numpy
    import torch
    from gymnasium import spaces
    from stable_baselines3 import PPO
    from stable_baselines3.common.policies import ActorCriticPolicy

    class Drift(gymnasium.Env[Any, Any]):
        """Stay near zero."""

        observation_space = spaces.Box(-10.0, 10.0, (8,))
        action_space = spaces.Discrete(3)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.state, self.left = self.np_random.normal(size=8).astype(numpy.float32), 100
            return self.state, {}

        def step(self, action: Any) -> Any:
            self.left -= 1
            self.state = numpy.clip(self.state + 0.1 * (int(action) - 1), -10, 10).astype(numpy.float32)
            return self.state, -float(abs(self.state).sum()), False, self.left == 0, {}

    reference.during(PPO, "collect_rollouts", "rollout", then=REST, whole=True)
    reference.begins(ActorCriticPolicy, "evaluate_actions", "forward")
    reference.during(torch.Tensor, "backward", "backward", then=REST)
    reference.during(torch.optim.Adam, "step", "optimizer", then=REST)
    network = {"net_arch": [256, 256]}
    agent = PPO(
        "MlpPolicy", Drift(), n_steps=128, batch_size=64, n_epochs=5, policy_kwargs=network, device="cpu"
    )
    agent.learn(128 * 10)
