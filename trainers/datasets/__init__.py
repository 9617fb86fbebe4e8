"""Data: plans (which samples make a batch), sources (where batches come from), readers, caches."""
