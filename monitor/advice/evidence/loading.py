"""Loader figures shared by several input rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitor.advice.context.hotspot import Hotspot, together
from monitor.advice.context.input import LOADER_PHASES
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.prediction.step_model import Change
from monitor.model import units
from monitor.model.finding import Effect

PARTS = {"sampler": ("sampler", "batch_sampler"), "collate": ("collate",)}
"""Parts of the loader that may have user code, and the settings that name it."""
CLEAR_SHARE = 0.3
"""From this share of fetching, one line or function is worth naming."""
COMPUTES_SHARE = 0.5
"""If at least this share of loading needs a core, loading computes rather than waits."""
RANDOM_LEAST, RANDOM_SHARE = 0.08, 0.35
"""Samples count as random if random lines have this share of the phase, and of the data set's own lines."""
SHUFFLED_LEAST = 0.15
"""From this share of loading, shuffling everything for every sample is named before all else there: an order
as random costs nothing. Judgement."""
WORKERS_PER_CORE = 4
"""Workers that mostly wait may outnumber the cores by this factor."""
ALONE = {"persistent_workers": "False", "prefetch_factor": "None"}
"""Values that a DataLoader without workers requires for the worker settings."""
WORKER_GAIN = 0.97
"""One more worker must cut the step to at most this share of its time to be worth a process."""


def starved(run: RunContext) -> bool:
    """Whether waiting for data takes more of the step than the policy allows."""
    return data_share(run) >= run.policy.data_share


def data_share(run: RunContext) -> float:
    """Share of the wall time spent waiting for data, including epoch starts."""
    model = run.model
    return model.wait / model.period if model.period > 0 else 0.0


def part_share(run: RunContext, part: str) -> float | None:
    """Share of the loader's work in "sampler", "fetch" or "collate"; None if not measured."""
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
    """The user code inside the loader that takes most of the fetching, if one clearly does."""
    found = run.hot_function("fetch", where=_own) or run.hot_function(
        "data", where=lambda spot: _own(spot) and not any(made_by(run, spot, part) for part in PARTS)
    )
    return found if found is not None and found.share >= CLEAR_SHARE else None


def _own(spot: Hotspot) -> bool:
    return spot.in_data_set


def hot_part(run: RunContext, part: str) -> Hotspot | None:
    """The heaviest line of the sampler's or collate function's own code."""
    return max(lines_of(run, part), key=lambda spot: spot.share, default=None)


def made_by(run: RunContext, spot: Hotspot, part: str) -> bool:
    """Whether the line was reached through the loader's sampler or collate function."""
    if spot.phase not in (*LOADER_PHASES, *PARTS):
        return False
    if spot.phase == part or _is_within(run.setting("loader", f"{part}_at"), spot):
        return True
    if spot.function == "<module>":
        return False
    names = [run.setting("loader", name) for name in PARTS[part]]
    functions = [spot.function, *(caller.function for caller in spot.callers)]
    return any(
        name and (function == name or function.startswith(f"{name}.") or function.endswith(f".{name}"))
        for function in functions
        for name in names
        if isinstance(name, str)
    )


def _is_within(place: Any, spot: Hotspot) -> bool:
    """Whether a line or one of those that led to it is in the (file, first line, last line) of a function."""
    match place:
        case [str(file), int(first), int(last)]:
            places = [(spot.file, spot.line), *((one.file, one.line) for one in spot.callers)]
            return any(where == file and first <= line <= last for where, line in places)
    return False


def sample_text(run: RunContext) -> str:
    """ "`__getitem__` takes 3.1 ms a sample, 88 % of it in `transform` (dataset.py:41)"."""
    cost, spot = getitem_seconds(run), hot_fetch(run)
    name = run.setting("loader", "dataset")
    method = "__iter__" if run.setting("loader", "iterable") is True else "__getitem__"
    function = f"{name}.{method}" if name else method
    owner = f"`{function}`"
    words = f"{owner} takes {units.seconds(cost)} a sample" if cost else f"{owner} is slow"
    return words + (f", {units.percent(spot.share)} of it in {spot.text_beside(function)}" if spot else "")


