"""`make bench`: run every benchmark (or those named) one after another; each writes docs/benchmarks/."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import tests.benchmarks as here

NAMED = {"diagnosis-device": "device"}
"""Benchmarks that are called otherwise than their module."""


def main(asked: list[str]) -> int:
    names = [module.name for module in pkgutil.iter_modules(here.__path__) if module.name != "__main__"]
    chosen = [NAMED.get(name, name) for name in asked]
    unknown = set(chosen) - set(names)
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))} (there are: {', '.join(names)})")
        return 2
    failed = []
    for name in chosen or names:
        print(f"── {name}", flush=True)
        module = importlib.import_module(f"tests.benchmarks.{name}")
        if hasattr(module, "main") and module.main():
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
