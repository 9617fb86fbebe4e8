"""`python -m tests.device [--out FOLDER] [--speeds JSON] script.py args…`: run the script with the device."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.device import Speeds, environment


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.device", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/device"), help="folder for truth and trace")
    parser.add_argument("--speeds", default="{}", help="JSON, e.g. '{\"kernel_us\": 50}'; see speeds.py")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="script.py args…")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, **environment(Speeds.from_json(asked.speeds), asked.out.resolve())}
    os.execve(sys.executable, [sys.executable, *asked.command], env)


if __name__ == "__main__":
    main()
