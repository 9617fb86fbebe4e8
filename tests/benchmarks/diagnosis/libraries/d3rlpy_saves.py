"""Offline reinforcement learning with d3rlpy: an epoch, and so a saved model, every 5 steps."""

import os
import sys
import tempfile

import d3rlpy
import numpy

os.chdir(tempfile.mkdtemp())
d3rlpy.seed(0)
draw = numpy.random.default_rng(0)
observations = draw.normal(size=(5000, 16)).astype("float32")
actions = draw.uniform(-1, 1, size=(5000, 4)).astype("float32")
terminals = (numpy.arange(5000) % 100 == 99).astype("float32")
dataset = d3rlpy.dataset.MDPDataset(observations, actions, draw.normal(size=5000), terminals)
learner = d3rlpy.algos.TD3PlusBCConfig(batch_size=256).create(device="cpu:0")
found = learner.fit(
    dataset, n_steps=1000, n_steps_per_epoch=250 if "--fixed" in sys.argv else 5, show_progress=False,
)  # fmt: skip
print(found[-1])
