"""The scripts, what is wrong with each, and which findings name it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.frameworks.environment import python_with_frameworks, python_with_libraries

SCRIPTS = Path(__file__).parent / "scripts"
LIBRARIES = Path(__file__).parent / "libraries"


@dataclass(frozen=True, slots=True)
class Case:
    """One script. `expected`: ids that name its cause; empty for a healthy one."""

    script: str
    cause: str
    expected: tuple[str, ...]
    peer_full: str = ""
    """Words in a peer's report that would name the cause itself."""
    peer_half: str = ""
    """Words that would name at least its phase."""
    comparable: bool = True
    """Whether the fixed run measures the finding's prediction (a leak has none)."""
    whole: bool = False
    """Judge the whole run, warm-up included (compilation is warm-up)."""
    held_out: bool = False
    """Written before the prediction model was last changed and never used to tune it."""
    fresh: bool = False
    """Written after the freeze: what the first look said is what counts."""
    library: bool = False
    """The loop is a library's, and so is the setting that is wrong."""
    apart: bool = False
    """The library is in the second environment."""
    batches: tuple[int, int] = (1, 1)
    """Samples a step takes, naive and fixed, where the remedy changes that."""
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join((self.script, *self.arguments))

    @property
    def path(self) -> Path:
        return (LIBRARIES if self.library else SCRIPTS) / f"{self.script}.py"

    @property
    def command(self) -> list[str]:
        return [self._python(), str(self.path), *self.arguments]

    def _python(self) -> str:
        if not self.library:
            return sys.executable
        return str(python_with_libraries() if self.apart else python_with_frameworks())

    @property
    def healthy(self) -> bool:
        return not self.expected


INPUT = "input|dataloader|data load|loader"
COMPUTE = "compute|backward|forward"
RESIDUAL = "residual|overhead|host"

DEVELOPMENT = (
    Case(
        "windows_forecast",
        "scaler per sample",
        ("input.slow_getitem",),
        "getitem|per-sample|transform",
        INPUT,
    ),
    Case("augmented_photos", "no workers", ("input.no_workers",), "num_workers", INPUT),
    Case("object_store", "no workers, samples wait", ("input.no_workers",), "num_workers", INPUT),
    Case("lidar_frames", "one worker", ("input.too_few_workers",), "num_workers", INPUT),
    Case("review_sentiment", "collate in Python", ("input.slow_collate",), "collate", INPUT),
    Case("reid_identities", "sampler scans all", ("input.slow_sampler",), "sampler", INPUT),
    Case("short_epochs", "workers restarted", ("input.workers_restarted",), "persistent", INPUT),
    Case("endless_iter", "iter(loader) each step", ("input.workers_restarted",), "persistent|iter\\(", INPUT),
    Case(
        "click_through",
        "8 workers for cheap rows",
        ("input.too_many_workers",),
        "too many|fewer workers",
        INPUT,
    ),
    Case("weather_stations", "parsing per sample", ("input.slow_getitem",), "getitem|per-sample|pars", INPUT),
    Case(
        "credit_rows",
        "batch of 2",
        ("compute.small_batch",),
        "batch size|batch_size|larger batch",
        COMPUTE,
        batches=(2, 128),
    ),
    Case("nan_hunt", "anomaly mode", ("compute.anomaly_mode",), "anomaly", COMPUTE),
    Case("tides", "float64", ("compute.double_precision",), "float64|double", COMPUTE),
    Case(
        "fashion_validate", "validation every 8 steps", ("compute.validation_too_often",), "validat", RESIDUAL
    ),
    Case("save_often", "checkpoint every step", ("compute.checkpoint_stalls",), "checkpoint", RESIDUAL),
    Case("deep_norms", "norms in a loop", ("compute.grad_norm_every_step",), "norm", RESIDUAL),
    Case("verbose_log", "journal every step", ("compute.logging_too_often",), "logging|print", RESIDUAL),
    Case("segmentation_scores", "metrics every step", ("compute.metrics_every_step",), "metric", RESIDUAL),
    Case("mean_teacher", "deepcopy every step", ("compute.state_copies",), "copy|deepcopy", RESIDUAL),
    Case("tidy_memory", "gc.collect", ("job.gc_pauses",), "garbage|gc", RESIDUAL),
    Case("loss_history", "losses kept with graph", ("memory.leak",), "leak|growing|creep", "memory", False),
    Case("replay_agent", "memory grows", ("trend.decay",), "decay|slow(s|ing) down|trend", RESIDUAL, False),
    Case("seq_cells", "LSTM cell by cell", ("compute.python_loop",), "loop|fused|nn.LSTM", COMPUTE),
    Case("per_sample_loss", "pairwise loss in loops", ("compute.python_loop",), "loop|vectori", COMPUTE),
    Case("compiled_lengths", "recompiles", ("compute.recompiles",), "recompil", COMPUTE, whole=True),
    Case("many_threads", "16 threads", ("compute.threads_oversubscribed",), "thread|oversubscri", COMPUTE),
    Case(
        "wide_embedding",
        "optimizer per parameter",
        ("compute.optimizer_unfused",),
        "fused|sparse",
        "optimizer",
    ),
    Case("paced_loop", "sleep in the loop", ("compute.sleep",), "sleep", RESIDUAL),
    Case(
        "memory_saver", "checkpointing", ("compute.activation_checkpointing",), "checkpoint|recomput", COMPUTE
    ),
    Case(
        "knn_graphs",
        "graph rebuilt each step",
        ("compute.constant_recomputed", "compute.user_code", "compute.python_loop"),
        "adjacency",
        RESIDUAL,
    ),
    Case("two_ranks", "slow rank", ("distributed.straggler",), "straggler", "straggler|imbalance"),
)

