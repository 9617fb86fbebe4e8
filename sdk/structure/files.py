"""Whose code a file is, the user's or a library's, and what to call it."""

from __future__ import annotations

import os
import sys
import sysconfig

_SDK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PATHS = sysconfig.get_paths()
_STANDARD = tuple(
    os.path.join(path, "")
    for path in {_PATHS["stdlib"], _PATHS["platstdlib"], os.path.realpath(_PATHS["stdlib"])}
)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_known: dict[str, bool] = {}


def is_user_file(name: str) -> bool:
    """Not the standard library, not an installed package, not ours, not generated code."""
    answer = _known.get(name)
    if answer is None:
        answer = _known[name] = _is_user_file(name)
    return answer


def _is_user_file(name: str) -> bool:
    if name.startswith("<"):
        return name == "<stdin>"
    path = os.path.abspath(name)
    if any(folder in path for folder in _PACKAGES):
        return False
    return not path.startswith(_STANDARD) and not is_ours(path)


def is_ours(name: str) -> bool:
    return name.startswith(os.path.join(_SDK, ""))


def short_path(name: str) -> str:
    """Relative to the working directory or the script's, if below one of them."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    for base in (os.getcwd(), os.path.dirname(os.path.abspath(script)) if script else None):
        if base and name.startswith(os.path.join(base, "")):
            return os.path.relpath(name, base)
    return name


def library_module(file: str) -> str:
    """The dotted module of a library's file ("torch.serialization"); empty for any other file."""
    for folder in _PACKAGES:
        _, found, tail = file.rpartition(folder)
        if found:
            return _dotted(tail)
    if file.startswith("<frozen "):
        return file[8:-1]
    base = next((base for base in _STANDARD if file.startswith(base)), "")
    return _dotted(file[len(base) :]) if base else ""


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix(f"{os.sep}__init__").replace(os.sep, ".")
