"""Run a script with Weights & Biases beside it, offline, the way a user would: one logged row a step.

with_wandb.py SCRIPT ARGUMENTS…
"""

import runpy
import sys

import wandb
from torch.optim.optimizer import register_optimizer_step_post_hook

steps = 0


def log(*_: object) -> None:
    global steps
    steps += 1
    run.log({"step": steps})


run = wandb.init(mode="offline", project="price")
register_optimizer_step_post_hook(log)
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    run.finish()
