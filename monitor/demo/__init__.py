"""The demonstrations of `gpumon demo`: real trainings in a temporary folder, with a daemon of their own."""
