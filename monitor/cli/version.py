"""`gpumon version`: versions of gpumon and its dependencies."""

from __future__ import annotations

import argparse
import json
import platform
from importlib import metadata

from monitor import __version__

PARTS = ("nvidia-ml-py", "psutil", "prometheus-client", "msgspec", "starlette", "uvicorn", "textual", "torch")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable")


def run(args: argparse.Namespace) -> int:
    versions = {"gpumon": __version__, "python": platform.python_version()}
    versions |= {part: found for part in PARTS if (found := _version(part))}
    if args.json:
        print(json.dumps(versions))
    else:
        for part, found in versions.items():
            print(f"{part:<18} {found}")
    return 0


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
