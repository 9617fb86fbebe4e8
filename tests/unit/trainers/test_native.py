"""The kernels in C: the library's values and gradients, at odd sizes, in threads; and without a compiler."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.unit.trainers.helpers import make
from trainers import native
from trainers.datasets import knn
from trainers.graph.model import GraphLayer
from trainers.graph.native_encoder import NativeEncoderLayer
from trainers.graph.native_layer import Near
from trainers.sequence.model import AttentionLstm
from trainers.tcn.model import ImplicitStateTcn
from trainers.tuning.lstm_native import lstm
from trainers.tuning.norm import BatchNormRelu
from trainers.tuning.strided import StridedConv, side_by_side
from trainers.tuning.winograd import Conv3x3

needs_compiler = pytest.mark.skipif(native.library() is None, reason="no C compiler, or no AVX2")


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def assert_same(found: Sequence[Tensor], expected: Sequence[Tensor], *, digits: float = 1e-5) -> None:
    """Up to rounding: `digits` of the largest number."""
    for one, two in zip(found, expected, strict=True):
        assert one.shape == two.shape
        assert torch.allclose(one, two, rtol=1e-4, atol=digits * float(two.detach().abs().max() + 1e-6))


@needs_compiler
@pytest.mark.parametrize(
    ("batch", "time", "columns", "levels"), [(5, 50, 6, 4), (1, 2, 1, 3), (3, 7, 2, 0), (2, 29, 40, 2)]
)
def test_the_stack_of_convolutions(batch: int, time: int, columns: int, levels: int, threads: int) -> None:
    torch.manual_seed(0)
    width = 2 * native.number("panel")
    plain = ImplicitStateTcn(columns, 2, width, levels)
    fast = ImplicitStateTcn(columns, 2, width, levels, "native")
    fast.load_state_dict(plain.state_dict())
    inputs, upstream = torch.randn(batch, time, columns), torch.randn(batch, time, 2)
    outs = [model(inputs) for model in (fast, plain)]
    assert_same(outs[:1], outs[1:])
    assert_same(
        *(
            torch.autograd.grad(out, list(model.parameters()), upstream)
            for out, model in zip(outs, (fast, plain), strict=True)
        )
    )


@needs_compiler
@pytest.mark.parametrize(("batch", "steps", "columns"), [(29, 11, 8), (1, 1, 1), (3, 2, 17), (12, 5, 3)])
def test_the_lstm(batch: int, steps: int, columns: int, threads: int) -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(columns, 2 * native.number("panel"), batch_first=True)
    x, weights = 3 * torch.randn(batch, steps, columns), list(layer.parameters())
    fast, plain = lstm(layer, x), layer(x)[0]
    upstream = torch.randn_like(plain)
    assert torch.allclose(fast, plain, atol=2e-7 * 10)
    gradients = [torch.autograd.grad(out, weights, upstream) for out in (fast, plain)]
    assert_same(*gradients)
    assert len({part.data_ptr() for part in gradients[0]}) == len(weights)  # clipping scales each in place


@needs_compiler
@pytest.mark.parametrize(("batch", "steps"), [(7, 60), (1, 1), (5, 13)])
def test_the_attention(batch: int, steps: int, threads: int) -> None:
    torch.manual_seed(0)
    plain, fast = (AttentionLstm(3, native.number("panel"), 1, native=kernels) for kernels in (False, True))
    for model in (plain, fast):
        nn.init.normal_(model.head.weight)  # it begins at zero, which would hide the rest
    fast.load_state_dict(plain.state_dict())
    x = torch.randn(batch, steps, 3)
    outs = [model(x) for model in (fast, plain)]
    assert_same(*outs)
    losses = [out[0].square().sum() for out in outs]
    gradients = [
        torch.autograd.grad(loss, [p for name, p in model.named_parameters() if name != "score.2.bias"])
        for loss, model in zip(losses, (fast, plain), strict=True)
    ]
    assert_same(*gradients, digits=1e-4)  # weights that sum to one: differences of numbers nearly alike


@needs_compiler
def test_the_lstms_functions_far_out_near_zero_and_for_nan() -> None:
    layer = nn.LSTM(1, native.number("panel"), batch_first=True)
    for value in (0.0, 1e-6, 1e-3, 0.5, 30.0, 1e4, -1e4, float("nan")):
        x = torch.full((1, 3, 1), value)
        assert torch.allclose(lstm(layer, x), layer(x)[0], rtol=1e-5, atol=1e-7, equal_nan=True)


@needs_compiler
@pytest.mark.parametrize(("batch", "nodes", "k"), [(3, 7, 2), (1, 2, 1), (5, 30, 8)])
def test_a_graph_layer(batch: int, nodes: int, k: int, threads: int) -> None:
    torch.manual_seed(0)
    width = 2 * native.number("panel")
    near = torch.rand(batch, nodes, nodes).topk(k).indices.to(torch.int16)
    layer, h = GraphLayer(width), torch.randn(batch, nodes, width, requires_grad=True)
    outs = [layer(h, graph, k) for graph in (Near(near), knn.adjacency_of(near))]
    assert_same(outs[:1], outs[1:])
    inputs, upstream = [h, *layer.parameters()], torch.randn(batch, nodes, width)
    assert_same(*(torch.autograd.grad(out, inputs, upstream) for out in outs))
    x = torch.randn(batch, nodes, 3)
    assert_same([Near(near).means(x)], [torch.bmm(knn.adjacency_of(near), x)])


@needs_compiler
@pytest.mark.parametrize(("batch", "nodes", "heads", "inner"), [(3, 96, 2, 1), (1, 1, 1, 2), (5, 19, 2, 8)])
def test_a_transformer_layer(batch: int, nodes: int, heads: int, inner: int, threads: int) -> None:
    torch.manual_seed(0)
    width, unit = 2 * native.number("panel"), native.number("lanes")
    plain, fast = (
        layer(width, heads, inner * unit, dropout=0.0, batch_first=True)
        for layer in (nn.TransformerEncoderLayer, NativeEncoderLayer)
    )
    for norm in (plain.norm1, plain.norm2):
        nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    fast.load_state_dict(plain.state_dict())
    x = torch.randn(batch, nodes, width, requires_grad=True)
    outs = [model(x) for model in (fast, plain)]
    assert_same(outs[:1], outs[1:])
    upstream = torch.randn_like(x)
    found = [
        torch.autograd.grad(out, [x, *model.parameters()], upstream)
        for out, model in zip(outs, (fast, plain), strict=True)
    ]
    assert_same(*found, digits=1e-4)


WIDE: dict[str, dict[str, int]] = {
    "tcn": {"channels": 32},
    "sequence": {"hidden_size": 32},
    "graph": {"hidden_channels": 64},
    "tom500": {"width": 16},
    "reid": {"width": 16},
}


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("recipe", WIDE)
def test_training_gives_the_losses_of_the_naive_rung(recipe: str, tmp_path: Path) -> None:
    fast = make(recipe, tmp_path, **WIDE[recipe], products="native")
    assert fast.recipe.on("native")
    naive = make(recipe, tmp_path, **WIDE[recipe], rung="naive")
    # a batch norm over few pixels divides by what is left of a difference: rounding shows there
    digits = 2e-6 if recipe in ("tcn", "sequence", "graph") else 1e-3
    assert fast.train_steps(8).losses == pytest.approx(naive.train_steps(8).losses, rel=digits)


@needs_compiler
def test_recomputed_activations_give_the_same_losses(tmp_path: Path) -> None:
    plain, spared = (
        make("graph", tmp_path, hidden_channels=64, products="native", use_gradient_checkpoint=on)
        for on in (False, True)
    )
    assert spared.train_steps(3).losses == plain.train_steps(3).losses


@pytest.mark.parametrize("recipe", WIDE)
def test_without_a_compiler_the_library_does_it(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "")
    native.library.cache_clear()
    try:
        assert not native.fits(32)
        plain = make(recipe, tmp_path, **WIDE[recipe], products="native")
        assert len(plain.train_steps(2).losses) == 2
    finally:
        native.library.cache_clear()


@needs_compiler
def test_a_compiler_that_fails_and_a_full_cache_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    try:
        for compiler, cache in ((str(broken), tmp_path / "cache"), (os.environ.get("CC", "cc"), broken)):
            monkeypatch.setenv("CC", compiler)
            monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
            native.library.cache_clear()
            assert native.library() is None
    finally:
        native.library.cache_clear()


@needs_compiler
@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (7, 6), (1, 1), (2, 3), (21, 34)])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_convolution_with_fewer_products(rows: int, columns: int, outputs: int, threads: int) -> None:
    torch.manual_seed(0)
    unit = native.number("panel") // 2
    plain, fast = (Conv3x3(unit, outputs * unit, native_kernels) for native_kernels in (False, True))
    fast.load_state_dict(plain.state_dict())
    assert fast.native and not plain.native
    x = torch.randn(3, unit, rows, columns, requires_grad=True)
    outs = [layer(x) for layer in (fast, plain)]
    assert_same(outs[:1], outs[1:])
    upstream = torch.randn_like(outs[1])
    assert_same(
        *(
            torch.autograd.grad(out, [x, layer.weight], upstream)
            for out, layer in zip(outs, (fast, plain), strict=True)
        )
    )


@needs_compiler
@pytest.mark.parametrize(("batch", "rows", "columns"), [(3, 8, 5), (2, 2, 3), (2, 33, 47)])
@pytest.mark.parametrize("units", [1, 9])
def test_a_batch_norm_with_its_relu(batch: int, rows: int, columns: int, units: int, threads: int) -> None:
    torch.manual_seed(0)
    channels = units * native.number("lanes")
    plain, fast = (BatchNormRelu(channels, kernels) for kernels in (False, True))
    nn.init.normal_(plain.weight), nn.init.normal_(plain.bias)
    fast.load_state_dict(plain.state_dict())
    x = (30 + 2 * torch.randn(batch, channels, rows, columns)).requires_grad_()
    outs = [layer(x) for layer in (fast, plain)]
    assert_same(outs[:1], outs[1:], digits=1e-4)
    upstream = torch.randn_like(outs[1])
    found = [
        torch.autograd.grad(out, [x, *layer.parameters()], upstream)
        for out, layer in zip(outs, (fast, plain), strict=True)
    ]
    assert_same(*found, digits=1e-4)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert torch.allclose(getattr(fast, name), getattr(plain, name), rtol=1e-4)
    assert_same([fast.eval()(x)], [plain.eval()(x)])


@needs_compiler
@pytest.mark.parametrize("batch", [1, 5])
def test_convolutions_side_by_side(batch: int, threads: int) -> None:
    torch.manual_seed(0)
    unit, x = native.number("lanes"), torch.randn(batch, 3, 3, 9, 6)
    plain, fast = ([StridedConv(3, unit, kernels) for _ in range(3)] for kernels in (False, True))
    for one, two in zip(plain, fast, strict=True):
        two.load_state_dict(one.state_dict())
    by_pixel = x.permute(1, 0, 3, 4, 2).contiguous().permute(1, 0, 4, 2, 3)  # as resident stores give them
    outs = [side_by_side(fast, by_pixel), side_by_side(fast, x), side_by_side(plain, x)]
    assert_same(outs[:2], 2 * outs[2:])
    upstream = torch.randn_like(outs[2])
    found = [
        torch.autograd.grad(out, [part for layer in layers for part in layer.parameters()], upstream)
        for out, layers in zip(outs[::2], (fast, plain), strict=True)
    ]
    assert_same(*found)


@needs_compiler
@pytest.mark.parametrize(("rows", "columns"), [(8, 4), (7, 6), (1, 1), (2, 3), (33, 18)])
@pytest.mark.parametrize("image", [True, False])
def test_a_convolution_of_stride_two(rows: int, columns: int, image: bool, threads: int) -> None:
    torch.manual_seed(0)
    unit = native.number("lanes")
    inputs = 3 if image else 3 * unit
    plain, fast = (StridedConv(inputs, 2 * unit, kernels) for kernels in (False, True))
    fast.load_state_dict(plain.state_dict())
    assert fast.native and not plain.native
    x = torch.randn(3, inputs, rows, columns, requires_grad=not image)
    outs = [layer(x) for layer in (fast, plain)]
    assert_same(outs[:1], outs[1:])
    upstream = torch.randn_like(outs[1])
    found = [
        torch.autograd.grad(out, [*([] if image else [x]), *layer.parameters()], upstream)
        for out, layer in zip(outs, (fast, plain), strict=True)
    ]
    assert_same(*found)
