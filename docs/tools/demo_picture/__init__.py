"""Records `gpumon demo` as a moving picture."""
