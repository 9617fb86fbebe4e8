"""What surrounds the training loop (`trainers/loop.py`): checkpoints, ranks, progress, records, marks."""
