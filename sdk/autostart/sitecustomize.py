"""First in PYTHONPATH under `gpumon run`: prepares the auto way, then hands over to the site's own
sitecustomize as if this one were not there. A Python without torch pays for this file and no more."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = "_gpumon_sdk"


class _Finder(importlib.abc.MetaPathFinder):
    """Finds our package under its private name, and waits for torch."""

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        if fullname == _PACKAGE:
            folder = os.path.dirname(_HERE)
            return importlib.util.spec_from_file_location(
                _PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
            )
        if fullname == "torch" and _wanted() and _start():
            return importlib.util.find_spec(fullname)  # again, now that the SDK waits for it
        return None


def _wanted() -> bool:
    return os.environ.get("GPUMON_AUTO") == "1" and os.environ.get("GPUMON_DISABLE", "") in ("", "0")


_started = False


def _start() -> bool:
    """Torch is about to be imported: only now is the SDK worth its milliseconds."""
    global _started
    if _started:
        return False
    _started = True
    importlib.import_module(_PACKAGE).TrainingMonitor.auto()
    return True


def _chain() -> None:
    """Run the sitecustomize we stand in front of."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or spec.origin == __file__:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.meta_path.insert(0, _Finder())
_chain()
