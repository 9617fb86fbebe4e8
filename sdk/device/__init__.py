"""Device time of a training loop: events at its marks, kernels in a short window, synchronizations."""
