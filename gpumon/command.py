"""The command `gpumon`: ours, even where a folder on PYTHONPATH has a `monitor` or `sdk` of its own."""

from __future__ import annotations

from .ours import pin


def main() -> int:
    for package in ("sdk", "monitor"):
        pin(package)
    from monitor.cli.main import main as run

    return run()