HEALTHY = (
    Case("ok_tabular", "", ()),
    Case("ok_vision", "", ()),
    Case("ok_lstm", "", ()),
    Case("ok_transformer", "", ()),
    Case("ok_gan", "", ()),
    Case("ok_accumulate", "", ()),
    Case("ok_graph", "", ()),
)


def _one(
    script: str,
    cause: str,
    id: str,
    full: str,
    half: str,
    *,
    whole: bool = False,
    batches: tuple[int, int] = (1, 1),
) -> Case:
    return Case(script, cause, (id,), full, half, whole=whole, batches=batches)


SECOND = (
    _one("bird_calls", "spectrogram per sample", "input.slow_getitem", "getitem|per-sample|transform", INPUT),
    _one("packed_tiles", "no workers, random crops", "input.no_workers", "num_workers", INPUT),
    _one("clinic_notes", "padding in Python", "input.slow_collate", "collate", INPUT),
    _one("hard_examples", "weighted draw per batch", "input.slow_sampler", "sampler", INPUT),
    _one("remote_scans", "two workers, slow line", "input.too_few_workers", "num_workers", INPUT),
    _one("nightly_refit", "workers restarted", "input.workers_restarted", "persistent", INPUT),
    _one(
        "plankton",
        "batch of 4",
        "compute.small_batch",
        "batch size|batch_size|larger batch",
        COMPUTE,
        batches=(4, 64),
    ),
    _one("spectral_lines", "float64", "compute.double_precision", "float64|double", COMPUTE),
    _one("vibration_rnn", "anomaly mode", "compute.anomaly_mode", "anomaly", COMPUTE),
    _one("prototypes", "loss sample by sample", "compute.python_loop", "loop|vectori", COMPUTE),
    _one("shared_cores", "6 threads", "compute.threads_oversubscribed", "thread|oversubscri", COMPUTE),
    _one("deep_decoder", "checkpointing", "compute.activation_checkpointing", "checkpoint|recomput", COMPUTE),
    _one("expert_groups", "a group per parameter", "compute.optimizer_unfused", "fused|group", "optimizer"),
    _one("speaker_id", "validation every 25", "compute.validation_too_often", "validat", RESIDUAL),
    _one("spot_instance", "checkpoint every 10", "compute.checkpoint_stalls", "checkpoint", RESIDUAL),
    _one("averaged_weights", "average through copies", "compute.state_copies", "copy|deepcopy", RESIDUAL),
    _one("weight_histograms", "histograms every step", "compute.logging_too_often", "logging", RESIDUAL),
    _one("ranking_auc", "AUC every step", "compute.metrics_every_step", "metric", RESIDUAL),
    _one("polite_worker", "sleep of 4 ms", "compute.sleep", "sleep", RESIDUAL),
    _one("tidy_sweeper", "gc.collect every 5", "job.gc_pauses", "garbage|gc", RESIDUAL),
)

