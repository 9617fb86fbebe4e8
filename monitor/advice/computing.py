"""Figures about compute and memory that several rules share."""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.whatif import Change, Saving

TARGET_MEMORY = 0.75
"""Where a batch-size suggestion aims: below the 80 % the policy warns at."""


def compute_change(run: RunContext, left: float) -> Change:
    """Forward and backward at `left` of their time."""
    gone = max(0.0, 1.0 - left)
    return Change(
        savings=tuple(
            Saving(phase, gone * run.seconds(phase), "compute")
            for phase in run.forward_phases
            if run.seconds(phase) > 0
        )
    )


HEAVY = {"Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell"} | {
    "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer",
}  # fmt: skip
"""Layers that use each parameter many times a sample."""


def arithmetic_seconds(run: RunContext) -> float | None:
    """Seconds of forward and backward that are arithmetic, where all layers are dense and the parameters
    tell; None elsewhere."""
    layers, parameters = run.setting("model", "layers"), run.count("model", "parameters")
    if run.has_cuda or not isinstance(layers, list) or not layers or not parameters:
        return None
    if set(map(str, layers)) & HEAVY or any(str(layer).startswith("Embedding") for layer in layers):
        return None
    return 6.0 * parameters * (run.batch_size or 1) / run.policy.cpu_flops


OVERHEAD = {
    "Conv": 390e-6,
    "LSTM": 900e-6,
    "GRU": 1200e-6,
    "RNN": 800e-6,
    "Multihead": 300e-6,
    "Transformer": 100e-6,
    "Batch": 60e-6,
    "Group": 60e-6,
    "Linear": 50e-6,
    "Embedding": 40e-6,
    "Layer": 35e-6,
}
"""What a layer of this kind costs a step on a CPU however small its input is, forward and backward."""
OVERHEAD_OTHERWISE = 12e-6
TENSOR_SECONDS = 80e-6
"""The same for each tensor of parameters: the probe may see less of a model than the optimizer has."""


def overhead_seconds(run: RunContext) -> float:
    """Seconds of forward and backward that any batch costs, by the number of modules and their kinds."""
    layers, modules = run.setting("model", "layers"), run.count("model", "modules") or 0
    if not isinstance(layers, list) or not layers:
        return 2 * modules * run.policy.op_seconds_cpu
    costs = [
        next((cost for kind, cost in OVERHEAD.items() if str(layer).startswith(kind)), OVERHEAD_OTHERWISE)
        for layer in layers
    ]
    tensors = run.count("model", "tensors") or 0
    return max(modules * sum(costs) / len(costs), TENSOR_SECONDS * tensors)


def model_seconds(run: RunContext) -> float | None:
    """Seconds the model's own forward and backward take together, by its size; None when that does not
    tell."""
    arithmetic, modules = arithmetic_seconds(run), run.count("model", "modules")
    if arithmetic is None or not modules:
        return None
    return arithmetic + 2 * modules * run.policy.op_seconds_cpu


def ampere(run: RunContext) -> bool:
    """The GPU has TF32 (compute capability 8 or newer), as far as known."""
    for gpu in run.gpus:
        major = (gpu.compute_capability or "").partition(".")[0]
        if major.isdigit() and int(major) >= 8:
            return True
    return False


def memory_used(run: RunContext) -> float | None:
    """Share of the memory the model lives in that is in use: the GPU's, else the host's."""
    for gpu in run.gpus:
        if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
            return gpu.memory_used_bytes / gpu.memory_total_bytes
    memory = run.snapshot.host.memory
    if run.has_cuda or memory is None or not memory.total_bytes:
        return None
    return 1.0 - memory.available_bytes / memory.total_bytes


def suggested_batch(run: RunContext) -> int | None:
    """The batch that fills the GPU to the target: mem = m0 + m1·B from what the allocator measured.

    m0 is the model with its gradients and optimizer state (parameters × 4), m1 what the peak has on
    top of it per sample. Powers of two, so that it stays a number people use."""
    gpu, batch = (run.gpus[0] if run.gpus else None), run.batch_size
    peak = run.scalar("cuda.max_allocated_bytes")
    if gpu is None or not batch or not peak or not gpu.memory_total_bytes:
        return None
    fixed = 4.0 * (run.count("model", "parameter_bytes") or 0)
    per_sample = (peak - min(fixed, 0.9 * peak)) / batch
    outside = max(0.0, (gpu.memory_used_bytes or 0) - (run.scalar("cuda.reserved_bytes") or peak))
    room = TARGET_MEMORY * gpu.memory_total_bytes - outside - fixed
    if per_sample <= 0 or room <= 0:
        return None
    fits, size = room / per_sample, batch
    while size * 2 <= fits and size < batch * 16:
        size *= 2
    return size if size > batch else None
