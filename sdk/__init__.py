"""What a training script imports: ``from sdk import TrainingMonitor``."""

__version__ = "0.1.0"

from .monitor import TrainingMonitor
from .summary import Summary

__all__ = ["Summary", "TrainingMonitor", "__version__"]