THIRD = (
    _one("stock_bars", "indicators per sample", "input.slow_getitem", "getitem|per-sample|transform", INPUT),
    _one("traffic_lights", "no workers, samples wait", "input.no_workers", "num_workers", INPUT),
    _one("mixed_baskets", "encoding item by item", "input.slow_collate", "collate", INPUT),
    _one(
        "forum_votes", "6 workers for cheap rows", "input.too_many_workers", "too many|fewer workers", INPUT
    ),
    _one("season_fit", "workers restarted", "input.workers_restarted", "persistent", INPUT),
    _one(
        "sms_spam",
        "batch of 8",
        "compute.small_batch",
        "batch size|batch_size|larger batch",
        COMPUTE,
        batches=(8, 128),
    ),
    _one("heat_equation", "float64", "compute.double_precision", "float64|double", COMPUTE),
    _one("drum_loops", "anomaly mode", "compute.anomaly_mode", "anomaly", COMPUTE),
    _one("protein_pairs", "loss pair by pair", "compute.python_loop", "loop|vectori", COMPUTE),
    _one("many_hands", "10 threads", "compute.threads_oversubscribed", "thread|oversubscri", COMPUTE),
    _one("ragged_batches", "recompiles", "compute.recompiles", "recompil", COMPUTE, whole=True),
    _one("slice_check", "validation every 5", "compute.validation_too_often", "validat", RESIDUAL),
    _one("gene_saves", "checkpoint every 2", "compute.checkpoint_stalls", "checkpoint", RESIDUAL),
    _one("best_so_far", "copies every step", "compute.state_copies", "copy|deepcopy", RESIDUAL),
    _one("chatty_agent", "log lines every step", "compute.logging_too_often", "logging", RESIDUAL),
    _one("river_scores", "scores every step", "compute.metrics_every_step", "metric", RESIDUAL),
    _one("meter_reading", "sleep of 20 ms", "compute.sleep", "sleep", RESIDUAL),
    _one("claims_cleanup", "gc.collect every step", "job.gc_pauses", "garbage|gc", RESIDUAL),
)
"""Two sets that were held out in their time: the model failed on some of each and was changed for it."""


def _held(script: str, cause: str, id: str, full: str, half: str, batches: tuple[int, int] = (1, 1)) -> Case:
    return Case(script, cause, (id,), full, half, held_out=True, batches=batches)


HELD_OUT = (
    _held(
        "ocr_lines", "straightened per sample", "input.slow_getitem", "getitem|per-sample|transform", INPUT
    ),
    _held("wind_farm", "no workers, random noise", "input.no_workers", "num_workers", INPUT),
    _held("rebuilt_loader", "loader built anew", "input.workers_restarted", "persistent", INPUT),
    _held(
        "loan_default",
        "batch of 4",
        "compute.small_batch",
        "batch size|batch_size|larger batch",
        COMPUTE,
        (4, 64),
    ),
    _held("orbit_double", "float64", "compute.double_precision", "float64|double", COMPUTE),
    _held("pulse_smoothing", "smoothing in a loop", "compute.python_loop", "loop|vectori", COMPUTE),
    _held("plain_adam", "optimizer unfused", "compute.optimizer_unfused", "fused", "optimizer"),
    _held("orchard_eval", "validation every 30", "compute.validation_too_often", "validat", RESIDUAL),
    _held("safe_saves", "checkpoint every 5", "compute.checkpoint_stalls", "checkpoint", RESIDUAL),
    _held("gradient_watch", "norms every step", "compute.grad_norm_every_step", "norm", RESIDUAL),
    _held("layer_report", "printing every step", "compute.logging_too_often", "logging|print", RESIDUAL),
    _held("rate_limit", "sleep of 3 ms", "compute.sleep", "sleep", RESIDUAL),
    _held("careful_memory", "gc.collect every 8", "job.gc_pauses", "garbage|gc", RESIDUAL),
)

OLD = (*DEVELOPMENT, *SECOND, *THIRD, *HELD_OUT, *HEALTHY)