def waits(run: RunContext) -> bool:
    """Whether making a sample is mostly waiting (disk, network, sleep) rather than computing. If more workers
    than cores queue for the cores, only the library function the line calls can tell."""
    if run.load_cpu_share >= COMPUTES_SHARE:
        return False
    crowded = bool(run.workers and run.cores and run.workers > run.cores)
    spot = hot_fetch(run)
    return not crowded or (spot is not None and (spot.kind == "sleep" or spot.blocking))


def random_samples(run: RunContext) -> bool:
    """Whether most of the work per sample is random augmentation, which cannot simply be cached. A sampler
    draws only in which order samples come."""
    lines = [spot for spot in run.hotspots if spot.phase in LOADER_PHASES and spot.in_data_set]
    if not lines:
        return _drawn_in_a_library(run)
    return _mostly_drawn([spot for spot in lines if not made_by(run, spot, "sampler")])


def _drawn_in_a_library(run: RunContext) -> bool:
    """Samples made without a line of the user's, by a library's data set and its transforms, used a random
    generator. What a stream draws may be its order only."""
    seen = run.setting("samples_drawn") is True or run.scalar("loader.samples_drawn") == 1.0
    return seen and run.setting("loader", "iterable") is not True


def shuffled(run: RunContext) -> Hotspot | None:
    """What shuffles all that samples are taken from, for every one of them, if it takes much of loading."""
    lines = [spot for spot in run.hotspots if spot.phase in LOADER_PHASES and spot.orders]
    found = together(lines) if lines else None
    return found if found is not None and found.share >= SHUFFLED_LEAST else None


def random_batches(run: RunContext) -> bool:
    """Whether most of the collate function's work follows from what it draws: neighbours, negatives, masks,
    others in every epoch."""
    return _mostly_drawn(lines_of(run, "collate"))


def _mostly_drawn(lines: Sequence[Hotspot]) -> bool:
    drawn = sum(spot.share for spot in lines if spot.random)
    return drawn >= RANDOM_LEAST and drawn >= RANDOM_SHARE * sum(spot.share for spot in lines)


def lines_of(run: RunContext, part: str) -> list[Hotspot]:
    """The hot lines of the sampler's or collate function's own code."""
    return [spot for spot in run.hotspots if made_by(run, spot, part)]


def resident(run: RunContext) -> bool:
    """Samples are rows of tensors or lists in memory: no user code to make cheaper."""
    return run.setting("loader", "dataset_resident") is True


def effect_of_workers(run: RunContext, count: int) -> Effect:
    """The effect of so many workers: each draws its own random numbers. And a loader whose workers stay does
    not draw a new seed for them at every epoch, so all that the training draws after the first epoch (the
    order of the samples, dropout) is different."""
    stay = run.setting("loader", "persistent_workers") is True
    return (
        "in_expectation" if random_samples(run) or random_batches(run) or stay != (count > 0) else "identical"
    )


def with_workers(run: RunContext, count: int) -> str:
    """The DataLoader call with this many workers; with none, it accepts none of their settings."""
    values = {"num_workers": str(count)}
    if count:
        values["persistent_workers"] = "True"
    else:
        present = run.setting("sites", "loader", "keywords")
        values |= {
            name: value for name, value in ALONE.items() if isinstance(present, dict) and name in present
        }
    if count and run.has_cuda:
        values["pin_memory"] = "True"
    return edits.keywords(run, "loader", **values)


def worker_knobs(count: int) -> dict[str, str]:
    """The same for an experiment: workers are kept between epochs."""
    return {"loader.num_workers": str(count)} | ({"loader.persistent_workers": "on"} if count else {})


def best_workers(run: RunContext) -> tuple[int, float]:
    """The best number of workers according to the model, and the step period with it."""
    cores = int(run.cores or 1)
    most = max(cores, 2) * (WORKERS_PER_CORE if waits(run) else 1)
    model = run.model
    best, period = 0, model.apply(Change(workers=0)).period if not model.workers else model.period
    for count in range(1, most + 1):
        with_count = model.apply(Change(workers=count)).period
        if with_count < period * WORKER_GAIN:
            best, period = count, with_count
    return best, period
