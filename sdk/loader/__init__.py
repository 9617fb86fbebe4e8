"""Everything about the DataLoader: its waits, the time spent inside it, its workers, the batch size."""
