"""The scripts, what is wrong with each, and which findings name it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"


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

    @property
    def path(self) -> Path:
        return SCRIPTS / f"{self.script}.py"

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
        "credit_rows", "batch of 2", ("compute.small_batch",), "batch size|batch_size|larger batch", COMPUTE
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
        ("compute.user_code", "compute.python_loop"),
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


def _held(script: str, cause: str, id: str, full: str, half: str) -> Case:
    return Case(script, cause, (id,), full, half, held_out=True)


HELD_OUT = (
    _held(
        "bird_calls", "spectrogram per sample", "input.slow_getitem", "getitem|per-sample|transform", INPUT
    ),
    _held("packed_tiles", "no workers, random crops", "input.no_workers", "num_workers", INPUT),
    _held("clinic_notes", "padding in Python", "input.slow_collate", "collate", INPUT),
    _held("hard_examples", "weighted draw per batch", "input.slow_sampler", "sampler", INPUT),
    _held("remote_scans", "two workers, slow line", "input.too_few_workers", "num_workers", INPUT),
    _held("nightly_refit", "workers restarted", "input.workers_restarted", "persistent", INPUT),
    _held("plankton", "batch of 4", "compute.small_batch", "batch size|batch_size|larger batch", COMPUTE),
    _held("spectral_lines", "float64", "compute.double_precision", "float64|double", COMPUTE),
    _held("vibration_rnn", "anomaly mode", "compute.anomaly_mode", "anomaly", COMPUTE),
    _held("prototypes", "loss sample by sample", "compute.python_loop", "loop|vectori", COMPUTE),
    _held("shared_cores", "6 threads", "compute.threads_oversubscribed", "thread|oversubscri", COMPUTE),
    _held(
        "deep_decoder", "checkpointing", "compute.activation_checkpointing", "checkpoint|recomput", COMPUTE
    ),
    _held("expert_groups", "a group per parameter", "compute.optimizer_unfused", "fused|group", "optimizer"),
    _held("speaker_id", "validation every 25", "compute.validation_too_often", "validat", RESIDUAL),
    _held("spot_instance", "checkpoint every 10", "compute.checkpoint_stalls", "checkpoint", RESIDUAL),
    _held("averaged_weights", "average through copies", "compute.state_copies", "copy|deepcopy", RESIDUAL),
    _held("weight_histograms", "histograms every step", "compute.logging_too_often", "logging", RESIDUAL),
    _held("ranking_auc", "AUC every step", "compute.metrics_every_step", "metric", RESIDUAL),
    _held("polite_worker", "sleep of 4 ms", "compute.sleep", "sleep", RESIDUAL),
    _held("tidy_sweeper", "gc.collect every 5", "job.gc_pauses", "garbage|gc", RESIDUAL),
)

CASES = (*DEVELOPMENT, *HELD_OUT, *HEALTHY)
