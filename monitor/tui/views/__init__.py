"""What the screens show: pure functions from a frame and a size to lines."""
