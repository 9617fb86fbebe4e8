"""Digests of the script's functions as run: they later tell whether a function changed between two runs.
Comments and line numbers do not count; no source is kept."""

from __future__ import annotations

import hashlib
import os
import sys
from types import CodeType
from typing import Any

MAX_BYTES = 512 * 1024
"""Chosen: larger scripts are generated."""
MAX_FUNCTIONS = 128
"""Chosen: nobody tunes a script with more by hand."""
_OWN_LOCALS = 0x01
"""CO_OPTIMIZED: a function, not the body of a class or a module."""


def source_config() -> dict[str, Any] | None:
    """Function → digest for the main script; None if it cannot be read."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if path is None or os.path.getsize(path) > MAX_BYTES:
        return None
    with open(path, "rb") as file:
        text = file.read()
    try:
        return {"functions": digests(compile(text, path, "exec", dont_inherit=True))}
    except SyntaxError:  # it is being edited
        return None


def digests(module: CodeType) -> dict[str, str]:
    """Every function by name, and the module's own lines as "<module>"."""
    found: dict[str, str] = {}
    inner = [(code.co_name, _add(code, found)) for code in _inner(module)]
    found["<module>"] = _digest(module, [name for name, _ in inner])
    return dict(list(found.items())[-MAX_FUNCTIONS:])


def _add(code: CodeType, found: dict[str, str]) -> str:
    """The digest of this code and everything defined in it."""
    own = _digest(code, [_add(inner, found) for inner in _inner(code)])
    if code.co_flags & _OWN_LOCALS and not code.co_name.startswith("<"):
        found[code.co_qualname.replace(".<locals>", "")] = own
    return own


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _digest(code: CodeType, inner: list[str]) -> str:
    """A digest of what the code does, whatever its line numbers."""
    values = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    named = repr((values, inner, code.co_names, code.co_varnames, code.co_freevars))
    return hashlib.blake2s(code.co_code + named.encode(), digest_size=6).hexdigest()
