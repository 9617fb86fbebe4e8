"""torch's profiler: whose turn it is, and windows somebody asks for from outside (`gpumon profile`)."""
