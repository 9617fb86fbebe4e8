"""Small trainings in which one thing goes wrong, for `gpumon demo --scenario`. Each is a script to read."""
