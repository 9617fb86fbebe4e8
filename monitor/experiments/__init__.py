"""Experiments on a training script: trials of settings against its baseline, and what they show."""
