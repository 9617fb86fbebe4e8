"""Everything about the DataLoader: its waits, the time inside it, its workers, the size of a batch."""
