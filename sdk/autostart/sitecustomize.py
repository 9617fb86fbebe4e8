"""First in PYTHONPATH under `gpumon run`: prepares automatic instrumentation, then runs the site's own
sitecustomize as if this one did not exist. A Python without torch pays for this file only: it imports nothing
that the interpreter has not already imported."""

import _frozen_importlib
import _frozen_importlib_external
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = "_gpumon_sdk"


class _Finder:
    """Finds our package under its private name, and waits for torch."""

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        if fullname == _PACKAGE:
            folder = os.path.dirname(_HERE)
            return _frozen_importlib_external.spec_from_file_location(
                _PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
            )
        if fullname == "torch" and _start():
            import importlib.util

            return importlib.util.find_spec(fullname)  # again, now that the SDK is waiting for it
        return None


_SEEN = os.environ.get("GPUMON_SEEN")
"""Read now: the script may empty its environment."""


def _wanted() -> bool:
    if os.environ.get("GPUMON_AUTO") != "1":
        _tell(b"e")
        return False
    return os.environ.get("GPUMON_DISABLE", "") in ("", "0")


_started = False


def _start() -> bool:
    """torch is about to be imported: only now is the SDK worth its milliseconds."""
    global _started
    if _started:
        return False
    _started = True
    _tell(b"t")
    if not _wanted():
        return False
    try:
        import importlib
        import time

        began = time.thread_time_ns()
        monitor = importlib.import_module(_PACKAGE).TrainingMonitor.auto()
        type(monitor.session).opened = staticmethod(lambda done: _tell(b"r" if done else b"n"))
        monitor.session.recorder.spent_ns += time.thread_time_ns() - began
    except Exception as error:  # noqa: BLE001 — whatever fails here, the script gets its torch
        print(f"gpumon: this process is not recorded: {type(error).__name__}: {error}", file=sys.stderr)
    return True


def _tell(what: bytes) -> None:
    """Let `gpumon run` know how far this process got, so that it can say what it has not seen."""
    if not _SEEN:
        return
    try:
        fd = os.open(_SEEN, os.O_WRONLY | os.O_APPEND)
        os.write(fd, what)
        os.close(fd)
    except OSError:
        return


def _chain() -> None:
    """Run the sitecustomize that ours hides."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = _frozen_importlib_external.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or spec.origin == __file__:
        return
    module = _frozen_importlib.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.meta_path.insert(0, _Finder())
_tell(b"p")
_chain()
