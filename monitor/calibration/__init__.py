"""What work costs on this machine: measured once, kept in a file, used by predictions."""
