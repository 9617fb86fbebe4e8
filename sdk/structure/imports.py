"""What import statements of the user's files bind, as dotted names, and which file a module is."""

from __future__ import annotations

import ast
import sys

from .source import Source, read


def bound(node: ast.Import | ast.ImportFrom, file: str) -> dict[str, str]:
    """Names an import statement binds, and the modules or members they refer to."""
    if isinstance(node, ast.Import):
        return {
            one.asname or one.name.partition(".")[0]: one.name if one.asname else one.name.partition(".")[0]
            for one in node.names
        }
    module = _module_of(node, file)
    return {one.asname or one.name: f"{module}.{one.name}" for one in node.names}


def _module_of(node: ast.ImportFrom, file: str) -> str:
    """ "from ..data import x" in "pets/train/loop.py" means "pets.data"."""
    if not node.level:
        return node.module or ""
    parts = _package(file).split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *filter(None, [node.module])])


def _package(file: str) -> str:
    """The package a loaded file belongs to."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            return getattr(module, "__package__", None) or ""
    return ""


def module_source(module: str) -> Source | None:
    """The file of a loaded module, if it is the user's."""
    file = getattr(sys.modules.get(module), "__file__", None) if module and "(" not in module else None
    return read(file) if isinstance(file, str) else None
