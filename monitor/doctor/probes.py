"""Checks that may hang or import a lot run in a separate process, with a deadline.

A hung driver puts its caller into a sleep that no signal ends; in that case the child is left behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from monitor.model.units import duration

NVML_SECONDS = 10.0
TORCH_SECONDS = 90.0
"""Chosen: NVML answers in well under a second; importing torch from a cold disk may take a minute."""

_NVML = """
import json, pynvml as n
def text(v): return v.decode() if isinstance(v, bytes) else v
answer = {}
try:
    n.nvmlInit()
    answer["driver"] = text(n.nvmlSystemGetDriverVersion())
    cuda = n.nvmlSystemGetCudaDriverVersion()
    answer["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
    answer["gpus"] = []
    for i in range(n.nvmlDeviceGetCount()):
        try:
            h = n.nvmlDeviceGetHandleByIndex(i)
            answer["gpus"].append({"index": i, "name": text(n.nvmlDeviceGetName(h))})
        except n.NVMLError as error:
            answer["gpus"].append({"index": i, "error": str(error)})
except n.NVMLError as error:
    answer["error"], answer["code"] = str(error), error.value
print(json.dumps(answer))
"""

_TORCH = """
import json, torch
answer = {"torch": torch.__version__, "cuda_build": torch.version.cuda}
answer["available"] = torch.cuda.is_available()
answer["devices"] = torch.cuda.device_count() if answer["available"] else 0
if answer["available"]:
    answer["sum"] = float(torch.ones(8, device="cuda").sum().item())
print(json.dumps(answer))
"""


@dataclass(frozen=True, slots=True)
class NvmlAnswer:
    """What NVML said; `error` if it said nothing useful."""

    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[dict[str, Any], ...] = ()
    error: str | None = None
    code: int | None = None
    hung: bool = False


class ProbeError(Exception):
    """The child gave no answer; the message says why."""


class ProbeHung(ProbeError):
    """The child was still busy at the deadline."""


def ask_python(code: str, seconds: float) -> dict[str, Any]:
    """Run `code` in a fresh interpreter; the last line of its output is the answer, as JSON."""
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _abandon(child)
        raise ProbeHung(f"no answer within {duration(seconds)}") from None
    lines = out.strip().splitlines()
    if child.returncode != 0 or not lines:
        last = (err.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
        raise ProbeError(last)
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _abandon(child: subprocess.Popen[str]) -> None:
    """Kill, wait a moment, and carry on even if the child sleeps inside the driver."""
    child.kill()
    try:
        child.communicate(timeout=1.0)
    except subprocess.TimeoutExpired:
        child.returncode = -9  # nobody will wait for it any more


def ask_nvml(seconds: float = NVML_SECONDS) -> NvmlAnswer:
    try:
        answer = ask_python(_NVML, seconds)
    except ProbeError as error:
        return NvmlAnswer(error=str(error), hung=isinstance(error, ProbeHung))
    return NvmlAnswer(
        driver=answer.get("driver"),
        cuda=answer.get("cuda"),
        gpus=tuple(answer.get("gpus", ())),
        error=answer.get("error"),
        code=answer.get("code"),
    )


def ask_torch(seconds: float = TORCH_SECONDS) -> dict[str, Any]:
    return ask_python(_TORCH, seconds)
