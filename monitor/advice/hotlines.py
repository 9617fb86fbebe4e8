"""What a hot line of the user's code is doing, told from its words.

The sampler names the line, the function and the code; this module says what kind of work it is, so
that a finding can name the cause and not only the place.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from monitor.advice.context import Caller, Hotspot, RunContext, callers
from monitor.advice.finding import percent, seconds

KINDS: tuple[tuple[str, str], ...] = (
    ("sleep", r"\bsleep\("),
    ("gc", r"\bgc\.collect|empty_cache\("),
    (
        "checkpoint",
        r"torch\.save\(|save_checkpoint|save_model|save_pretrained|\.save_state|pickle\.dump|joblib|open\(.*[\"']wb",
    ),
    ("copy", r"deepcopy|copy\.copy|\.state_dict\(\)|load_state_dict"),
    ("grad_norm", r"\.grad\b.*norm|norm.*\.grad\b|\bgrads\b.*norm|total_norm|clip_grad|grad_?norm"),
    ("plot", r"savefig|plt\.|imshow|add_figure|add_image"),
    (
        "log",
        r"\bprint\(|logg(er|ing)\.|add_scalar|add_histogram|wandb|mlflow|set_postfix|tqdm|writer\."
        r"|\b(run|experiment|tracker|board)\.log\(",
    ),
    ("file", r"json\.dump|pickle\.dump|\.write\(|open\(|to_csv|np\.save|savez|flush\(|fsync|writerow"),
    ("metrics", r"sklearn|accuracy|f1_score|roc_auc|confusion|precision|recall|metric|argmax|topk"),
    ("sync", r"\.item\(\)|\.tolist\(\)|\.cpu\(\)|\.numpy\(\)|synchronize"),
)
JOB_NAMES = (
    ("validate", re.compile(r"valid|evaluat|(^|[._])(eval|test)", re.IGNORECASE)),
    ("checkpoint", re.compile(r"checkpoint|(^|[._])save", re.IGNORECASE)),
    ("grad_norm", re.compile(r"grad.*(norm|stat)|norm.*grad", re.IGNORECASE)),
    ("metrics", re.compile(r"metric|accuracy|confusion|score|f1|auc|dice|iou", re.IGNORECASE)),
    (
        "log",
        re.compile(
            r"(^|[._])(log(?!it|_?(prob|sum|soft|lik|var|det|add|space|p$))|journal|report|record|print|dump|emit"
            r"|summar|track|note)|hist",
            re.IGNORECASE,
        ),
    ),
    ("copy", re.compile(r"snapshot|(^|[._])(ema|copy|clone)", re.IGNORECASE)),
)
JUDGES = re.compile(r"\b(acc|correct|val|valid|test|eval|metric|score)\w*|argmax\([^)]*\) ?==|_val\b|_test\b")
LOOP_NAMES = re.compile(
    r"^(main|train|fit|run|loop|learn|epoch|step|forward|__call__)|train|_epoch", re.IGNORECASE
)
"""Functions that are the loop itself, whatever they also do."""
SPECIAL = (
    (
        r"randperm\(|permutation\(|choice\(|random\.sample\(",
        "draw the indices of a batch with one `torch.randint(0, n, (k,))`, or permute once an epoch and "
        "slice; a permutation of everything costs as much as the data is long",
    ),
    (
        r"subprocess|os\.system|popen|check_output|communicate",
        "do not start another program in every step; read it every few seconds, or from a thread",
    ),
    (r"requests\.|urlopen|socket|http", "do not wait for the network in the loop; send it from a thread"),
    (r"hashlib|sha\d|md5|\.update\(.*tobytes", "hash only what is saved, when it is saved"),
    (
        r"\bsorted\(|argsort\(|\.sort\(|unique\(|bincount\(|Counter\(",
        "sort or count once before the loop and keep it up to date instead of going through everything",
    ),
)
"""What a line does, and what to do instead."""
LOSSES = re.compile(r"loss|criterion|penalt", re.IGNORECASE)
IS_LOSS = re.compile(r"\w*loss\w* ?\+?= ?(?!.*\.item\()", re.IGNORECASE)
BESIDE = ("validate", "metrics", "log", "sync")
"""Jobs that are never part of a pass: words that look like them mean something else there."""
PHASES_OF_LOOP = ("other", "between", "forward", "log", "sync", "grad_norm")


PASSES = re.compile(
    r"backward\(|zero_grad\(|\.step\(|\b(model|net|network|criterion|self)\(|loss_f\w*\(", re.IGNORECASE
)


def passes(code: str) -> bool:
    """The line is (also) a pass of the step: its time is not what else stands on it."""
    return PASSES.search(code) is not None


@lru_cache(maxsize=4096)
def kind_of(spot: Hotspot) -> str:
    """A word for what the line does: one of `KINDS`, the sampler's own word, or ""."""
    code = spot.code.partition(": ")[2] if spot.is_loop else spot.code  # a loop's head says nothing
    text = f"{spot.inside}(" if not code or passes(code) else f"{code} {spot.inside}("
    for kind, pattern in KINDS:
        if re.search(pattern, text, re.IGNORECASE) and not (kind == "sync" and instead(spot)):
            return kind
    return spot.kind


def in_loop(run: RunContext, *kinds: str) -> list[Hotspot]:
    """Hot lines of these kinds in the training loop (not in the loader, not in the model's own work).
    A function that logs or scores is one job: its other lines count with it."""
    jobs = _jobs(run.hotspots)
    found = []
    for spot in run.hotspots:
        kind = jobs.get((spot.file, spot.function)) or _called_for(spot) or _judging(spot) or kind_of(spot)
        if kind in BESIDE and _learns(spot):
            continue
        if spot.phase in PHASES_OF_LOOP and kind in kinds:
            found.append(spot)
    return sorted(found, key=lambda spot: -run.hot_seconds(spot))


