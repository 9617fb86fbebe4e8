"""Figures about the loader that several input rules share."""

from __future__ import annotations

import re

from monitor.advice.context import Hotspot, RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.whatif import Change

LOADER_PHASES = ("fetch", "data")
PARTS = {"sampler": ("sampler", "batch_sampler"), "collate": ("collate",)}
"""Parts of the loader with code of their own, and the settings that name it."""


def starved(run: RunContext) -> bool:
    """Waiting for data takes more of the step than the policy allows."""
    return data_share(run) >= run.policy.data_share


def data_share(run: RunContext) -> float:
    """Share of the wall time waiting for data, epoch starts included."""
    model = run.model
    return model.wait / model.period if model.period > 0 else 0.0


def part_share(run: RunContext, part: str) -> float | None:
    """Share of the loader's work in "sampler", "fetch" or "collate"; None when not measured."""
    loader = run.lead.loader if run.lead else None
    if loader is None or loader.fetch_seconds is None:
        return None
    parts = {
        "sampler": loader.sampler_seconds or 0.0,
        "fetch": loader.fetch_seconds,
        "collate": loader.collate_seconds or 0.0,
    }
    total = sum(parts.values())
    return parts[part] / total if total > 0 else None


def getitem_seconds(run: RunContext) -> float | None:
    """One `__getitem__` call."""
    loader = run.lead.loader if run.lead else None
    if loader is None:
        return None
    if loader.getitem_seconds:
        return loader.getitem_seconds
    batch = run.batch_size
    return loader.fetch_seconds / batch if loader.fetch_seconds and batch else None


def hot_fetch(run: RunContext) -> Hotspot | None:
    """The user code inside the loader that takes most of the fetching, when there is a clear one."""
    found = run.hot_function("fetch", where=_own) or run.hot_function(
        "data", where=lambda spot: _own(spot) and not any(made_by(run, spot, part) for part in PARTS)
    )
    return found if found is not None and found.share >= 0.3 else None


def _own(spot: Hotspot) -> bool:
    return spot.in_data_set


def hot_part(run: RunContext, part: str) -> Hotspot | None:
    """The heaviest line of the sampler's or of the collate function's own code."""
    found = [spot for spot in run.hotspots if made_by(run, spot, part)]
    return max(found, key=lambda spot: spot.share, default=None)


def made_by(run: RunContext, spot: Hotspot, part: str) -> bool:
    """The line was reached through the loader's sampler or collate function."""
    if spot.phase not in (*LOADER_PHASES, *PARTS) or spot.function == "<module>":
        return False
    if spot.phase == part:
        return True
    names = [run.setting("loader", name) for name in PARTS[part]]
    functions = [spot.function, *(caller.function for caller in spot.callers)]
    return any(
        name and (function == name or function.startswith(f"{name}.") or function.endswith(f".{name}"))
        for function in functions
        for name in names
        if isinstance(name, str)
    )


def sample_words(run: RunContext) -> str:
    """ "`__getitem__` takes 3.1 ms a sample, 88 % of it in `transform` (dataset.py:41)"."""
    cost, spot = getitem_seconds(run), hot_fetch(run)
    name = run.setting("loader", "dataset")
    method = "__iter__" if run.setting("loader", "iterable") is True else "__getitem__"
    owner = f"`{name}.{method}`" if name else f"`{method}`"
    words = f"{owner} takes {seconds(cost)} a sample" if cost else f"{owner} is slow"
    return words + (f", {percent(spot.share)} of it in {spot.words}" if spot else "")


def waits(run: RunContext) -> bool:
    """Making a sample is mostly waiting (disk, network, sleep), not computing. Where more workers than
    cores queue for the cores, only the words of the line tell that from waiting."""
    if run.load_cpu_share >= 0.5:
        return False
    crowded = bool(run.workers and run.cores and run.workers > run.cores)
    spot = hot_fetch(run)
    told = spot is not None and (
        spot.kind == "sleep" or re.search(WAITS, f"{spot.code} {spot.inside}", re.IGNORECASE) is not None
    )
    return told or not crowded


WAITS = r"sleep|open\(|read|load|request|socket|recv|download|urlopen|query|connect|fetch|select|poll"
RANDOM = r"random|\brng\b|rand(n|int|perm|_like)?\(|uniform|\bnormal\(|augment|jitter|choice\(|shuffle\("


def random_samples(run: RunContext) -> bool:
    """Most of the work in a sample is random augmentation, so that it cannot simply be kept."""
    lines = [spot for spot in run.hotspots if spot.phase in LOADER_PHASES and spot.in_data_set]
    drawn = sum(
        spot.share
        for spot in lines
        if spot.random or re.search(RANDOM, f"{spot.code} {spot.function} {spot.inside}")
    )
    return drawn >= 0.08 and drawn >= 0.35 * sum(spot.share for spot in lines)


def library_samples(run: RunContext) -> bool:
    """Samples come from torch's own data set classes: nothing of the user's to make cheaper."""
    return run.setting("loader", "dataset") in ("TensorDataset", "Subset", "ConcatDataset", "list")


def loader_line(run: RunContext, old: str, new: str) -> str:
    """A diff of the DataLoader call with this run's values."""
    batch = run.batch_size
    size = f"batch_size={batch}, " if batch else ""
    return f"- DataLoader(dataset, {size}{old})\n+ DataLoader(dataset, {size}{new})"


def best_workers(run: RunContext) -> tuple[int, float]:
    """The number of workers the model likes best, and the step period with it."""
    cores = int(run.cores or 1)
    most = max(cores, 2) * (4 if waits(run) else 1)
    model = run.model
    best, period = 0, model.apply(Change(workers=0)).period if not model.workers else model.period
    for count in range(1, most + 1):
        with_count = model.apply(Change(workers=count)).period
        if with_count < period * 0.97:
            best, period = count, with_count
    return best, period
