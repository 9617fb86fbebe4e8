"""What torch.compile must know about our marks, and what its counters tell us."""
