"""Generates docs/rules.md from the rules: ``python -m monitor.advice.docs > docs/rules.md``."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import fields

from monitor.advice.rule import Rule, all_rules
from monitor.model import policy

AREAS = {
    "input": "Input: getting data to the model",
    "transfer": "Transfer: from host to device",
    "compute": "Compute: the step itself",
    "memory": "Memory",
    "device": "Device: the GPU's own health",
    "distributed": "Distributed: several ranks",
    "job": "Job: around the loop",
    "trend": "Trend: over the run",
    "healthy": "Healthy",
}


def page() -> str:
    """The whole page."""
    rules = all_rules()
    parts = [
        "# Rules",
        "",
        f"Made by `python -m monitor.advice.docs` from the {len(rules)} rules in `monitor/advice/rules`.",
        "",
        "A rule is a pure function of a snapshot. It abstains when a signal it needs is missing, when",
        "too few steady steps were read, or when too many were lost. Findings are ranked by severity,",
        "then by predicted gain; a specific cause silences the general ones it explains. Predictions come",
        "from one model of the step (`monitor/advice/prediction/`) and give low, likely and high.",
        "",
    ]
    for area, title in AREAS.items():
        parts += [f"## {title}", ""]
        for rule in rules:
            if rule.id.partition(".")[0] == area:
                parts += _rule(rule)
    return "\n".join(parts + _policy()).rstrip() + "\n"


def _rule(rule: Rule) -> list[str]:
    doc = rule.doc
    lines = [f"### `{rule.id}`", "", doc.get("What", ""), ""]
    lines += [f"- **{name}**: {doc[name]}" for name in ("Looks at", "Why", "Remedy", "Gain") if name in doc]
    if rule.suppresses:
        lines.append(f"- **Silences**: {', '.join(f'`{id}`' for id in rule.suppresses)}")
    samples = "needs steady steps read without loss" if rule.steps else "needs no step times"
    return [*lines, f"- **Samples**: {samples}", ""]


def _policy() -> list[str]:
    """Every threshold, with its default and meaning."""
    lines = ["## Thresholds", "", "In a TOML file for `--policy` (or `GPUMON_POLICY`), under `[policy]`.", ""]
    lines += ["| name | default | meaning |", "|---|---|---|"]
    meaning = _meanings()
    for field in fields(policy.Policy):
        value = getattr(policy.DEFAULT_POLICY, field.name)
        if isinstance(value, bool):
            continue
        lines.append(f"| `{field.name}` | {value:g} | {meaning.get(field.name, '')} |")
    return lines


def _meanings() -> dict[str, str]:
    """Field name → the docstring below it."""
    body = ast.parse(inspect.getsource(policy.Policy)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found[name] = " ".join(str(node.value.value).split())
    return found


if __name__ == "__main__":
    sys.stdout.write(page())
