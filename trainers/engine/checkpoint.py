"""Checkpoints: written whole or not at all, holding everything a bit-equal continuation needs."""

from __future__ import annotations

import os
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainers.errors import TrainerError

VERSION = 1


def rng_state() -> dict[str, Any]:
    """All generators a training step may draw from."""
    name, keys, position, has_gauss, gauss = np.random.get_state()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [name, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, gauss],
        "python": random.getstate(),
    }


def set_rng_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)


def save(path: Path, content: dict[str, Any]) -> None:
    """Write beside, flush to disk, rename: a crash leaves the old checkpoint, never half a new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".tmp{os.getpid()}")
    try:
        with open(temporary, "wb") as stream:
            torch.save({"version": VERSION, **content}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        raise TrainerError(f"checkpoint {path} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """A checkpoint, as data only: nothing in the file is executed."""
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TrainerError(
            f"checkpoint {path} is broken: {reason}",
            hint="remove it, or start afresh with --resume never",
        ) from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise TrainerError(f"{path} is not a checkpoint of this version of the trainers")
    return content
