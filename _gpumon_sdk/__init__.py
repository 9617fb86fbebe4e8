"""Our SDK under a unique name, for processes in which `sdk` is somebody else's package.

It replaces itself with the package in the folder `sdk` beside it. A spawned loader worker, which imports by
name, finds the SDK under this one.
"""

import importlib.util
import sys
from pathlib import Path

_folder = Path(__file__).parents[1] / "sdk"
_spec = importlib.util.spec_from_file_location(
    __name__, _folder / "__init__.py", submodule_search_locations=[str(_folder)]
)
if _spec is None or _spec.loader is None:
    raise ImportError(f"gpumon's sdk is not in {_folder}")
sys.modules[__name__] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[__name__])
