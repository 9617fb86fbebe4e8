"""Checks of the machine gpumon runs on, each with a stable id and a remedy."""
