"""A script with every name its author chose replaced: what depends only on structure stays the same."""

from __future__ import annotations

import ast

KEPT = {"a": ("self", "cls"), "b": ("forward", "step", "grad", "train", "parameters", "optim")}
"""Names that are torch's wherever they stand: it calls a module's `forward` and an optimizer's `step`, which
takes a parameter's `grad`; a module has `train` and `parameters`, torch has `optim`."""


class _Renamer(ast.NodeTransformer):
    """Variables and attributes are separate: `train` may be a loader, `model.train()` is torch's."""

    def __init__(self, names: dict[str, str], attributes: dict[str, str]) -> None:
        self._names, self._attributes = names, attributes

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._names.get(node.arg, node.arg))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        own = isinstance(function, ast.Name) and function.id in self._names
        own |= isinstance(function, ast.Attribute) and function.attr in self._attributes
        for keyword in node.keywords:
            if own and keyword.arg is not None:
                keyword.arg = self._names.get(keyword.arg, keyword.arg)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._attributes.get(node.attr, node.attr)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        known = self._attributes if node.name in self._attributes else self._names
        node.name = known.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._names.get(node.name, node.name)
        return self.generic_visit(node)


def _bound(tree: ast.Module) -> tuple[set[str], set[str]]:
    """(variables, parameters, functions and classes; methods and attributes) that a script binds itself."""
    names: set[str] = set()
    attributes: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            attributes |= {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            attributes.add(node.attr)
    return names, attributes


def _imported(tree: ast.Module) -> set[str]:
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}


def renamed(text: str, prefix: str) -> tuple[str, str]:
    """(the script in plain layout, the same with other names), matching line by line."""
    tree = ast.parse(text)
    names, attributes = _bound(tree)
    others = [
        {
            name: f"{prefix}{kind}{at}"
            for at, name in enumerate(sorted(found))
            if name not in KEPT[kind] and not name.startswith("__")
        }
        for kind, found in (("a", names - attributes - _imported(tree)), ("b", attributes))
    ]
    plain = ast.unparse(tree)
    return plain, ast.unparse(_Renamer(*others).visit(ast.parse(plain)))
