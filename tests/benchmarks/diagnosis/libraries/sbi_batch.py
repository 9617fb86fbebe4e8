"""Neural posterior estimation with sbi that learns from ten simulations at a time."""

import sys

import torch
from sbi.inference import NPE
from sbi.utils import BoxUniform

torch.manual_seed(0)
prior = BoxUniform(low=-2 * torch.ones(4), high=2 * torch.ones(4))
theta = prior.sample((4000,))
x = torch.cat([theta**2, theta.sin()], 1) + 0.1 * torch.randn(4000, 8)
fixed = "--fixed" in sys.argv
inference = NPE(prior=prior, show_progress_bars=False).append_simulations(theta, x)
inference.train(
    training_batch_size=200 if fixed else 10, max_num_epochs=80 if fixed else 6, stop_after_epochs=100
)
print(inference.summary["training_loss"][-1])
