"""torch.compile that proves itself: a compiled model that captured no graph is not compiled."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class CompileReport:
    """What was asked for, and what came of it."""

    asked: bool
    failed: str | None = None

    @property
    def graphs(self) -> int:
        """Graphs dynamo has really captured so far; 0 after a step means: not in effect."""
        from torch._dynamo.utils import counters

        return int(counters["stats"]["unique_graphs"])

    def sentence(self) -> str:
        """One line for the log, said after the first step."""
        if not self.asked:
            return "torch.compile is off"
        if self.failed:
            return f"torch.compile failed, training goes on uncompiled: {self.failed}"
        if not self.graphs:
            return "torch.compile captured no graph: it is not in effect"
        return f"Model compiled with torch.compile for maximum performance ({self.graphs} graphs captured)"


def compile_model(model: nn.Module, *, wanted: bool, mode: str, device: torch.device) -> CompileReport:
    """Compile in place: `m.compile()` keeps the state_dict's names, `torch.compile(m)` does not."""
    if not wanted:
        return CompileReport(asked=False)
    if not hasattr(model, "compile") or not hasattr(torch, "_dynamo"):
        return CompileReport(asked=True, failed=f"torch {torch.__version__} has none, 2.0 or newer is needed")
    if device.type == "cpu":
        _spare_cpu_activations()
    model.compile(mode=None if mode == "default" else mode, dynamic=False)
    return CompileReport(asked=True)


def _spare_cpu_activations() -> None:
    """On a CPU, compiled ReLU training saves too much: half the budget turned ×0.52 into ×1.15."""
    with contextlib.suppress(ImportError, AttributeError):
        from torch._functorch import config

        config.activation_memory_budget = 0.5


def fall_back(model: nn.Module, report: CompileReport, error: BaseException) -> bool:
    """Whether `error` came from compiling; then the model is uncompiled and may be called again."""
    from torch._dynamo.exc import TorchDynamoException
    from torch._inductor.exc import InductorError

    if not report.asked or report.failed or not isinstance(error, (TorchDynamoException, InductorError)):
        return False
    report.failed = (
        f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
    )
    model._compiled_call_impl = None  # what nn.Module.compile set
    torch._dynamo.reset()
    return True
