"""The GPU's memory has errors.

Looks at: uncorrected ECC errors, pending or failed row remapping, retired pages.
Why: Uncorrected errors corrupt results or kill the process; a pending remap takes effect only after a
    reset, a failed one means the card must be replaced.
Remedy: stop using the card until it is reset; replace it if the errors come back.
Gain: none: this is about correct results.
"""

from __future__ import annotations

from monitor.advice.context.machine import MachineContext
from monitor.advice.rule import Advice, machine_rule
from monitor.model.gpu import Gpu

WORDS = {
    "ecc_uncorrected_volatile": "uncorrected ECC errors",
    "remapped_rows_failed": "remapping failed",
    "remapped_rows_pending": "remapping pending",
    "retired_pages_pending": "retired pages pending",
    "retired_pages_double_bit": "pages retired for double-bit errors",
}
"""Driver counters that mean broken memory."""


@machine_rule("device.memory_errors", "Memory errors")
def check(machine: MachineContext) -> list[Advice]:
    return [advice for gpu in machine.snapshot.gpus if (advice := _check(gpu)) is not None]


def _check(gpu: Gpu) -> Advice | None:
    errors = gpu.errors
    found = {name: value for name in WORDS if (value := getattr(errors, name))}
    if not found:
        return None
    words = ", ".join(
        WORDS[name] if isinstance(value, bool) else f"{WORDS[name]}: {value}" for name, value in found.items()
    )
    bad = bool(errors.ecc_uncorrected_volatile or errors.remapped_rows_failed)
    return Advice(
        title=f"Memory errors on GPU {gpu.index}: {words}",
        remedy="Checkpoint, drain the GPU and reset it; replace it if the errors come back.",
        change=f"nvidia-smi -i {gpu.index} -q -d ECC,ROW_REMAPPER; nvidia-smi -i {gpu.index} --gpu-reset",
        evidence=found,
        severity="critical" if bad else "warning",
        gpu=gpu.uuid,
    )
