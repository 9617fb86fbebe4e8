"""What makes a loop faster without changing its results: device set-up, compile, optimizer, memory."""
