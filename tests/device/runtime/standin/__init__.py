"""What runs inside a process that has the stand-in device."""
