"""The screen beside the training: a Textual app that renders snapshots and computes no figure of its own."""
