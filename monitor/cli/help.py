"""`gpumon help TOPIC`: a command's options, what a rule is about, or a short text on a topic."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator

from monitor.model.errors import UserError
from monitor.terminal import Terminal, wrapped

TOPICS = {
    "start": """
Put `gpumon run --` before the command that trains: gpumon run -- python train.py. Nothing in the script
changes. Afterwards you read where the time went, what to change and what that should gain; gpumon report
makes a page of it. With several machines or people, run gpumon daemon on each and look with gpumon tui.""",
    "runs": """
Commands that take a RUN understand an id, the beginning of an id, a name (its newest run), last, and last~1
for the one before. gpumon runs lists them.""",
    "gains": """
×1.8 (1.4–2.0) is a predicted speed-up: 1.8 times as many steps a second, between 1.4 and 2.0. It never
exceeds what the evidence can remove. gpumon compare A B shows what was realised, and the ledger keeps
both.""",
    "findings": """
critical needs an answer now, warning should be changed, hint may be. Each finding has an id
(input.no_workers), its evidence and a remedy; gpumon help ID says what the rule looks at.""",
    "exit-codes": """
0 fine; 1 the answer is no (a check failed, a comparison is below its bar); 2 bad input; 3 no daemon
answers; 4 another daemon is already running; 130 interrupted. gpumon run ends with the exit code of the
command it ran.""",
    "environment": """
GPUMON_CONNECT names a daemon, GPUMON_DIR the folder of rings, GPUMON_STORE the history, GPUMON_CONFIG a
TOML file; every option of gpumon daemon has such a variable. GPUMON_DISABLE=1 records nothing. NO_COLOR and
FORCE_COLOR are honoured.""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="a command, the id of a rule, or a topic")


def run(args: argparse.Namespace) -> int:
    on = Terminal(sys.stdout)
    width = min(100, on.width or 100)
    print("\n".join(_lines(args.topic, width)))
    return 0


def _lines(topic: str | None, width: int) -> Iterator[str]:
    from monitor.cli.main import COMMANDS, command_parser

    if topic is None:
        yield from _overview(width)
    elif topic in TOPICS:
        yield from wrapped(" ".join(TOPICS[topic].split()), width, hang="")
    elif topic in COMMANDS:
        yield command_parser(topic).format_help().rstrip()
    else:
        yield from _rule(topic, width)


def _overview(width: int) -> Iterator[str]:
    from monitor.cli.main import COMMANDS

    yield "gpumon help TOPIC, where TOPIC is"
    entries = (
        ("a command", ", ".join(COMMANDS)),
        ("a subject", ", ".join(TOPICS)),
        ("a finding", "its id, such as input.no_workers"),
    )
    for name, text in entries:
        yield from wrapped(f"{name}   {text}", width, "  ", " " * 12)


def _rule(topic: str, width: int) -> Iterator[str]:
    """From the rule's own documentation; an unknown topic is an error that suggests similar ones."""
    from monitor.advice.rule import all_rules
    from monitor.cli.main import COMMANDS

    rules = {rule.id: rule for rule in all_rules()}
    if topic not in rules:
        near = difflib.get_close_matches(topic, [*rules, *TOPICS, *COMMANDS], 3)
        hint = f"did you mean {', '.join(near)}?" if near else "gpumon help lists the topics"
        raise UserError(f"there is no topic {topic!r}", hint=hint)
    doc = rules[topic].doc
    yield from wrapped(f"{topic}: {doc.get('What', '')}", width)
    for name in ("Looks at", "Why", "Remedy", "Gain"):
        if name in doc:
            yield from wrapped(f"{name}: {doc[name]}", width)
