"""What scripts ask of torch works on the stand-in as on a card, and computes what the CPU computes."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests import device

PRELUDE = """
import copy, io, warnings
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)

def same_on_both(module, *inputs):
    there = copy.deepcopy(module).cuda()
    a, b = module(*inputs), there(*[x.cuda() for x in inputs])
    a, b = (a[0], b[0]) if isinstance(a, tuple) else (a, b)
    assert b.is_cuda and torch.allclose(a, b.cpu(), atol=1e-4)
    a.pow(2).sum().backward(); b.pow(2).sum().backward()
    for p, q in zip(module.parameters(), there.parameters()):
        assert torch.allclose(p.grad, q.grad.cpu(), atol=1e-3), p.shape
"""

CASES = {
    "modules": """
same_on_both(nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                           nn.Flatten(), nn.Linear(16, 3)), torch.randn(2, 3, 10, 10))
same_on_both(nn.ConvTranspose2d(2, 3, 2, 2), torch.randn(1, 2, 4, 4))
same_on_both(nn.LSTM(5, 7, num_layers=2, bidirectional=True), torch.randn(6, 3, 5))
same_on_both(nn.GRU(5, 7, batch_first=True), torch.randn(6, 3, 5))
same_on_both(nn.LSTMCell(5, 7), torch.randn(3, 5))
same_on_both(nn.GRUCell(5, 7), torch.randn(3, 5))
same_on_both(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), torch.randn(2, 5, 8))
same_on_both(nn.Embedding(9, 4), torch.randint(0, 9, (3, 2)))
""",
    "optimizers": """
for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
    for choice in ({"foreach": True}, {"foreach": False}):
        a = nn.Linear(4, 2); b = copy.deepcopy(a).cuda(); x = torch.randn(3, 4)
        for module, data in ((a, x), (b, x.cuda())):
            optimizer = kind(module.parameters(), lr=0.1, **choice)
            for _ in range(3):
                optimizer.zero_grad(); module(data).pow(2).sum().backward(); optimizer.step()
        assert torch.allclose(a.weight, b.weight.cpu(), atol=1e-4), (kind, choice)
""",
    "views and writes": """
x = torch.zeros(4, 4, device="cuda"); x[1] = 3; x[:, 2].add_(1); x.view(-1)[0] = 9
assert x.sum().item() == 25
out = torch.empty(0, device="cuda"); torch.cat([x, x], out=out)
assert out.shape == (8, 4) and out.sum().item() == 50
assert x[x > 5].tolist() == [9.0]; x[x > 5] = 0; assert x.sum().item() == 16
""",
    "mixed precision": """
for dtype in (torch.float16, torch.bfloat16):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 8)).cuda()
    x = torch.randn(4, 3, 8, 8, device="cuda")
    optimizer = torch.optim.AdamW(net.parameters()); scaler = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", dtype=dtype): loss = net(x).pow(2).mean()
    scaler.scale(loss).backward(); scaler.unscale_(optimizer); scaler.step(optimizer); scaler.update()
    assert torch.isfinite(loss).item()
""",
    "devices": """
assert torch.cuda.is_available() and torch.cuda.device_count() == 2
assert "stand-in" in torch.cuda.get_device_name()
assert torch.accelerator.current_accelerator().type == "cuda"
x = torch.ones(3, device="cuda:1"); assert x.to("cuda:0").sum().item() == 3
torch.cuda.set_device(1); assert torch.ones(2, device="cuda").device.index == 1; torch.cuda.set_device(0)
for other in (torch.ones(3), torch.ones(3, device="cuda:0")):
    try: x + other
    except RuntimeError as error: assert "same device" in str(error)
    else: raise AssertionError("added across devices")
""",
    "memory": """
before = torch.cuda.memory_allocated(); torch.cuda.reset_peak_memory_stats()
x = torch.empty(1 << 20, device="cuda"); assert torch.cuda.memory_allocated() - before == 4 << 20
del x; assert torch.cuda.memory_allocated() == before
assert torch.cuda.max_memory_allocated() >= before + (4 << 20)
assert torch.cuda.memory_stats()["allocation.all.current"] >= 0 and torch.cuda.memory_summary()
free, total = torch.cuda.mem_get_info(); assert 0 < free <= total == 16 << 30
assert torch.cuda.get_device_properties(0).total_memory == total
try: torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError: pass
else: raise AssertionError("memory without end")
""",
    "checkpoints": """
