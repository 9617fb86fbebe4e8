"""The one training loop, and what stands around it: updates, checkpoints, ranks, progress, watch."""
