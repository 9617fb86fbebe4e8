"""Trials inside one run: blocks of steps with a setting on and off, while the training goes on."""
