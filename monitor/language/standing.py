"""Words and sentences that no syntax tree of the front ends shows: names of phases and states, which are
data; what is put together from parts; and what libraries say for us."""

from __future__ import annotations

STANDING = (
    # phases, and what a step stalls for
    "data", "transfer", "forward", "backward", "optimizer", "sync", "grad_norm", "zero_grad", "log",
    "between", "other", "validate", "checkpoint", "recompile", "gc", "epoch_start", "rollout", "fwd", "bwd",
    "opt", "copy", "validation", "logging", "imports", "set-up", "recompilation", "fetch", "wait",
    # states, severities, results of checks
    "running", "stalled", "ended", "failed", "killed", "starved", "interrupted", "hung", "lost", "critical",
    "warning", "hint", "healthy", "fix", "fail", "warn", "ok", "skip", "yes", "no", "simulated", "paused",
    "PASS", "WARN", "FAIL", "SKIP", "hint: {}", "critical: {}", "healthy: {}", "{} passed",
    "{} warning(s)", "{} failed", "{} skipped",
    # titles and orders
    "history", "compare", "processes", "stalls", "now", "Host", "Fix", "devices", "filter", "general", "more",
    "less", "name", "use", "memory", "worst", "number", "all", "mine", "by use", "by memory", "by name",
    "by number", "by worst", "Everywhere", "Finding", "Replay", "Samples/s", "no GPU", "machine-readable",
    "idle", "no detail", "no reason given", "Use", "Links", "encoder", "decoder", "fan", "energy", "heat",
    "thermal", "trainer", "gpu", "lasted", "{} was", "noise ±{}",
    "comparison", "cause", "evidence", "remedy", "change", "Runs", "runs", "Findings", "gpumon's cost",
    "one __getitem__", "Looks at: {}", "Why: {}", "Remedy: {}", "Gain: {}",
    "Training runs", "steps/s", "step p95", "step p99", "tokens/s", "Remedy. ", "Effect: ", "Price: ",
    "Avoid: ", "Set-up", "Steps", "by", "batch", "framework", "commit", "median", "longest",
    "predicted", "samples/s from 0", "CPU, 0–100 %", "{} (unverified on a GPU)", " (unverified on a GPU)",
    # evidence that several rules share
    "hot code", "hot share of phase", "hot seconds per step",
    "Still there: ", "New in B: ",
    # put together from parts
    "{} ago", ")", "{}: {}, {} a step", "{} (default: {})", "often", "once", "Logging", "Printing",
    "{} ({}), at {}",
    "{} takes {} a sample, {} of it in {}", "Killed in {} of step {}", "Killed in step {}",
    "Killed after the work of step {}", "Hung for {} after the work of step {}",
    "Ended by {} after the work of step {}",
    "Hung for {} in {} of step {}", "Hung for {} in step {}", "Ended by {} in {} of step {}",
    "Ended by {} in step {}", "{} is not of the form {}", "{} on GPUs {}", "{} on {} ranks {}",
    "{} on GPUs {} of {}", "{} on {} devices",
)  # fmt: skip
FOREIGN = (
    "usage: ", "options", "commands", "positional arguments", "show this help message and exit",
    "show program's version number and exit", "unrecognized arguments: {}",
    "the following arguments are required: {}", "argument {}: expected one argument",
    "argument {}: expected at least one argument", "argument {}: invalid choice: {} (choose from {})",
    "argument {}: {}", "argument {}: invalid {} value: {}", "argument {}: not allowed with argument {}",
    "one of the arguments {} is required", "ambiguous option: {} could match {}",
)  # fmt: skip
"""By argparse."""
