"""What is left in a step of best: where its time goes, and what could still be taken."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

import torch

from trainers.loop import Trainer

Figures = dict[str, Any]
PRODUCTS = "products"
GROUPS = {
    PRODUCTS: "mm addmm bmm baddbmm mkldnn_convolution convolution_backward _slow_conv2d_forward "
    "_slow_conv2d_backward mkldnn_rnn_layer mkldnn_rnn_layer_backward "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward "
    "CausalStack CausalStackBackward Lstm LstmBackward Attention AttentionBackward "
    "NativeGraphLayer NativeGraphLayerBackward Encoder EncoderBackward "
    "Winograd WinogradBackward StridedReluConv StridedReluConvBackward",
    "copies": "copy_ cat index_select index clone fill_ zero_ scatter_ _index_put_impl_ constant_pad_nd",
    "optimizer": "_fused_adamw_ Optimizer.step#AdamW.step Optimizer.zero_grad#AdamW.zero_grad",
}
"""Operators by what they do; what else torch does is "other operators", the rest of the time is Python's."""
OTHERS, PYTHON = "other operators", "Python and autograd"
SHOWN = (PRODUCTS, "copies", OTHERS, "optimizer", PYTHON)


def shares(trainer: Trainer, steps: int) -> dict[str, float]:
    """Shares of the time of some steps, by the profiler, by group; and of the slowest operators by name."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        begun = time.perf_counter()
        trainer.train_steps(steps)
        seconds = time.perf_counter() - begun
    found: dict[str, float] = defaultdict(float)
    for event in profile.key_averages():
        found[group_of(event.key)] += event.self_cpu_time_total / 1e6 / seconds
    found[PYTHON] = max(0.0, 1 - sum(share for name, share in found.items() if name != PYTHON))
    return {name: round(share, 4) for name, share in found.items()}


def group_of(operator: str) -> str:
    name = operator.removeprefix("aten::")
    found = next((group for group, names in GROUPS.items() if name in names.split()), None)
    return found or (OTHERS if operator.startswith("aten::") else PYTHON)


def facts(part: Figures, best: Figures, naive: Figures) -> Figures:
    """What follows from the shares: how fast the products run, and how far naive → best could go."""
    share = part["left"].get(PRODUCTS, 0.0)
    seconds = 1 / best["samples_per_second"]
    needed = part["arithmetic"]["operations_a_sample"] / part["arithmetic"]["operations_a_second"]
    return {
        "milliseconds": round(1000 * seconds * part["batch_size"], 2),
        "speed_of_products": round(needed / max(1e-12, share * seconds), 3),
        "limit_products_alone": round(best["ratio"] / max(share, 1e-3), 2),
        "limit_of_arithmetic": round(1 / naive["samples_per_second"] / needed, 2),
    }


def lines(result: Figures) -> list[str]:
    """The section of a page; only kinds whose best step was profiled."""
    kinds = {kind: found["default"] for kind, found in result["kinds"].items() if "left" in found["default"]}
    if not kinds:
        return []
    text = ["## What is left", "", "A step of best by the profiler, and what could still be taken of it:", ""]
    text += [
        f"| kind | a step | {' | '.join(SHOWN)} | speed of the products | products alone | at full speed |"
    ]
    text += ["|---|---:|" + "---:|" * (len(SHOWN) + 3)]
    for kind, part in kinds.items():
        found = part["left_facts"]
        cells = [f"{found['milliseconds']:.1f} ms", *(f"{part['left'].get(name, 0):.0%}" for name in SHOWN)]
        cells += [f"{found['speed_of_products']:.0%}"]
        cells += [f"×{found[name]:.2f}" for name in ("limit_products_alone", "limit_of_arithmetic")]
        text.append(f"| {kind} | {' | '.join(cells)} |")
    text += [
        "",
        "Speed of the products: the step's multiplications, counted as the naive rung does them, over the "
        "time of the products, against a large float32 product (1024³) on the same core; above 100 % fewer "
        "of them are done. Products alone: naive → best if all else took no time. At full speed: if the "
        "products besides ran as fast as that large one.",
        "",
        *(sentence for goal in result["goals"] if not goal["met"] for sentence in _why(goal, kinds)),
    ]
    return text


def _why(goal: Figures, kinds: dict[str, Figures]) -> list[str]:
    """Of a goal that was not reached: which limit stands in the way."""
    part = kinds.get(goal.get("kind", ""))
    if part is None:
        return []
    found, least = part["left_facts"], goal["least"]
    reason = "neither limit forbids it: what is left is between the products, or in how fast they run"
    if found["limit_of_arithmetic"] < least:
        reason = "even the multiplications alone, at the speed of a large product, take longer than that"
    elif found["limit_products_alone"] < least:
        reason = "the products alone take longer than that, at the speed they have"
    return [f"- {goal['what']}: ×{goal['ratio']:.2f} of ×{least}; {reason}.", ""]
