"""Checks of the NVIDIA driver, its library and its device files."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from monitor.doctor.check import Context, Result, check, failed, passed, skipped, warned
from monitor.host.procfs import read_text

NVIDIA_VENDOR = "0x10de"
LIBRARY_NOT_FOUND = 12
MISMATCH = 18
CONTAINER_REMEDY = (
    "in a container: start it with --gpus all (NVIDIA Container Toolkit) and "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
)


@check("driver", "NVIDIA kernel driver")
def driver(context: Context) -> Result:
    version = kernel_driver(context) or context.nvml.driver
    if version:
        return passed(f"NVIDIA driver {version}", version=version)
    cards = nvidia_cards(context)
    if cards:
        return warned(
            f"{len(cards)} NVIDIA card(s) on the PCI bus, but no driver is loaded: host readings only",
            _driver_remedy(context),
            cards=cards,
        )
    return warned(
        "no NVIDIA driver on this machine: host readings only",
        "nothing to do without a GPU; use --source simulated to try gpumon",
    )


@check("nvml", "NVML library: every GPU answers")
def nvml(context: Context) -> Result:
    answer = context.nvml
    if answer.hung:
        return failed(
            f"NVML hangs ({answer.error})", "dmesg | grep -i -e xid -e nvrm names the GPU; reset it or reboot"
        )
    if answer.error:
        return _nvml_error(context)
    if not answer.gpus:
        return warned(
            "NVML answers, but there is no GPU", f"check lspci | grep -i nvidia; {CONTAINER_REMEDY}"
        )
    broken = [gpu for gpu in answer.gpus if "error" in gpu]
    if broken:
        what = "; ".join(f"GPU {gpu['index']}: {gpu['error']}" for gpu in broken)
        return failed(
            what, "nvidia-smi -r resets a GPU that nobody uses; dmesg shows the XID", gpus=answer.gpus
        )
    names = sorted({str(gpu["name"]) for gpu in answer.gpus})
    return passed(f"{len(answer.gpus)} GPU(s): {', '.join(names)}; CUDA {answer.cuda}", gpus=answer.gpus)


def _nvml_error(context: Context) -> Result:
    error, code = context.nvml.error, context.nvml.code
    if code == MISMATCH:
        return failed(
            f"NVML: {error}", "the driver was upgraded while loaded: reboot, or reload the nvidia modules"
        )
    if not kernel_driver(context) and not nvidia_cards(context):
        return skipped(f"no driver to ask ({error})")
    if code == LIBRARY_NOT_FOUND:
        return failed(
            "libnvidia-ml.so.1 not found", f"install the driver's user-space part; {CONTAINER_REMEDY}"
        )
    return failed(
        f"NVML: {error}", "run nvidia-smi: it should show the same error; reload the driver or reboot"
    )


@check("device-permissions", "access to /dev/nvidia*")
def device_permissions(context: Context) -> Result:
    nodes = device_nodes(Path("/dev"))
    if not nodes:
        if kernel_driver(context):
            return failed(
                "the driver is loaded, but there is no /dev/nvidia*",
                f"nvidia-modprobe -c 0 -u; {CONTAINER_REMEDY}",
            )
        return skipped("no NVIDIA device files")
    closed = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if closed:
        return failed(
            f"no access to {', '.join(closed)}",
            "add the user to the group that owns them (ls -l /dev/nvidia*), often video or render",
            closed=closed,
        )
    return passed(f"{len(nodes)} device files, all open to us")


def device_nodes(directory: Path) -> list[Path]:
    """The driver's character devices, without MIG's in /dev/nvidia-caps, which not everybody may open."""
    found = sorted(directory.glob("nvidia*"))
    return [node for node in found if re.match(r"nvidia(\d+|ctl|-uvm)$", node.name) and _is_device(node)]


def _is_device(node: Path) -> bool:
    try:
        return stat.S_ISCHR(node.stat().st_mode)
    except OSError:
        return False


def kernel_driver(context: Context) -> str | None:
    """Version of the loaded kernel module."""
    version = read_text(context.roots.sys / "module/nvidia/version")
    if version:
        return version.strip()
    text = read_text(context.roots.proc / "driver/nvidia/version") or ""
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return found.group(1) if found else None


def nvidia_cards(context: Context) -> list[str]:
    """NVIDIA display and 3D controllers on the PCI bus, with or without a driver."""
    found = []
    for device in sorted((context.roots.sys / "bus/pci/devices").glob("*")):
        vendor, kind = read_text(device / "vendor"), read_text(device / "class")
        if vendor and kind and vendor.strip() == NVIDIA_VENDOR and kind.startswith("0x03"):
            found.append(device.name)
    return found


def _driver_remedy(context: Context) -> str:
    if (context.roots.sys / "module/nouveau").exists():
        return "nouveau has the card: blacklist nouveau, install NVIDIA's driver, reboot"
    return "install NVIDIA's driver (Debian: apt-get install nvidia-driver), then modprobe nvidia"
