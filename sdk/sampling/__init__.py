"""Sampling and profiling of a few steps: hot lines, call counts, and what the source says about them."""
