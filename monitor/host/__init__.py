"""Readings of the machine: CPU, memory, disks, network, limits, and the training processes."""
