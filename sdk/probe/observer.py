"""Runs the probe over time: at the start, at the first optimizer step, then once a second."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..compiler import counters as dynamo
from ..compiler.counters import compile_config
from ..loader.watch import LoaderWatch
from . import _autocast as autocast
from ._config import loader_config, process_config, read, torch_config, training_config
from ._model import trained_model
from ._process import Housekeeping
from ._source import source_config
from ._unapplied import Unapplied


class Observer:
    """Holds `config`; `refresh` says whether it has changed. Hooks are removed in `refresh`, not in the hook
    itself, while torch iterates over them."""

    def __init__(self, loaders: LoaderWatch) -> None:
        self.config: dict[str, Any] = process_config()
        self._cost_ns = 0
        self._loaders = loaders
        self._housekeeping = Housekeeping()
        self._undo: Callable[[], object] | None = None
        self._undo_autocast: Callable[[], object] | None = None
        self._trained = False
        self._unapplied: Unapplied | None = None

    def watch_torch(self) -> None:
        """Install one-time hooks: each goes once it has seen what it wants."""
        torch = sys.modules.get("torch")
        if torch is None or self._undo is not None or self._trained:
            return
        with contextlib.suppress(ImportError, AttributeError):
            module = importlib.import_module("torch.optim.optimizer")
            self._undo = module.register_optimizer_step_pre_hook(self._first_step).remove
            self._undo_autocast = autocast.listen(torch, self._autocast_seen)

    def _autocast_seen(self, dtype: str | None) -> None:
        self.config.setdefault("precision", {}).update(autocast=True, autocast_dtype=dtype)
        if self._undo_autocast is not None:
            self._undo_autocast()
            self._undo_autocast = None

    def _first_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        torch = sys.modules["torch"]
        if self._trained or torch.compiler.is_dynamo_compiling():
            return
        self.training(torch, optimizer, sys._getframe(1))

    def training(self, torch: Any, optimizer: Any, frame: FrameType | None) -> None:
        """The loop has reached its first optimizer step: model and optimizer are now visible."""
        began = time.monotonic_ns()
        self._trained = True
        seen = self.config.get("precision", {})
        self.config |= read(lambda: torch_config(torch)) or {}
        model = read(lambda: trained_model(torch, optimizer, frame))
        self.config |= training_config(torch, optimizer, model)
        self._unapplied = read(lambda: Unapplied(model, optimizer)) if model is not None else None
        self.note("source", read(source_config))
        unseen = {} if dynamo.in_use() else {"autocast": False}  # not visible inside compiled code
        self.config["precision"] = {**unseen, **self.config.get("precision", {}), **seen}
        self.config["precision"]["grad_scaler"] = _under_scaler(frame)
        self.refresh_loader()
        self._cost_ns += time.monotonic_ns() - began

    def take_cost(self) -> int:
        """ns spent outside the marks since the last call."""
        cost, self._cost_ns = self._cost_ns, 0
        return cost

    def refresh_loader(self) -> bool:
        if self._loaders.loader is None:
            return False
        found = loader_config(self._loaders.loader, self._loaders)
        changed = found != self.config.get("loader")
        self.config["loader"] = found
        return changed

    def refresh(self) -> tuple[dict[str, float], bool]:
        """Once a second: (scalars, whether the config has changed)."""
        if self._trained and self._undo is not None:
            self._undo()
            self._undo = None
        scalars = self._housekeeping.scalars() | self._loaders.times.scalars()
        scalars |= self._loaders.evaluation_starts.scalars()
        before = self.config.get("compile")
        compiled = compile_config({k: v for k, v in scalars.items() if k.startswith("dynamo.")})
        if compiled is not None:
            self.config["compile"] = compiled
        changed = self._refresh_unapplied() or compiled != before
        return scalars, self.refresh_loader() or changed

    def _refresh_unapplied(self) -> bool:
        if self._unapplied is None:
            return False
        read(self._unapplied.look)
        if self._unapplied.known is None:
            return self.config.pop("unapplied", None) is not None
        return self.note("unapplied", self._unapplied.known)

    def note(self, key: str, value: Any) -> bool:
        """Set one part of the config; returns whether it changed."""
        if value is None or self.config.get(key) == value:
            return False
        self.config[key] = value
        return True

    def close(self) -> None:
        for undo in (self._undo, self._undo_autocast):
            if undo is not None:
                undo()
        self._undo = self._undo_autocast = None


def _under_scaler(frame: FrameType | None) -> bool:
    """Whether a gradient scaler called the optimizer."""
    for _ in range(8):
        if frame is None:
            return False
        if frame.f_code.co_filename.replace("\\", "/").endswith("torch/amp/grad_scaler.py"):
            return True
        frame = frame.f_back
    return False
