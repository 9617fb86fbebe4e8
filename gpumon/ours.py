"""Finding our own packages, which are beside this one, even if others share their names."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

HOME = Path(__file__).resolve().parents[1]
PRIVATE = "_gpumon_sdk"
"""The SDK's name where `sdk` may be somebody else's; `gpumon run` uses it, too."""


def sdk() -> ModuleType:
    """The SDK, one copy per process: the loaded one, else the one an import would find, else under its
    private name."""
    for name in (PRIVATE, "sdk"):
        loaded = sys.modules.get(name)
        if loaded is not None and is_ours(getattr(loaded, "__spec__", None), "sdk"):
            return loaded
    for name in (PRIVATE, "sdk"):
        if is_ours(_found(name), "sdk"):
            return importlib.import_module(name)
    return importlib.import_module(PRIVATE)


def is_ours(spec: ModuleSpec | None, package: str) -> bool:
    """Whether this is the package in the folder beside us."""
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).resolve() == HOME / package / "__init__.py"


def _found(name: str) -> ModuleSpec | None:
    """What importing a package that is not loaded would find."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):  # somebody's module without a spec
        return None


def pin(package: str) -> None:
    """Make this process import our `package` from now on, whatever precedes it on the path."""
    folder = HOME / package
    spec = importlib.util.spec_from_file_location(
        package, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"gpumon's {package} is not in {folder}")
    sys.modules[package] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[package])


if __name__ == "__main__":  # python -P ours.py MODULE WORDS…: run one of our modules as a program
    import runpy

    for package in ("sdk", "monitor"):
        pin(package)
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
