"""First in PYTHONPATH of a process that should have the stand-in device: waits for torch, then hands over to
the sitecustomize it hides. Without torch, a process pays only for this file."""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _chain() -> None:
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("GPUMON_STANDIN_LIBRARY"):
    import standin.hook

    standin.hook.wait_for_torch()
_chain()
