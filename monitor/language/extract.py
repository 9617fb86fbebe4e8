"""What the front ends say, from their syntax trees: `python -m monitor.language.extract` lists what has no
translation yet.

A sentence is a literal, an f-string or a sum of them that reads as prose; what is filled in is `{}`.
Docstrings, code changes and log messages are none, nor is what `unsaid.json` lists. Words that stand alone
count only in places that are known to show them: titles of columns, causes of rules, names of evidence.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from monitor.language.catalogue import HERE, HOLES, read
from monitor.language.standing import FOREIGN, STANDING

ROOT = HERE.parent
FOLDERS = (
    "advice", "catalog", "cli", "comparison", "demo", "doctor", "document", "experiments", "report", "traces",
    "tui",
)  # fmt: skip
"""Rooms that speak to people; of the others these files:"""
FILES = (
    "client.py", "gpu/awaited.py", "gpu/driver.py", "gpu/nvml.py", "model/criticality.py", "model/facts.py",
    "model/finding.py", "model/groups.py", "model/phase_names.py", "model/post_mortem.py",
    "model/settings.py", "model/values.py", "model/verdict.py",
    "web/page/page.js", "web/page/page.html", "../sdk/knobs/_loader.py", "../sdk/knobs/_optimizer.py",
)  # fmt: skip
SILENT = (
    "advice/docs.py", "cli/cell.py", "cli/completion.py", "cli/daemon.py", "cli/train.py", "cli/version.py",
    "document/export.py", "document/tracked.py", "tui/palette.py", "tui/screenshot.py",
)  # fmt: skip
"""Files that write for programs, for the documentation, or nothing at all."""
PROSE = re.compile(
    r"[A-Za-z]{2,}[,;:]? (\S+ )*?\(?[A-Za-z]{2,}|\{\}[,;:]? \(?[A-Za-z]{2,}|[A-Za-z]{2,}[,;:]? \{\}"
)
"""Two words in a row, or a word beside something filled in."""
WORDS = {
    "Column": 1, "Symbol": 1, "Binding": 2, "rule": 1, "machine_rule": 1, "closing_rule": 1, "section": 0,
    "figure": 0,
}  # fmt: skip
"""Calls, and which of their arguments is shown although it may be one word."""
ERRORS = ("UserError", "StoreError", "TraceError")
TABLES = ("table", "rows")
"""Calls whose first argument is the titles of columns."""
UNSAID_CALLS = frozenset(
    ("debug", "info", "warning", "exception", "compile", "later", "execute", "strftime", "run_sql")
)
UNSAID_KEYWORDS = frozenset(
    ("change", "metavar", "id", "class_", "href", "dest", "prog", "settings", "classes")
)
PART = re.compile(r"^(Looks at|Why|Remedy|Gain):", re.MULTILINE)


def shape(node: ast.expr) -> str | None:
    """The text an expression gives, with `{}` for what it fills in; None if it is no text."""
    if isinstance(node, ast.Constant):
        return node.value.replace("{", "{{").replace("}", "}}") if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(shape(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = shape(node.left), shape(node.right)
        return None if left is None and right is None else (left or "{}") + (right or "{}")
    return None


def holed(text: str) -> str:
    """Holes side by side are one: what fills the first cannot be told from what fills the second. A paragraph
    is shown as one line."""
    is_code = re.search(r"\n[ +-]", text.strip("\n"))
    line = " ".join(text.split()) if "\n" in text.strip("\n") and not is_code else text
    return HOLES.sub("{}", line)


class Sentences(ast.NodeVisitor):
    """Collects the sentences of one file."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in UNSAID_CALLS:
            return
        at = WORDS.get(name)
        if at is not None and at < len(node.args):
            self._word(node.args[at])
        if name in TABLES and node.args and isinstance(node.args[0], ast.Tuple):
            for title in node.args[0].elts:
                self._word(title)
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg == "evidence" and isinstance(node.value, ast.Dict):
            self.found |= {
                _label(str(key.value)): None for key in node.value.keys if isinstance(key, ast.Constant)
            }
        if node.arg not in UNSAID_KEYWORDS:
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Titles of a table."""
        named = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if any(name.endswith("HEAD") for name in named) and isinstance(node.value, ast.Tuple):
            for one in node.value.elts:
                self._word(one)
        self.generic_visit(node)

    def visit(self, node: ast.AST) -> None:
        text = shape(node) if isinstance(node, ast.expr) else None
        if text is None:
            super().visit(node)
            return
        if PROSE.search(text):
            self.found[holed(text)] = None
        for part in _filled_in(node):
            self.visit(part)

    def _word(self, node: ast.expr) -> None:
        text = shape(node)
        if text and re.search("[A-Za-z]{2}", text):
            self.found[holed(text)] = None


def _filled_in(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions inside a text that are not text themselves."""
    if isinstance(node, ast.JoinedStr):
        yield from (part.value for part in node.values if isinstance(part, ast.FormattedValue))
    elif isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            yield from (side,) if shape(side) is None else _filled_in(side)


