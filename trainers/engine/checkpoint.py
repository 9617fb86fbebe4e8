"""Checkpoints: written whole or not at all, holding everything a bit-equal continuation needs."""

from __future__ import annotations

import os
import random
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainers.errors import EXIT_FAILED, TrainerError

VERSION = 2
AFRESH = "remove it, or start afresh with --resume never"


def rng_state() -> dict[str, Any]:
    """All generators a training step may draw from."""
    name, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [name, torch.from_numpy(np.asarray(keys, np.int64)), position, has_gauss, gauss],
        "python": random.getstate(),
    }


def set_rng_state(state: dict[str, Any]) -> None:
    """Generator states are host tensors, wherever the checkpoint was loaded to."""
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"]:
        torch.cuda.set_rng_state_all([part.cpu() for part in state["cuda"]])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.cpu().numpy().astype(np.uint32), *rest))
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)


def save(path: Path, content: dict[str, Any]) -> None:
    """Write beside, flush to disk, rename: a crash leaves the old checkpoint, never half a new one."""
    temporary = path.with_suffix(f".tmp{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as stream:
            torch.save({"version": VERSION, **content}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except (OSError, RuntimeError) as error:  # torch's writer turns a failed write into a RuntimeError
        before = "; the one from before is kept" if path.exists() else ""
        raise TrainerError(
            f"checkpoint {path} cannot be written: {_cause(error)}{before}",
            hint="free some disk space or choose another --out",
            code=EXIT_FAILED,
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _cause(error: BaseException) -> str:
    """The operating system's own words when there are any, wherever in the chain they are."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, OSError) and link.strerror:
            return link.strerror
        link = link.__context__
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def load(path: Path, device: torch.device | str = "cpu", *, keys: Collection[str] = ()) -> dict[str, Any]:
    """A checkpoint that has these keys, as data only: nothing in the file is executed."""
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except OSError as error:
        raise TrainerError(f"checkpoint {path} cannot be read: {error.strerror}", hint=AFRESH) from error
    except Exception as error:
        # torch's own words would advise to execute the file's content
        raise TrainerError(f"{path} is not a checkpoint, or a damaged one", hint=AFRESH) from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise TrainerError(f"{path} is not a checkpoint of this version of the trainers", hint=AFRESH)
    missing = [key for key in keys if key not in content]
    if missing:
        raise TrainerError(f"checkpoint {path} has no {', '.join(missing)}", hint=AFRESH)
    return content
