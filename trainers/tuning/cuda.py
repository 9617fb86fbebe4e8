"""Device set-up in one place: TF32, cudnn.benchmark, allocator, environment (S1.5, S4.2)."""

from __future__ import annotations

import os

import torch

from trainers.errors import TrainerError

ENVIRONMENT = {
    "CUDA_LAUNCH_BLOCKING": "0",
    "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128",
    "TORCH_CUDNN_V8_API_ENABLED": "1",
}
"""The document's variables; a value the user has set already is kept."""


def set_environment(values: dict[str, str] = ENVIRONMENT) -> None:
    """Must run before CUDA is initialised: the allocator reads its variable once."""
    for name, value in values.items():
        os.environ.setdefault(name, value)


def choose_device(name: str) -> torch.device:
    """`auto` is this rank's GPU if there is one."""
    if name == "auto":
        local = int(os.environ.get("LOCAL_RANK", 0))
        return torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise TrainerError(f"--device {name} is not a device", hint="cpu, cuda or cuda:0") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainerError(
            f"--device {name}: torch sees no GPU here", hint="--device cpu, or check the driver"
        )
    return device


def set_up(device: torch.device, *, tf32: bool, threads: int | None) -> list[str]:
    """Apply the settings; returns a line for each, so that a log shows what was in force."""
    lines = []
    if threads:
        torch.set_num_threads(threads)
        lines.append(f"torch threads {threads}")
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = tf32
        lines.append(f"TF32 and cudnn.benchmark {'on' if tf32 else 'off'}")
        lines.append(f"allocator {os.environ.get('PYTORCH_CUDA_ALLOC_CONF', 'default')}")
    return lines
