"""What the screens say: pure functions from a frame and a size to lines."""