net = nn.Linear(4, 4).cuda(); file = io.BytesIO(); torch.save(net.state_dict(), file)
for where in (None, "cpu", "cuda:1"):
    file.seek(0); state = torch.load(file, map_location=where)
    assert str(state["weight"].device) == (where or "cuda:0"); net.load_state_dict(state)
from torch.utils.checkpoint import checkpoint
checkpoint(net, torch.randn(2, 4, device="cuda", requires_grad=True), use_reentrant=False).sum().backward()
""",
    "random numbers": """
host = torch.get_rng_state()
torch.cuda.manual_seed(3); a = torch.rand(5, device="cuda"); torch.cuda.manual_seed(3)
assert torch.equal(a, torch.rand(5, device="cuda"))
generator = torch.Generator(device="cuda").manual_seed(1); torch.randn(3, device="cuda", generator=generator)
assert torch.equal(host, torch.get_rng_state()), "the CPU's numbers are its own"
""",
    "sync warnings": """
torch.cuda.set_sync_debug_mode("warn")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always"); torch.ones(2, device="cuda").sum().item()
assert any("synchronizing" in str(w.message) for w in caught)
torch.cuda.set_sync_debug_mode("error")
try: torch.ones(2, device="cuda").sum().item()
except RuntimeError: pass
else: raise AssertionError("no error")
""",
    "compiled without a code generator": """
net = nn.Linear(4, 2).cuda()
torch.compile(net, backend="aot_eager")(torch.ones(2, 4, device="cuda")).sum().backward()
""",
}


@pytest.mark.parametrize("case", CASES)
def test_torch(case: str) -> None:
    result = device.run_code(PRELUDE + CASES[case])
    assert result.returncode == 0, result.stderr


def test_layers_and_attention_are_one_launch() -> None:
    result = device.run_code(
        """
        import torch
        q = torch.randn(2, 2, 5, 8, device="cuda", requires_grad=True)
        torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
        lstm = torch.nn.LSTM(256, 512, num_layers=3).cuda()
        lstm(torch.randn(100, 32, 256, device="cuda"))[0].sum().backward()
        """
    )
    assert result.returncode == 0, result.stderr
    events = json.loads(result.trace.read_text())["traceEvents"]
    kernels = Counter(event["name"] for event in events if event["cat"] == "kernel")
    for name in ("attention", "attention_backward", "recurrent_layers", "recurrent_layers_backward"):
        assert kernels[f"standin::{name}"] == 1, kernels


def test_large_operators_are_timed_and_not_computed() -> None:
    result = device.run_code(
        """
        import torch
        from torch import nn
        net = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
        optimizer = torch.optim.AdamW(net.parameters())
        for _ in range(8):
            net(torch.randn(512, 4096, device="cuda")).pow(2).mean().backward(); optimizer.step()
        """
    )
    assert result.returncode == 0, result.stderr
    account = result.truth["devices"][0]["steady"]
    per_step = (
        5 * 2 * 512 * 4096 * 4096 / 15e12
    )  # 5 products a step at 15 TFLOP/s; the rest is memory traffic
    assert per_step < account["busy"] / 5 < 3 * per_step


def test_results_that_are_not_computed_are_zeros() -> None:
    """Not what an earlier tensor left there: the bits of ordinary floats, read as halves, are full of NaN."""
    result = device.run_code(
        """
        import torch
        floats = torch.randn(1 << 18).cuda()
        del floats
        left_over = torch.empty(1 << 19, dtype=torch.float16, device="cuda")
        assert not torch.isfinite(left_over.cpu()).all(), "the block was used before"
        source = torch.zeros(1 << 19, dtype=torch.float16, device="cuda")
        del left_over
        assert not (source + source).cpu().any()
        """
    )
    assert result.returncode == 0, result.stderr
