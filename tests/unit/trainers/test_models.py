"""Models and metrics: the fast form equals the plain one; variants are as light as they claim."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.unit.trainers.helpers import make
from trainers import options
from trainers.datasets import knn
from trainers.graph.layer import numbered
from trainers.graph.model import GraphForecaster, GraphLayer
from trainers.graph.options import GraphConfig, apply_tier
from trainers.metrics import Means, confusion, dice_scores, mean_of, retrieval
from trainers.sequence.evaluation import evaluate_by_batch, evaluate_model, extract_attention_importance
from trainers.tom500.model import masked_loss, one_hot_loss
from trainers.tuning.causal import causal_relu_conv
from trainers.tuning.compiling import CompileReport, compile_model, fall_back
from trainers.tuning.saved_bytes import saved_bytes


@pytest.mark.parametrize("dilation", [1, 3, 8])
@pytest.mark.parametrize("with_residual", [True, False])
def test_the_copy_free_convolution_equals_the_librarys(dilation: int, with_residual: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 12, 5, dtype=torch.double, requires_grad=True)
    weight = torch.randn(4, 4, 3, dtype=torch.double, requires_grad=True)
    bias = torch.randn(4, dtype=torch.double, requires_grad=True)
    residual = torch.randn(4, 12, 5, dtype=torch.double, requires_grad=True) if with_residual else None
    fast = causal_relu_conv(x, weight, bias, residual, dilation)
    padded = F.pad(x.permute(2, 0, 1), (2 * dilation, 0))
    plain = F.conv1d(padded, weight, bias, dilation=dilation).permute(1, 2, 0)
    plain = F.relu(plain + residual if residual is not None else plain)
    assert torch.allclose(fast, plain)
    inputs = [x, weight, bias] + ([residual] if residual is not None else [])
    upstream = torch.randn_like(plain)
    for one, two in zip(
        torch.autograd.grad(fast, inputs, upstream), torch.autograd.grad(plain, inputs, upstream), strict=True
    ):
        assert torch.allclose(one, two)


def test_a_layer_over_neighbour_lists_equals_the_plain_one() -> None:
    # GIVEN random graphs, where some nodes are nobody's neighbour
    torch.manual_seed(0)
    near = torch.rand(3, 7, 7).topk(2).indices.to(torch.int16)
    layer = GraphLayer(4).double()
    h = torch.randn(3, 7, 4, dtype=torch.double, requires_grad=True)
    graphs = {
        "dense": knn.adjacency_of(near).double(),
        "listed": numbered(near, *knn.reversed_lists(near)),
    }
    # WHEN both forms go forth and back
    inputs, upstream = [h, *layer.parameters()], torch.randn_like(h)
    outs = [layer(h, graph, 2) for graph in graphs.values()]
    gradients = [torch.autograd.grad(out, inputs, upstream) for out in outs]
    # THEN values and all gradients are equal
    assert torch.allclose(*outs)
    for one, two in zip(*gradients, strict=True):
        assert torch.allclose(one, two)


def test_a_forecast_over_neighbour_lists_equals_the_plain_one() -> None:
    torch.manual_seed(0)
    config = GraphConfig(window_size=9, time_k=2, hidden_channels=8)
    model = GraphForecaster(3, config).double()
    nn.init.normal_(model.head.weight)  # it begins at zero, which would hide the rest
    near = torch.rand(4, 9, 9).topk(2).indices.to(torch.int16)
    x = torch.randn(4, 9, 3, dtype=torch.double)
    graphs = knn.adjacency_of(near).double(), numbered(near, *knn.reversed_lists(near))
    outs = [model(x, graph) for graph in graphs]
    assert torch.allclose(*outs)
    gradients = [torch.autograd.grad(out.square().sum(), list(model.parameters())) for out in outs]
    for one, two in zip(*gradients, strict=True):
        assert torch.allclose(one, two)


def test_the_masked_loss_equals_the_one_hot_loss() -> None:
    logits = torch.randn(2, 4, 6, 5, requires_grad=True)
    labels = torch.randint(0, 4, (2, 6, 5))
    one, two = one_hot_loss(logits, labels), masked_loss(logits, labels)
    assert torch.allclose(one, two, atol=1e-6)
    first, second = (torch.autograd.grad(loss, logits)[0] for loss in (one, two))
    assert torch.allclose(first, second, atol=1e-7)


def test_the_light_model_has_two_fifths_to_three_fifths_fewer_parameters() -> None:
    counts = [
        sum(p.numel() for p in GraphForecaster(8, GraphConfig(use_optimized_model=light)).parameters())
        for light in (True, False)
    ]
    assert 0.4 <= 1 - counts[0] / counts[1] <= 0.6


def test_checkpointing_keeps_the_losses_and_saves_memory(tmp_path: Path) -> None:
    kept, losses = [], []
    for on in (False, True):
        trainer = make("graph", tmp_path, use_gradient_checkpoint=on)
        batch = next(iter(trainer.data.train.epoch(0)))
        kept.append(saved_bytes(functools.partial(trainer.recipe.loss, trainer.model, batch)))
        losses.append(trainer.train_steps(3).losses)
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert kept[1] < 0.6 * kept[0]


def test_a_tier_fills_what_was_not_given() -> None:
    low = apply_tier(GraphConfig(tier="low", hidden_channels=16), torch.device("cpu"))
    assert (low.batch_size, low.hidden_channels, low.encoder_layers, low.use_gradient_checkpoint) == (
        8,
        16,
        1,
        True,
    )
    high = apply_tier(GraphConfig(tier="high"), torch.device("cpu"))
    assert (high.batch_size, high.hidden_channels, high.transformer_layers) == (32, 128, 2)


def test_an_option_that_was_given_wins_even_when_it_is_the_default() -> None:
    given = apply_tier(GraphConfig(tier="low", hidden_channels=64, batch_size=16), torch.device("cpu"))
    assert (given.hidden_channels, given.batch_size, given.encoder_layers) == (64, 16, 1)
    parsed = options.parse(GraphConfig, ["--tier=low", "--hidden_channels=64"], "test", "")
    assert apply_tier(parsed, torch.device("cpu")).hidden_channels == 64
    assert parsed.replace(tier="none").explicit == {"tier", "hidden_channels"}


def test_dice_map_and_rank_k_are_the_textbook_ones() -> None:
    labels = torch.tensor([0, 0, 1, 1])
    found = dice_scores(confusion(torch.tensor([0, 1, 1, 1]), labels, 3))
    assert found[:2].tolist() == pytest.approx([2 / 3, 0.8])
    assert found[2].isnan()
    gallery = torch.eye(3)
    query = torch.tensor([[1.0, 0.5, 0.1], [0.2, 1.0, 0.1]])
    ranked = retrieval(query, gallery, torch.tensor([7, 8]), torch.tensor([7, 7, 8]), ranks=(1, 3))
    # query 7: hits at places 1 and 2 → AP 1; query 8: order 1, 0, 2 → hit at place 3 → AP 1/3
    assert ranked == pytest.approx({"mAP": (1 + 1 / 3) / 2, "rank1": 0.5, "rank3": 1.0})


def test_means_read_once() -> None:
    means = Means(torch.device("cpu"))
    means.add("a", torch.tensor([1.0, 3.0]))
    means.add("a", torch.tensor([5.0]))
    assert mean_of([means.totals()]) == {"a": 3.0}
    assert mean_of([means.totals(), {"a": (1.0, 1)}, {}]) == {"a": 2.5}


def test_evaluation_on_the_device_equals_the_one_by_batch(tmp_path: Path) -> None:
    trainer = make("sequence", tmp_path)
    with torch.no_grad():
        one = evaluate_model(trainer.model, trainer.data.validation, torch.device("cpu"))
        two = evaluate_by_batch(trainer.model, trainer.data.validation, torch.device("cpu"))
    assert mean_of([one]) == pytest.approx(mean_of([two]), rel=1e-5)
    importance = extract_attention_importance(trainer.model, trainer.data.validation, torch.device("cpu"))
    assert importance.shape == (10,)
    assert np.isclose(importance.sum(), 1.0, atol=1e-5)


def test_compile_off_failed_and_without_effect_are_told_apart() -> None:
    model = nn.Linear(2, 2)
    off = compile_model(model, wanted=False, mode="default", device=torch.device("cpu"))
    assert "off" in off.sentence()
    report = CompileReport(asked=True)
    from torch._dynamo.exc import Unsupported

    assert not fall_back(model, report, RuntimeError("shape mismatch"))
    assert fall_back(model, report, Unsupported("no compiler found"))
    assert "goes on uncompiled" in report.sentence() and "no compiler found" in report.sentence()
    assert model(torch.zeros(1, 2)).shape == (1, 2)


def test_a_compile_error_falls_back_in_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a backend that cannot compile anything
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("this backend is broken")

    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **_: _compile_with(self, broken))
    trainer = make("tcn", tmp_path, use_torch_compile=True, ablate="copy_free")
    plain = make("tcn", tmp_path, ablate="copy_free")
    # THEN training goes on, with the losses of the uncompiled model
    assert trainer.train_steps(3).losses == plain.train_steps(3).losses
    assert trainer.compiled.failed is not None


def _compile_with(module: nn.Module, backend: Callable[..., Any]) -> None:
    module._compiled_call_impl = torch.compile(module._call_impl, backend=backend)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_mixed_precision_trains_to_finite_losses_near_the_plain_ones(dtype: str, tmp_path: Path) -> None:
    plain = make("tcn", tmp_path).train_steps(4).losses
    mixed = make("tcn", tmp_path, use_amp=True, amp_dtype=dtype)
    assert mixed.train_steps(4).losses == pytest.approx(plain, rel=0.05)
    assert mixed.precision.scaler.is_enabled() == (dtype == "float16")
