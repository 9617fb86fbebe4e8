"""What a training script imports: ``from sdk import TrainingMonitor``."""

__version__ = "0.1.0"
