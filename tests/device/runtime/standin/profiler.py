"""torch.profiler with ProfilerActivity.CUDA: a CPU build says it has none, the stand-in's plug-in has."""

from typing import Any


def allow(torch: Any) -> None:
    import torch.autograd.profiler
    import torch.profiler

    supported = torch.autograd._supported_activities() | {torch.profiler.ProfilerActivity.CUDA}

    def supported_activities() -> set[Any]:
        return set(supported)

    for module in (torch._C._autograd, torch.autograd, torch.autograd.profiler):
        if hasattr(module, "_supported_activities"):
            module._supported_activities = supported_activities
