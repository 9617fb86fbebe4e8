"""History in SQLite: runs, steps, readings, and the ledger of predictions."""
