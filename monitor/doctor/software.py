"""Checks of what is installed: Python, our dependencies, torch."""

from __future__ import annotations

import platform
import re
import sys
from importlib import metadata

from monitor import __version__
from monitor.doctor.check import Context, Result, check, failed, passed, skipped, warned
from monitor.doctor.probes import ProbeError, ask_torch

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:.*?>=\s*([\d.]+))?")
OLDEST_TORCH = "2.4"
DISTRIBUTION = "gpumon-train"
"""Our name on PyPI; the command's name was taken."""


@check("python", "Python version")
def python(context: Context) -> Result:
    found = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.maxsize < 2**32:
        return failed(f"{found} is a 32-bit build", "use a 64-bit Python: rings hold 64-bit words")
    return passed(f"{found}, 64 bit", version=platform.python_version())


@check("versions", "gpumon and the packages it needs")
def versions(context: Context) -> Result:
    wrong = [problem for line in _requirements() if (problem := _problem(line))]
    if wrong:
        return failed("; ".join(wrong), "pip install --upgrade gpumon-train")
    if _version("pynvml") is not None:
        return warned(
            "the deprecated distribution pynvml is installed and may hide NVIDIA's own nvidia-ml-py",
            "pip uninstall pynvml && pip install --force-reinstall nvidia-ml-py",
        )
    return passed(f"gpumon {__version__}, all packages present", gpumon=__version__)


@check("torch", "PyTorch, and with --deep whether it reaches the GPU")
def torch(context: Context) -> Result:
    found = _version("torch")
    if found is None:
        return skipped("torch is not installed in this environment; training may use another one")
    if _numbers(found) < _numbers(OLDEST_TORCH):
        return warned(f"torch {found} is older than {OLDEST_TORCH}", f"pip install 'torch>={OLDEST_TORCH}'")
    if context.deep:
        return _torch_deep(context)
    if found.endswith("+cpu") and context.nvml.gpus:
        return warned(f"torch {found} cannot use the GPU of this machine", "install a CUDA build of torch")
    return passed(f"torch {found} (metadata only; --deep starts it)", version=found)


def _torch_deep(context: Context) -> Result:
    try:
        answer = ask_torch()
    except ProbeError as error:
        return failed(
            f"torch does not start: {error}",
            "python -c 'import torch' shows the whole error; reinstall torch",
        )
    name = f"torch {answer['torch']}"
    if answer["available"]:
        return passed(f"{name} computes on {answer['devices']} CUDA device(s)", **answer)
    if context.nvml.gpus:
        build = answer["cuda_build"]
        why = f"built for CUDA {build}" if build else "a build without CUDA"
        return failed(
            f"{name} ({why}) sees no GPU, NVML sees {len(context.nvml.gpus)}",
            "check CUDA_VISIBLE_DEVICES and that the driver is new enough for torch's CUDA version",
            **answer,
        )
    return passed(f"{name} imports; no GPU to use", **answer)


def _requirements() -> list[str]:
    """Our own requirements, without those of the extras."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    return [line for line in lines if "extra ==" not in line]


def _problem(requirement: str) -> str | None:
    match = _REQUIREMENT.match(requirement)
    if match is None:
        return None
    name, least = match.group(1), match.group(2)
    found = _version(name)
    if found is None:
        return f"{name} is missing"
    if least and _numbers(found) < _numbers(least):
        return f"{name} {found} is older than {least}"
    return None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, enough to compare with a minimum."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[+a-z]", version)[0]))