def _learns(spot: Hotspot) -> bool:
    """The line is part of a pass with gradients (the model's own code, a loss), whatever its words."""
    named = LOSSES.search(spot.function.rpartition(".")[2]) or IS_LOSS.match(spot.code)
    own = spot.kind == "module" or named is not None
    return own and not spot.no_grad and spot.phase in ("forward", "other")


def _called_for(spot: Hotspot) -> str:
    """What the function is for that this line was called from, when its name says so."""
    for caller in spot.callers:
        kind = _named_job(caller.function)
        if kind:
            return kind
    return ""


def _judging(spot: Hotspot) -> str:
    """A pass of the model without gradients whose words say that it only judges the model."""
    text = " ".join((spot.code, *(caller.code for caller in spot.callers)))
    judged = spot.no_grad and spot.kind == "module" and JUDGES.search(text)
    return "validate" if judged else ""


def _named_job(function: str) -> str:
    if function == "<module>" or LOOP_NAMES.search(function.rpartition(".")[2]):
        return ""
    return next((kind for kind, pattern in JOB_NAMES if pattern.search(function)), "")


@lru_cache(maxsize=256)
def _jobs(hotspots: tuple[Hotspot, ...]) -> dict[tuple[str, str], str]:
    """(file, function) → what the function is for, told from its name or from a line in it."""
    jobs: dict[tuple[str, str], str] = {}
    for spot in hotspots:
        name = spot.function.rpartition(".")[2]
        if spot.function == "<module>" or spot.phase not in PHASES_OF_LOOP or LOOP_NAMES.search(name):
            continue
        if named := _named_job(spot.function):
            jobs.setdefault((spot.file, spot.function), named)
        kind = kind_of(spot)
        if kind in ("checkpoint", "log", "file", "plot", "grad_norm"):
            jobs[spot.file, spot.function] = kind
    return jobs


def blocks(run: RunContext, *phases: str) -> list[Hotspot]:
    """Pieces of the user's code, each at its heaviest line with the share of all its lines: a function, or
    in the function that is the loop itself (and in a script without one) lines that stand together."""
    loops = _loops(run)
    groups: dict[tuple[object, ...], list[Hotspot]] = {}
    at: tuple[object, ...] = ()
    for spot in sorted(run.hotspots, key=lambda one: (one.phase, one.file, one.function, one.line)):
        if spot.phase not in phases:
            continue
        key: tuple[object, ...] = (spot.phase, spot.file, spot.function)
        if key[1:] in loops or spot.function == "<module>":
            near = at[:3] == key and not passes(spot.code) and not passes(groups[at][-1].code)
            key = at if near and spot.line - groups[at][-1].line <= 2 else (*key, spot.line)
        at = key
        groups.setdefault(key, []).append(spot)
    found = [_summed(lines) for lines in groups.values()]
    return sorted(found, key=lambda spot: -run.hot_seconds(spot))


def _loops(run: RunContext) -> set[tuple[str, str]]:
    """(file, function) of the training loop: where backward and the optimizer are called."""
    return {(spot.file, spot.function) for spot in run.hotspots if spot.phase in ("backward", "optimizer")}


def asked_at(run: RunContext, spot: Hotspot) -> Caller:
    """The line of the loop that leads to a hot line (else the nearest call of its function, else itself):
    there an `if step % 100 == 0` belongs."""
    loops = _loops(run)
    own = Caller(spot.function, spot.file, spot.line, spot.code)
    if (spot.file, spot.function) in loops:
        return own
    outer = [one for one in spot.callers if (one.file, one.function) in loops]
    ways = [one for one in [*outer, *([spot.call] if spot.call else [])] if not passes(one.code)]
    return next(iter(ways), own)


def _summed(lines: list[Hotspot]) -> Hotspot:
    ranked = sorted(lines, key=lambda spot: -spot.share)
    line = next((spot for spot in ranked if not spot.code.startswith(("def ", "return"))), ranked[0])
    calls = max((spot.calls or 0.0 for spot in lines), default=0.0)
    return replace(line, share=min(1.0, sum(spot.share for spot in lines)), calls=calls or None)


def instead(spot: Hotspot) -> str:
    """What to do instead of a line whose words say what it does; empty when they do not."""
    text = f"{spot.code} {spot.inside}"
    return next((words for pattern, words in SPECIAL if re.search(pattern, text)), "")


def keeper(run: RunContext) -> Caller | None:
    """A line of the loop that keeps something of every step: a hot one, else one the SDK has read there."""
    hot = next((spot for spot in run.hotspots if ".append(" in spot.code), None)
    if hot is not None:
        return Caller(hot.function, hot.file, hot.line, hot.code)
    return next(iter(callers(run.setting("keeps"))), None)


def total(run: RunContext, spots: list[Hotspot]) -> float:
    """Seconds a step these lines take together."""
    return sum(run.hot_seconds(spot) for spot in spots)


def evidence(run: RunContext, spot: Hotspot | None) -> dict[str, object]:
    """The place in numbers and names, for a finding's evidence."""
    if spot is None:
        return {}
    return {
        "hot_line": spot.place,
        "hot_function": spot.function or None,
        "hot_code": spot.code or None,
        "hot_share_of_phase": spot.share,
        "hot_seconds_per_step": run.hot_seconds(spot),
    }


def words(run: RunContext, spot: Hotspot) -> str:
    """ "`compute_metrics` (train.py:88), 4.1 ms a step (38 %)"."""
    cost = run.hot_seconds(spot)
    share = cost / run.period if run.period else 0.0
    return f"{spot.words}, {seconds(cost)} a step ({percent(share)})"
