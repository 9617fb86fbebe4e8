"""Semi-supervised training in small parts."""
