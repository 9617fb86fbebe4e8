"""The command `gpumon`: runs our packages even if PYTHONPATH contains another `monitor` or `sdk`."""

from __future__ import annotations

from .ours import pin


def main() -> int:
    for package in ("sdk", "monitor"):
        pin(package)
    from monitor.cli.main import main as run

    return run()
