"""Whose code a file is: the user's, or a library's."""

from __future__ import annotations

import os
import sys
import sysconfig

_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple(
    os.path.join(path, "")
    for path in {
        sysconfig.get_paths()["stdlib"],
        sysconfig.get_paths()["platstdlib"],
        os.path.realpath(sysconfig.get_paths()["stdlib"]),
        _HERE,
    }
)
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
    if f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
        return False
    return not path.startswith(_LIBRARIES)


def short_path(name: str) -> str:
    """Relative to the working directory or the script's when it is below one of them."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    for base in (os.getcwd(), os.path.dirname(os.path.abspath(script)) if script else None):
        if base and name.startswith(os.path.join(base, "")):
            return os.path.relpath(name, base)
    return name
