"""What a model's passes cost, by its size and kind, and how much room there is for a larger batch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Bounds, Outcomes
from monitor.advice.prediction.step_model import Change, Saving, scaled
from monitor.model.kernel_names import is_matrix, on_tensor_cores
from monitor.model.policy import DEFAULT_POLICY

TARGET_MEMORY = 0.75
"""Memory use a batch-size suggestion aims for: below the 80 % at which the policy warns."""
FLOPS_PER_PARAMETER = 6.0
"""A dense layer's arithmetic per sample: one multiplication and one addition per parameter in forward, twice
that in backward."""
STATE_COPIES = 4.0
"""A model's own memory relative to its parameters: parameters, gradients and Adam's two moments."""
STATE_MOST = 0.9
"""At most this share of the allocator's peak is model and optimizer: the rest is activations."""
LARGEST_GROWTH = 16
"""A suggestion never exceeds this multiple of the batch."""
TENSOR_WORK = 0.05
"""Our choice: tensor cores active for a smaller share of the time may be working for others."""
TF32_MAJOR = 8
"""Compute capability from which a GPU has TF32 (Ampere; NVIDIA's CUDA programming guide)."""


def compute_change(run: RunContext, left: float) -> Change:
    """Forward and backward at `left` of their time; on a device, it is the device's work that shrinks."""
    if run.lanes is not None:
        return Change(device_left=left)
    gone = max(0.0, 1.0 - left)
    return Change(
        savings=tuple(
            Saving(phase, gone * run.seconds(phase), "compute")
            for phase in run.forward_phases
            if run.seconds(phase) > 0
        )
    )


def backward_change(run: RunContext, share: float, place: str) -> Change:
    """The step without this share of backward: on a device, of what the host spends on launching it."""
    if run.lanes is not None:
        return scaled(own_change(run, ("backward",), place), share)
    return Change(savings=(Saving("backward", share * run.seconds("backward"), place),))


def passes_change(run: RunContext, left: float) -> Change:
    """Fewer operations: on a device the host launches the passes in `left` of its own time, and the device's
    work shrinks as well."""
    change = compute_change(run, left)
    if run.lanes is None:
        return change
    launching = own_change(run, run.forward_phases, "compute")
    return replace(change, savings=scaled(launching, max(0.0, 1.0 - left)).savings)


class Kernels(NamedTuple):
    """The device's work by kind: shares of the total kernel time."""

    matrix: float
    on_tensor_cores: float


LEAST_NAMED = 0.5
"""Our choice: unnamed kernels may be anything, so at least this share must be named to say anything."""


def kernels(run: RunContext) -> Kernels | None:
    """Judged by the names of the heaviest kernels; None if too few are known."""
    raw = run.setting("kernels")
    listed = [one for one in raw if isinstance(one, dict)] if isinstance(raw, list) else []
    shares = ((str(one.get("name")), one.get("share")) for one in listed)
    named = [(name, share) for name, share in shares if isinstance(share, float)]
    if sum(share for _, share in named) < LEAST_NAMED:
        return None
    return Kernels(
        matrix=sum(share for name, share in named if is_matrix(name)),
        on_tensor_cores=sum(share for name, share in named if on_tensor_cores(name)),
    )


def tensor_cores_work(run: RunContext) -> bool:
    """Whether tensor cores work, by the kernels' names or the card's own counters."""
    seen = kernels(run)
    counted = max((gpu.activity.tensor_active_ratio or 0.0 for gpu in run.gpus), default=0.0)
    return max(seen.on_tensor_cores if seen else 0.0, counted) >= TENSOR_WORK


def matrix_change(run: RunContext, left: Bounds) -> Outcomes:
    """Matrix products at `left` of their time, applied to their part of the device's work; for the highest
    gain, to all work, because smaller numbers also mean fewer bytes."""
    seen = kernels(run)
    part = seen.matrix if seen else 1.0
    return Bounds(
        low=1.0 - part * (1.0 - left.low), likely=1.0 - part * (1.0 - left.likely), high=left.high
    ).of(lambda value: compute_change(run, value))


def own_change(run: RunContext, phases: Collection[str], cause: str) -> Change:
    """Removes all of the host's own time in these phases, not counting waits for the device."""
    own = run.lanes.graph.own if run.lanes is not None else {}
    return Change(savings=tuple(Saving(name, own[name], cause) for name in phases if own.get(name)))


HEAVY = {"Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell"} | {
    "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer",
}  # fmt: skip
"""Layers that use each parameter many times per sample."""
BAG, LITTLE = "EmbeddingBag", 0.1
"""The table whose rows are summed before any other layer, and the share of both passes that is little."""