def _label(key: str) -> str:
    from monitor.model.units import label

    return label(key)


def of_errors(text: str) -> list[str]:
    """What a file that is not a front end tells people: its errors."""
    sentences = Sentences()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS:
            sentences.visit(node)
    return list(sentences.found)


def of_python(text: str) -> list[str]:
    sentences = Sentences()
    sentences.visit(ast.parse(text))
    return list(sentences.found)


SCRIPT = re.compile(
    r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\$]|\\.|\$(?!\{)|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\})*)`'
)
FILLED = re.compile(r"\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}")


def of_script(text: str) -> list[str]:
    """Literals and template literals that read as prose, and the names of figures."""
    code = re.sub(r"(?m)^\s*//.*$", "", text)
    found = [holed(FILLED.sub("{}", plain or filled)) for plain, filled in SCRIPT.findall(code)]
    names = re.findall(r'\bfigure\("([^"]{2,})"', code)
    return list(dict.fromkeys([*(one for one in found if PROSE.search(one)), *names]))


def of_page(text: str) -> list[str]:
    """What stands between tags, and placeholders."""
    bare = re.sub(r"(?s)<(style|script)>.*?</\1>", "", text)
    shown = [*re.findall(r">([^<>]+)<", bare), *re.findall(r'placeholder="([^"]+)"', bare)]
    return [one.strip() for one in shown if re.search("[A-Za-z]{2}", one) and one.strip() != "gpumon"]


def of_rule(text: str) -> list[str]:
    """What a rule's documentation says: `gpumon help ID` shows all of it, findings show why they matter."""
    first, *parts = re.split(PART, ast.get_docstring(ast.parse(text)) or "")
    told = dict(zip(parts[::2], parts[1::2], strict=True))
    return [" ".join(part.split()) for part in (first, *told.values()) if part.strip()]


READERS = {".py": of_python, ".js": of_script, ".html": of_page}


def others() -> Iterable[Path]:
    """The files that are not front ends."""
    spoken = {file.resolve() for file in files()}
    silent = {ROOT / name for name in SILENT}
    return (file for file in sorted(ROOT.rglob("*.py")) if file not in spoken | silent)


def files() -> Iterable[Path]:
    inside = (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")))
    silent = {ROOT / name for name in SILENT}
    return (*(file for file in inside if file not in silent), *(ROOT / name for name in FILES))


def spoken() -> dict[str, str]:
    """Everything said → the first file that says it."""
    unsaid = set(json.loads((HERE / "unsaid.json").read_text(encoding="utf-8")))
    return {text: file for text, file in literal().items() if text not in unsaid}


@cache
def literal() -> dict[str, str]:
    """The same, with what only looks like a sentence."""
    found = dict.fromkeys((*STANDING, *FOREIGN), "monitor/language/standing.py")
    for file in files():
        source = file.read_text(encoding="utf-8")
        texts = READERS[file.suffix](source)
        if file.parent.name == "rules" and file.stem != "__init__":
            texts += of_rule(source)
        for text in texts:
            found.setdefault(text, str(file.resolve().relative_to(ROOT.parent)))
    for file in others():
        for text in of_errors(file.read_text(encoding="utf-8")):
            found.setdefault(text, str(file.relative_to(ROOT.parent)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="sentences without a translation, as JSON to fill in")
    parser.add_argument("language", nargs="?", default="zh")
    known = read(parser.parse_args().language)
    missing = {text: "" for text in spoken() if text not in known}
    print(json.dumps(missing, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
