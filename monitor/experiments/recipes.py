"""The trainers have options for what other scripts need a knob for: these are tried as arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from monitor.experiments.arm import Arm
from monitor.model.errors import UserError

PACKAGE = "trainers"


def recipe_of(words: Sequence[str]) -> str | None:
    """`python -m trainers.NAME`, `python -m trainers NAME` or `gpumon train NAME`; else None."""
    for at, word in enumerate(words[:-1]):
        after = words[at + 1]
        if word == "-m" and after.startswith(f"{PACKAGE}."):
            return after.removeprefix(f"{PACKAGE}.")
        before = Path(words[at - 1]).name if at else ""
        if (before, word) in (("-m", PACKAGE), ("gpumon", "train")) and not after.startswith("-"):
            return after
    return None


def recipe_arms(
    words: Sequence[str], cores: int, batch_size: int | None, workers: int | None = None
) -> list[Arm]:
    """What the user has chosen himself is left alone. `workers`: those of the loader; None: there is none."""
    given = {word.split("=")[0].lstrip("-").replace("-", "_") for word in words if word.startswith("--")}
    counts = [] if workers is None else [count for count in (cores, 0) if count != workers]
    return [
        Arm(options={name: value})
        for name, value in _options(counts, "naive" in _rungs(words), batch_size)
        if name not in given and f"no_{name}" not in given
    ]


def _rungs(words: Sequence[str]) -> list[str]:
    """What `--rung` says, as one word or as two."""
    return [word.removeprefix("--rung=") for word in words]


def _options(counts: Sequence[int], naive: bool, batch_size: int | None) -> Iterator[tuple[str, str]]:
    """What has an effect: a naive rung has no products to choose from."""
    yield from (("num_workers", str(count)) for count in counts)
    yield "threads", "1"
    if not naive:
        yield "products", "all"
        yield "products", "none"
    yield "use_torch_compile", "true"
    if batch_size is not None:
        yield "batch_size", str(2 * batch_size)


def write_config(path: str, options: Mapping[str, str]) -> None:
    """A file for the trainers' --config."""
    try:
        Path(path).write_text("".join(f"{name}: {value}\n" for name, value in options.items()), "utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
