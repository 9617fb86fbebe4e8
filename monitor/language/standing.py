"""Words and sentences that no syntax tree of the front ends shows: names of phases and states, which are data, and
what libraries say for us."""

from __future__ import annotations

STANDING = (
    "data", "transfer", "forward", "backward", "optimizer", "sync", "grad_norm", "zero_grad", "log", "between",
    "other", "validate", "checkpoint", "recompile", "gc", "epoch_start", "rollout",
    "running", "stalled", "ended", "failed", "killed", "starved", "interrupted", "hung",
    "critical", "warning", "hint", "healthy", "fix", "fail", "warn", "ok", "skip", "yes", "no",
    "fwd", "bwd", "opt", "copy", "more", "less", "name", "use", "memory", "worst", "number",
    "{} ago", ")", "{} ({}), at {}", "{} takes {} a sample, {} of it in {}",
    "Killed in {} of step {}", "Killed in step {}", "Hung for {} in {} of step {}", "Hung for {} in step {}",
    "Ended by {} in {} of step {}", "Ended by {} in step {}", "validation", "logging", "imports", "set-up",
    "{} passed", "{} warning(s)", "{} failed", "{} skipped", "simulated", "paused", "history", "compare", "processes", "stalls", "now", "Host", "Fix", "devices", "filter",
    "by use", "by memory", "by name", "by number", "by worst", "no GPU", "lost", "all", "mine", "PASS", "WARN", "FAIL", "SKIP",
    "recompilation", "Logging", "Printing", "often", "once", "general", "fetch", "wait",
)  # fmt: skip
"""Phases, states of runs and GPUs, severities, results of checks."""
FOREIGN = (
    "usage: ", "options", "positional arguments", "show this help message and exit",
    "show program's version number and exit", "unrecognized arguments: {}",
    "the following arguments are required: {}", "argument {}: expected one argument",
    "argument {}: expected at least one argument", "argument {}: invalid choice: {} (choose from {})",
    "argument {}: invalid {} value: {}", "argument {}: not allowed with argument {}",
    "one of the arguments {} is required", "ambiguous option: {} could match {}",
)  # fmt: skip
"""By argparse."""
