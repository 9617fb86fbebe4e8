"""Options: one keyword-only dataclass defines them; argparse, YAML and `--help` are derived from it.

A field's docstring is its help. `None` means "the rung decides" (see `trainers.rungs`).
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import difflib
import inspect
import itertools
import textwrap
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import yaml

from trainers.errors import TrainerError

C = TypeVar("C")
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


def parse_bool(text: str | bool) -> bool:
    """`--flag=False` must really switch off: `bool("False")` would not."""
    if isinstance(text, bool):
        return text
    lowered = text.strip().lower()
    if lowered in _TRUE | _FALSE:
        return lowered in _TRUE
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def listed(option: str, text: str) -> list[str]:
    """The words of a comma-separated option, spaces around them left out; each may occur once."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    twice = {word for word in words if words.count(word) > 1}
    if not words or twice:
        what = f"names {', '.join(sorted(twice))} twice" if twice else "names nothing"
        raise TrainerError(f"--{option} {text!r} {what}")
    return words


def field_docs(cls: type) -> dict[str, str]:
    """Field name → the docstring under it, own and inherited."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if dataclasses.is_dataclass(base):
            docs.update(_docs_of(base))
    return docs


def _docs_of(cls: type) -> Iterator[tuple[str, str]]:
    body = typing.cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]).body
    for item, after in itertools.pairwise(body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            text = after.value if isinstance(after, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield item.target.id, " ".join(text.value.split())


def plain_type(hint: Any) -> tuple[type, tuple[Any, ...] | None]:
    """(type to convert to, allowed values) of an annotation such as `int | None` or a Literal."""
    arguments = [a for a in typing.get_args(hint) if a is not type(None)]
    if typing.get_origin(hint) is typing.Literal:
        return str, typing.get_args(hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return plain_type(arguments[0])
    return hint, None


class OneSentence(argparse.ArgumentParser):
    """Says what is wrong, without the list of all options before it."""

    def error(self, message: str) -> NoReturn:
        raise TrainerError(message, hint="--help lists the options")


def build_parser(cls: type, prog: str, description: str) -> argparse.ArgumentParser:
    """A parser with one option per field; what is not given stays out of the namespace."""
    parser = OneSentence(
        prog=prog,
        description=description,
        argument_default=argparse.SUPPRESS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of the options below")
    docs, hints = field_docs(cls), typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        _add_option(parser, field, hints[field.name], docs.get(field.name, ""))
    return parser


def _add_option(parser: argparse.ArgumentParser, field: Any, hint: Any, text: str) -> None:
    kind, choices = plain_type(hint)
    names = [f"--{name}" for name in (field.name, *field.metadata.get("aliases", ()))]
    names += [name for name in (f"--{field.name.replace('_', '-')}",) if name not in names]
    default = "" if field.default is None else f" (default {field.default})"
    text = f"{text}{default}".replace("%", "%%")
    if kind is bool:
        parser.add_argument(
            *names, dest=field.name, nargs="?", const=True, type=parse_bool, metavar="BOOL", help=text
        )
        offs = dict.fromkeys(f"--no-{name[2:]}" for name in names)
        parser.add_argument(*offs, dest=field.name, action="store_false", help=argparse.SUPPRESS)
        return
    parser.add_argument(*names, dest=field.name, type=kind, choices=choices, help=text)


def read_yaml(path: str, cls: type) -> dict[str, Any]:
    """Values of a config file, each checked against the field it names."""
    try:
        loaded = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise TrainerError(f"config file {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise TrainerError(f"config file {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(loaded, dict):
        raise TrainerError(f"config file {path} must hold `option: value` lines")
    hints = typing.get_type_hints(cls)
    names = _spellings(cls)
    return {_known(key, names, path): _convert(key, value, hints, names) for key, value in loaded.items()}


def _spellings(cls: type) -> dict[str, str]:
    """Every accepted name, aliases and dashes included → the field's name."""
    names: dict[str, str] = {}
    for field in dataclasses.fields(cls):
        for name in (field.name, *field.metadata.get("aliases", ())):
            names[name] = names[name.replace("_", "-")] = field.name
    return names


def _known(key: str, names: dict[str, str], path: str) -> str:
    if key in names:
        return names[key]
    close = difflib.get_close_matches(str(key), names, n=1)
    hint = f"did you mean {close[0]}?" if close else "see --help for the options"
    raise TrainerError(f"config file {path}: unknown option {key!r}", hint=hint)


def _convert(key: str, value: Any, hints: dict[str, Any], names: dict[str, str]) -> Any:
    kind, choices = plain_type(hints.get(names.get(key, key), str))
    if value is None:
        return None
    if kind is str and isinstance(value, list):
        return ",".join(map(str, value))
    try:
        converted = (
            parse_bool(value if isinstance(value, bool) else str(value)) if kind is bool else kind(value)
        )
    except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
        raise TrainerError(f"option {key}: {value!r} is not a {kind.__name__}") from error
    if choices and converted not in choices:
        raise TrainerError(f"option {key}: {value!r} is none of {', '.join(map(str, choices))}")
    return converted


def parse(cls: type[C], arguments: Sequence[str] | None, prog: str, description: str) -> C:
    """Options from the command line over the config file over the defaults."""
    given = vars(build_parser(cls, prog, description).parse_args(arguments))
    path = given.pop("config", None)
    return cls(**{**(read_yaml(path, cls) if path else {}), **given})


def to_yaml(config: Any) -> str:
    """The options as a config file: what ran can be run again."""
    return yaml.safe_dump(dataclasses.asdict(config), sort_keys=False)
