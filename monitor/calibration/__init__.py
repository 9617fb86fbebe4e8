"""What operations cost on this machine: measured once, kept in a file, used by predictions."""
