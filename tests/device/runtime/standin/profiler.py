"""torch.profiler with ProfilerActivity.CUDA: a CPU build claims to have none; our plug-in provides it."""

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
