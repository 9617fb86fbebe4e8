"""gpumon's daemon, screens and commands. Collectors produce a `Snapshot`; everything else consumes it."""

__version__ = "0.1.0"