def arithmetic_seconds(run: RunContext) -> float | None:
    """Seconds of forward and backward that are arithmetic, if all layers are dense and the parameter count is
    known; else None. Of a bag's table only some rows are used: counting all is good enough if little."""
    layers, parameters = run.setting("model", "layers"), run.count("model", "parameters")
    if run.has_cuda or not isinstance(layers, list) or not layers or not parameters:
        return None
    kinds = set(map(str, layers))
    if kinds & HEAVY or any(kind.startswith("Embedding") for kind in kinds - {BAG}):
        return None
    rows = max(run.batch_size or 1, run.count("shapes", "rows") or 1)
    seconds = FLOPS_PER_PARAMETER * parameters * rows / run.policy.cpu_flops
    little = LITTLE * (run.seconds("forward") + run.seconds("backward"))
    return seconds if BAG not in kinds or seconds <= little else None


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
"""What a layer of this kind costs a step on a CPU, however small its input, forward and backward. Measured
layer by layer on a machine with two cores (docs/advice.md)."""
OP_SECONDS = DEFAULT_POLICY.op_seconds_cpu
"""Cost of a module on that machine; on other machines all of these scale with it."""
OVERHEAD_OTHERWISE = 12e-6
"""The same for any other layer."""
TENSOR_SECONDS = 80e-6
"""The same per parameter tensor: the probe may see less of a model than the optimizer holds."""


def overhead_seconds(run: RunContext) -> float:
    """Seconds of forward and backward that any batch costs, by the number of modules of each kind."""
    counts, modules = run.setting("model", "layer_counts"), run.count("model", "modules") or 0
    if not isinstance(counts, dict) or not counts:
        return 2 * modules * run.policy.op_seconds_cpu
    known = [(str(kind), number) for kind, number in counts.items() if isinstance(number, int)]
    layers = sum(number * _overhead(kind) for kind, number in known)
    tensors = run.count("model", "tensors") or 0
    return max(layers, TENSOR_SECONDS * tensors) * run.policy.op_seconds_cpu / OP_SECONDS


def _overhead(kind: str) -> float:
    return next((cost for known, cost in OVERHEAD.items() if kind.startswith(known)), OVERHEAD_OTHERWISE)


def model_seconds(run: RunContext) -> float | None:
    """Seconds the model's own forward and backward take together, judged by its size; None if that does not
    tell."""
    arithmetic, modules = arithmetic_seconds(run), run.count("model", "modules")
    if arithmetic is None or not modules:
        return None
    return arithmetic + 2 * modules * run.policy.op_seconds_cpu


def ampere(run: RunContext) -> bool:
    """Whether the GPU has TF32 (compute capability 8 or newer), as far as known."""
    for gpu in run.gpus:
        major = (gpu.compute_capability or "").partition(".")[0]
        if major.isdigit() and int(major) >= TF32_MAJOR:
            return True
    return False


def memory_used(run: RunContext) -> float | None:
    """Used share of the memory the model lives in: the GPU's, else the host's."""
    for gpu in run.gpus:
        if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
            return gpu.memory_used_bytes / gpu.memory_total_bytes
    memory = run.snapshot.host.memory
    if run.has_cuda or memory is None or not memory.total_bytes:
        return None
    return 1.0 - memory.available_bytes / memory.total_bytes


def suggested_batch(run: RunContext) -> int | None:
    """The batch that fills the GPU to the target: mem = m0 + m1·B from what the allocator measured.

    m0 is the model with its gradients and optimizer state (parameters × 4), m1 the rest of the peak per
    sample. Only power-of-two multiples, so that it remains a number people use."""
    gpu, batch = (run.gpus[0] if run.gpus else None), run.batch_size
    peak = run.scalar("cuda.max_allocated_bytes")
    if gpu is None or not batch or not peak or not gpu.memory_total_bytes:
        return None
    fixed = STATE_COPIES * (run.count("model", "parameter_bytes") or 0)
    per_sample = (peak - min(fixed, STATE_MOST * peak)) / batch
    outside = max(0.0, (gpu.memory_used_bytes or 0) - (run.scalar("cuda.reserved_bytes") or peak))
    room = TARGET_MEMORY * gpu.memory_total_bytes - outside - fixed
    if per_sample <= 0 or room <= 0:
        return None
    fits, size = room / per_sample, batch
    while size * 2 <= fits and size < batch * LARGEST_GROWTH:
        size *= 2
    return size if size > batch else None
