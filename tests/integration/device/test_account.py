"""Idle time is attributed to its cause: programs with one cause each, sized by sleeps and kernels."""

from __future__ import annotations

from typing import Any

from tests import device
from tests.device import Speeds

SPEEDS = Speeds(kernels_us={"add": 20_000, "mul": 2_000}, pinned_gb_s=0.1, pageable_gb_s=0.1, copy_us=0)
ROUNDS = 20


def account(loop: str) -> dict[str, Any]:
    """The account of a loop; everything before it is done when its first kernel starts."""
    code = f"import time, torch\nx = torch.ones(4, device='cuda')\nfor _ in range({ROUNDS}):\n" + loop
    result = device.run_code(code, SPEEDS)
    assert result.returncode == 0, result.stderr
    whole: dict[str, Any] = result.truth["devices"][0]["whole"]
    return whole


def idle_ms(whole: dict[str, Any], cause: str) -> float:
    """Milliseconds per round."""
    return float(1e3 * whole["idle"][cause] / (ROUNDS - 1))


def test_a_busy_device() -> None:
    whole = account("    y = x + 1; time.sleep(0.001)")
    assert whole["busy"] > 0.9 * ROUNDS * 0.020
    assert idle_ms(whole, "launch") < 10, "half a kernel: the host runs ahead, however often it is stopped"


def test_the_host_does_something_else() -> None:
    whole = account("    y = x * 2; time.sleep(0.030)")
    assert idle_ms(whole, "launch") > 0.9 * 28
    assert idle_ms(whole, "sync") == idle_ms(whole, "data") == idle_ms(whole, "copy") == 0


def test_after_a_sync_the_host_is_late_by_as_long_as_it_waited() -> None:
    whole = account("    y = x + 1; y[0].item(); time.sleep(0.010)")
    assert idle_ms(whole, "sync") > 0.9 * 10
    assert idle_ms(whole, "launch") < 0.5 * idle_ms(whole, "sync")


def test_a_sync_is_not_to_blame_for_more_than_its_wait() -> None:
    whole = account("    y = x * 2; y[0].item(); time.sleep(0.030)")
    assert idle_ms(whole, "launch") > 0.8 * 28
    assert idle_ms(whole, "sync") < 0.5 * idle_ms(whole, "launch")


def test_a_blocking_copy() -> None:
    whole = account("    y = x * 2; z = torch.ones(500_000).to('cuda')")  # 2 MB at 0.1 GB/s
    assert idle_ms(whole, "copy") > 0.9 * 20


def test_a_kernel_that_waits_for_an_asynchronous_copy() -> None:
    whole = account("    z = torch.empty(500_000, pin_memory=True).to('cuda', non_blocking=True); y = x * 2")
    assert idle_ms(whole, "copy") > 0.9 * 18


def test_a_wait_for_a_batch() -> None:
    loop = """
        if _ == 0:
            class Slow(torch.utils.data.Dataset):
                def __len__(self): return 100
                def __getitem__(self, i): time.sleep(0.015); return torch.ones(4)
            batches = iter(torch.utils.data.DataLoader(Slow()))
        y = x * 2; next(batches)
    """
    whole = account(loop)
    assert idle_ms(whole, "data") > 0.9 * 13
