"""Renders the Helm chart without helm: only the part of Go templates the chart uses.

Anything else in a template is an error here, so the chart stays as simple as its proof.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parents[3] / "deploy" / "helm" / "gpumon"
_ACTION = re.compile(
    r"(?P<before>[ \t\r\n]*)\{\{(?P<cut>-)?\s*(?P<body>.*?)\s*(?:-\}\}[ \t\r\n]*|\}\})",
    re.S,
)
_WORD = re.compile(r'"[^"]*"|\S+')
Node = tuple[str, Any]


class TemplateError(ValueError):
    """The template uses something this renderer does not support."""


@dataclass
class Renderer:
    """A chart with values: `render` returns the documents of one template."""

    values: dict[str, Any]
    namespace: str = "monitoring"
    defined: dict[str, list[Node]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = {"Values": self.values, "Release": {"Name": "gpumon", "Namespace": self.namespace}}
        self._text((CHART / "templates" / "_helpers.tpl").read_text(), self.root)

    def render(self, template: str) -> list[dict[str, Any]]:
        text = self._text((CHART / "templates" / template).read_text(), self.root)
        return [one for one in yaml.safe_load_all(text) if one]

    def _text(self, source: str, dot: Any) -> str:
        nodes, rest = _parse(_tokens(source))
        if rest:
            raise TemplateError(f"unexpected {rest[0]}")
        return self._run(nodes, dot, {})

    def _run(self, nodes: list[Node], dot: Any, names: Mapping[str, Any]) -> str:
        return "".join(self._node(kind, what, dot, names) for kind, what in nodes)

    def _node(self, kind: str, what: Any, dot: Any, names: Mapping[str, Any]) -> str:
        if kind == "text":
            return str(what)
        if kind == "value":
            return str(self._pipeline(what, dot, names))
        head, inside = what
        if kind == "define":
            self.defined[head.strip('"')] = inside
            return ""
        if kind == "range":
            key, item, source = re.fullmatch(r"(\$\w+), (\$\w+) := (.+)", head).groups()  # type: ignore[union-attr]
            pairs = self._pipeline(source, dot, names).items()
            return "".join(self._run(inside, dot, {**names, key: k, item: v}) for k, v in pairs)
        found = self._pipeline(head, dot, names)
        if not found:
            return ""
        return self._run(inside, found if kind == "with" else dot, names)

    def _pipeline(self, body: str, dot: Any, names: Mapping[str, Any]) -> Any:
        value: Any = None
        for at, part in enumerate(body.split(" | ")):
            words = _WORD.findall(part)
            given = [self._term(word, dot, names) for word in words[1:]] + ([value] if at else [])
            value = self._call(words[0], given, dot, names)
        return value

    def _call(self, name: str, given: list[Any], dot: Any, names: Mapping[str, Any]) -> Any:
        if name == "include":
            return self._run(self.defined[given[0]], given[1], {})
        if name == "toYaml":
            return yaml.safe_dump(given[0], default_flow_style=False).rstrip("\n")
        if name == "nindent":
            return "\n" + "\n".join(" " * given[0] + line if line else line for line in given[1].splitlines())
        if name == "upper":
            return str(given[0]).upper()
        if name == "not":
            return not given[0]
        if name == "quote":
            return json.dumps(str(given[0]))
        if name == "printf":
            return given[0] % tuple(given[1:])
        if name == ".Files.Get":
            return (CHART / given[0]).read_text(encoding="utf-8")
        if given:
            raise TemplateError(f"unknown function {name}")
        return self._term(name, dot, names)

    def _term(self, word: str, dot: Any, names: Mapping[str, Any]) -> Any:
        if word.startswith('"'):
            return word.strip('"')
        if word.isdigit():
            return int(word)
        if word.startswith("$"):
            return names[word]
        if not word.startswith("."):
            raise TemplateError(f"cannot read {word}")
        found = dot
        for key in filter(None, word.split(".")):
            found = (found if key in found else self.root)[key]
        return found


def _tokens(source: str) -> list[Node]:
    found: list[Node] = []
    at = 0
    for match in _ACTION.finditer(source):
        found.append(("text", source[at : match.start()] + ("" if match["cut"] else match["before"])))
        found.append(("action", match["body"]))
        at = match.end()
    return [*found, ("text", source[at:])]


def _parse(tokens: list[Node]) -> tuple[list[Node], list[Node]]:
    """Nodes up to the matching `end`, and the tokens after it."""
    nodes: list[Node] = []
    while tokens:
        (kind, body), *tokens = tokens
        if kind == "text":
            nodes.append((kind, body))
            continue
        word, _, rest = body.partition(" ")
        if word == "end":
            return nodes, tokens
        if word in ("if", "with", "range", "define"):
            inside, tokens = _parse(tokens)
            nodes.append((word, (rest, inside)))
        else:
            nodes.append(("value", body))
    return nodes, []


def defaults(**changed: Any) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return values | changed
