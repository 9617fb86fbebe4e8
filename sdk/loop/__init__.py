"""The training loop: `TrainingMonitor`, the recorder behind it, phases, and the run's summary."""
