"""What the machine itself does: CPU, memory, disks, network, limits, and the training processes."""
