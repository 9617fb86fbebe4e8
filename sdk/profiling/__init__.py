"""torch's profiler: whose turn it is, and windows requested from outside (`gpumon profile`)."""
