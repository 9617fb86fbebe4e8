"""The scripts, what is wrong with each, and how fast the stand-in is for it.

Times of kernels are set (`kernels_us`) where the script needs a certain step on the device, and follow from
bytes and FLOPs where precision or traffic is the point. What a finding may be called was fixed before gpumon
was run on any of them.
"""

from __future__ import annotations

from typing import Any

from tests.benchmarks.device.case import Case
from tests.device import Speeds


def _speeds(matrix: float, forward: float = 0.0, backward: float = 0.0, **others: Any) -> Speeds:
    """Microseconds of a product of matrices, and of a convolution (or recurrent layers) in each direction."""
    kernels = {"addmm": matrix, "mm": matrix, "bmm": matrix}
    if forward:
        kernels |= {"convolution": forward, "convolution_backward": backward}
        kernels |= {"recurrent_layers": forward, "recurrent_layers_backward": backward}
    return Speeds(kernels_us=kernels, **others)


SYNC = "compute.sync_every_step"
LAUNCH = "compute.launch_bound"
LOOP = "compute.python_loop"
COPIES = ("transfer.blocking_copies", "transfer.unpinned_memory")

INPUT = (
    Case(
        "flower_photos",
        "no workers",
        ("input.no_workers",),
        _speeds(300, 1500, 2500),
        least_idle=0.5,
        quick=True,
    ),
    Case(
        "ct_slices",
        "two workers, slow archive",
        ("input.too_few_workers",),
        _speeds(300, 700, 1300),
        least_idle=0.5,
    ),
    Case("ticket_routing", "tokenised in collate", ("input.slow_collate",), _speeds(1000), least_idle=0.4),
    Case(
        "leaf_disease",
        "loss read before loading",
        (SYNC, "input.no_workers"),
        _speeds(1300),
        least_idle=0.2,
        quick=True,
    ),
    Case(
        "corpus_stream",
        "accumulation, no workers",
        ("input.no_workers",),
        _speeds(200),
        least_idle=0.4,
        quick=True,
    ),
    Case("shift_schedule", "workers restarted", ("input.workers_restarted",), _speeds(1000), least_idle=0.3),
    Case("hard_negatives", "sampler sorts all items", ("input.slow_sampler",), _speeds(1000), least_idle=0.3),
    Case(
        "second_card",
        "no workers, cuda:1",
        ("input.no_workers",),
        _speeds(300, 1000, 2000),
        device=1,
        least_idle=0.5,
    ),
    Case(
        "hf_news",
        "Trainer without workers",
        ("input.no_workers",),
        _speeds(800, devices=1),
        least_idle=0.4,
        needs="transformers",
    ),
    Case(
        "lightning_energy",
        "Lightning without workers",
        ("input.no_workers",),
        _speeds(800),
        least_idle=0.4,
        needs="lightning",
    ),
)

SYNCS = (
    Case(
        "price_bar",
        "progress bar reads the loss",
        (SYNC, "compute.logging_too_often"),
        _speeds(1000),
        least_idle=0.08,
    ),
    Case("part_scores", "16 reads in forward", (SYNC,), _speeds(200), least_idle=0.1, quick=True),
    Case("stopwatch", "synchronize around each part", (SYNC,), _speeds(200), least_idle=0.1),
    Case(
        "norm_watch",
        "norm of every gradient read",
        ("compute.grad_norm_every_step", SYNC),
        _speeds(200, 150, 250),
        least_idle=0.1,
    ),
    Case("careful_checks", "checks for NaN", (SYNC,), _speeds(400), least_idle=0.1),
    Case("object_boxes", "boolean masks", (SYNC, LOOP), _speeds(600), least_idle=0.15),
    Case(
        "tumour_report", "report every step", ("compute.metrics_every_step",), _speeds(1200), least_idle=0.15
    ),
    Case(
        "face_gan",
        "five reads an iteration",
        (SYNC, "compute.logging_too_often"),
        _speeds(300),
        least_idle=0.1,
    ),
    Case(
        "accelerate_gather",
        "gathers every step",
        (SYNC, "compute.metrics_every_step", "compute.logging_too_often"),
        _speeds(2000),
        least_idle=0.08,
        needs="accelerate",
    ),
    Case(
        "cart_ppo",
        "carts simulated on the host",
        ("compute.user_code", LOOP, SYNC),
        _speeds(150),
        least_idle=0.3,
    ),
    Case(
        "step_journal",
        "journal every step",
        ("compute.logging_too_often", SYNC),
        _speeds(400),
        least_idle=0.15,
    ),
    Case("cool_down", "sleep in the loop", ("compute.sleep",), _speeds(1000), least_idle=0.4),
)

TRANSFERS = (
    Case(
        "scan_volumes",
        "pageable, blocking copies",
        COPIES,
        _speeds(300, 1500, 2500, pageable_gb_s=0.25),
        least_idle=0.3,
        quick=True,
    ),
    Case(
        "crops_list",
        "32 copies one by one",
        ("transfer.small_copies", *COPIES),
        _speeds(300, 800, 1600, pageable_gb_s=2.0, copy_us=80.0),
        least_idle=0.2,
    ),
    Case(
        "hopeful_async",
        "non_blocking from pageable",
        COPIES,
        _speeds(200, 2000, 3500, pageable_gb_s=0.25),
        least_idle=0.25,
    ),
    Case(
        "feature_bank",
        "features copied back",
        (SYNC, *COPIES),
        _speeds(900, pageable_gb_s=1.0),
        least_idle=0.2,
    ),
    Case(
        "host_noise",
        "noise drawn on the CPU",
        ("compute.user_code", *COPIES),
        _speeds(300, 1000, 1700, pageable_gb_s=0.5),
        least_idle=0.3,
    ),
)

LAUNCHES = (
    Case("store_heads", "50 heads one by one", (LAUNCH, LOOP), launch_bound=True, least_idle=0.6, quick=True),
    Case("citation_relations", "a pass for each relation", (LAUNCH, LOOP), launch_bound=True, least_idle=0.6),
    Case("melody_cells", "LSTM cell by cell", (LOOP, LAUNCH), launch_bound=True, least_idle=0.6),
    Case(
        "fraud_rows",
        "batch of 4",
        ("compute.small_batch", "compute.batch_room", LAUNCH),
        work=16.0,
        launch_bound=True,
        least_idle=0.6,
    ),
    Case(
        "adapter_groups",
        "optimizer by parameter",
        ("compute.optimizer_unfused", LAUNCH),
        launch_bound=True,
        least_idle=0.6,
    ),
    Case(
        "slow_teacher",
        "average by parameter",
        ("compute.state_copies", LOOP, LAUNCH),
        _speeds(100),
        launch_bound=True,
        least_idle=0.4,
    ),
    Case("triplet_pairs", "loss in Python loops", (LOOP, LAUNCH), launch_bound=True, least_idle=0.6),
    Case(
        "gridworld_dqn",
        "memory gathered by sample",
        ("compute.user_code", LOOP),
        _speeds(150),
        least_idle=0.3,
    ),
    Case("anomaly_left", "anomaly mode", ("compute.anomaly_mode",), _speeds(150), least_idle=0.3),
    Case(
        "tidy_loop", "gc.collect every 10 steps", ("job.gc_pauses",), _speeds(300, 1500, 3000), least_idle=0.4
    ),
)

DEVICE_BOUND = (
    Case("night_saves", "saves every 4 steps", ("compute.checkpoint_stalls",), _speeds(900), least_idle=0.1),
    Case(
        "crop_yield", "validates every 10 steps", ("compute.validation_too_often",), _speeds(1000), quick=True
    ),
    Case(
        "plain_float",
        "float32",
        ("compute.amp_off", "compute.tf32_off"),
        Speeds(fp32_tflops=1.5, tf32_tflops=2.8, half_tflops=3.5),
        quick=True,
    ),
    Case(
        "astro_double",
        "float64",
        ("compute.double_precision",),
        Speeds(fp64_tflops=0.02, fp32_tflops=0.04, tf32_tflops=0.08, half_tflops=0.16),
    ),
    Case(
        "long_document",
        "checkpointing, memory is free",
        ("compute.activation_checkpointing",),
        Speeds(fp32_tflops=1.0, tf32_tflops=1.5, half_tflops=2.5),
    ),
)

HEALTHY = (
    Case("ok_vision", "", speeds=_speeds(500, 3500, 7000), quick=True),
    Case("ok_gan", "", speeds=_speeds(800), quick=True),
    Case("ok_diffusion", "", speeds=_speeds(300, 4000, 8000)),
    Case("ok_accumulate", "", speeds=_speeds(1500)),
    Case("ok_hidden_loading", "", speeds=_speeds(3000), quick=True),
    Case("ok_lstm", "", speeds=_speeds(1500, 6000, 10000)),
    Case("ok_graph", "", speeds=Speeds(bandwidth_gb_s=20.0)),
    Case("ok_evaluation", "", speeds=_speeds(3000)),
    Case("ok_logging", "", speeds=_speeds(2800)),
    Case("ok_no_loader", "", speeds=_speeds(1500)),
    Case("ok_second_gpu", "", speeds=_speeds(2000), device=1),
    Case("ok_compiled", "", speeds=_speeds(1000, 8000, 12000)),
    Case("ok_half_scaler", "", speeds=_speeds(4500)),
    Case("ok_big_item", "", speeds=_speeds(10000)),
    Case("ok_policy_gradient", "", speeds=_speeds(1200)),
    Case("ok_accelerate", "", speeds=_speeds(3200), needs="accelerate"),
    Case("ok_trainer", "", speeds=_speeds(7000, devices=1), needs="transformers"),
)

CASES = (*INPUT, *SYNCS, *TRANSFERS, *LAUNCHES, *DEVICE_BOUND, *HEALTHY)
