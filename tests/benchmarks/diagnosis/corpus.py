"""All cases: the scripts, the loops inside libraries, and what was written after the freeze."""

from __future__ import annotations

from tests.benchmarks.diagnosis.catalog import OLD, Case


def _library(script: str, cause: str, id: str, batches: tuple[int, int] = (1, 1)) -> tuple[Case, Case]:
    """A loop with one setting wrong, and the same with the setting as it should be."""
    sick = Case(script, cause, (id,), library=True, batches=batches)
    return sick, Case(script, "", (), library=True, arguments=("--fixed",))


LIBRARIES = (
    *_library("hf_trainer", "eval_steps=4", "compute.validation_too_often"),
    *_library("hf_saves", "save_steps=5", "compute.checkpoint_stalls"),
    *_library("lightning_anomaly", "detect_anomaly=True", "compute.anomaly_mode"),
    *_library("lightning_loader", "num_workers=0", "input.no_workers"),
    *_library("accelerate_state", "save_state every 4", "compute.checkpoint_stalls"),
    *_library("timm_checkpointing", "set_grad_checkpointing", "compute.activation_checkpointing"),
    *_library("ultralytics_workers", "workers=0", "input.no_workers"),
    *_library("sb3_batch", "batch_size=4", "compute.small_batch", (4, 256)),
    *_library("geometric_workers", "num_workers=6", "input.too_many_workers"),
    *_library("fastai_saves", "SaveModelCallback, short epochs", "compute.checkpoint_stalls"),
    *_library("skorch_optimizer", "optimizer__foreach=False", "compute.optimizer_unfused"),
    *_library("peft_checkpointing", "gradient_checkpointing=True", "compute.activation_checkpointing"),
    *_library("trl_sft", "save_steps=4", "compute.checkpoint_stalls"),
)


def _apart(script: str, cause: str, *ids: str, batches: tuple[int, int] = (1, 1)) -> tuple[Case, Case]:
    """The same in the second environment."""
    sick = Case(script, cause, ids, library=True, apart=True, batches=batches)
    return sick, Case(script, "", (), library=True, apart=True, arguments=("--fixed",))


MORE_LIBRARIES = (
    *_apart(
        "tabnet_workers", "num_workers=2, short epochs", "input.workers_restarted", "input.too_many_workers"
    ),
    *_apart("ignite_saves", "Checkpoint every 2", "compute.checkpoint_stalls"),
    *_apart("pyro_evaluates", "evaluate_loss every 10", "compute.validation_too_often"),
    *_apart("sbi_batch", "training_batch_size=10", "compute.small_batch", batches=(10, 200)),
    *_apart("d3rlpy_saves", "n_steps_per_epoch=5", "compute.checkpoint_stalls"),
    *_apart("monai_transforms", "Dataset, not CacheDataset", "input.slow_getitem", "input.no_workers"),
    *_apart("darts_double", "series of float64", "compute.double_precision"),
    *_apart("sentence_sampler", "NO_DUPLICATES, many of them", "input.slow_sampler"),
)
"""Libraries with loops of their own that gpumon had never met. gpumon was not run on them while they were
written; what it learned from some of them is in the fifth first look."""


def _case(script: str, cause: str, id: str, batches: tuple[int, int] = (1, 1)) -> Case:
    return Case(script, cause, (id,), batches=batches)


def _any(script: str, cause: str, *ids: str) -> Case:
    return Case(script, cause, ids)


FOURTH_HEALTHY = (
    "ok_autoencoder", "ok_policy", "ok_distill", "ok_clipped", "ok_workers", "ok_validated", "ok_contrastive",
    "ok_unet",
)  # fmt: skip
FOURTH = (
    _case("quake_catalog", "no workers, random cuts", "input.no_workers"),
    _case("menu_translator", "batch of 3", "compute.small_batch", (3, 96)),
    _case("mosquito_wings", "validation every 10", "compute.validation_too_often"),
    _case("bridge_sensors", "checkpoint every 3", "compute.checkpoint_stalls"),
    _case("chess_openings", "reports every step", "compute.metrics_every_step"),
    _case("sea_ice", "float64", "compute.double_precision"),
    _case("choir_mixer", "a loop in forward", "compute.python_loop"),
    _case("traffic_noise", "rows to disk every step", "compute.logging_too_often"),
    _case("glacier_flow", "a group per parameter", "compute.optimizer_unfused"),
    _case("seed_sorting", "workers restarted", "input.workers_restarted"),
    _case("vineyard_rows", "sleep of 6 ms", "compute.sleep"),
    Case("coral_reef", "weights made each step", ("compute.constant_recomputed",)),
    *(Case(script, "", ()) for script in FOURTH_HEALTHY),
)

FIFTH_HEALTHY = ("ok_siamese", "ok_maml", "ok_language", "ok_diffusion", "ok_ensemble", "ok_streaming")
FIFTH = (
    _case("pet_faces", "no workers, random crops", "input.no_workers"),
    _case("tweet_topics", "words to numbers in collate", "input.slow_collate"),
    _case("house_prices", "batch of 4", "compute.small_batch", (4, 128)),
    _case("satellite_tiles", "validation every 20", "compute.validation_too_often"),
    _case("robot_arm", "weights logged every step", "compute.logging_too_often"),
    _case("bus_arrivals", "GRU cell by cell", "compute.python_loop"),
    _case("tree_rings", "float64", "compute.double_precision"),
    _case("tidal_pools", "deepcopy every step", "compute.state_copies"),
    _case("kiln_watch", "checkpoint every 5, synced", "compute.checkpoint_stalls"),
    _case("tram_delays", "workers restarted", "input.workers_restarted"),
    _case("noisy_labels", "scikit-learn every step", "compute.metrics_every_step"),
    _case("beam_forming", "table made each step", "compute.constant_recomputed"),
    *(Case(script, "", ()) for script in FIFTH_HEALTHY),
)
"""Two sets written while the rules were changed and not looked at until they were frozen; what the first look
said is in `first_looks.json`. Since then rules were changed for some of them."""

SIXTH_HEALTHY = (
    "ok_byol", "ok_ppo", "ok_seq2seq", "ok_vae", "ok_accumulated_lm", "ok_multitask", "ok_mixup",
)  # fmt: skip
SIXTH = (
    _case("crowd_heads", "heatmaps per sample, in a wrapper", "input.slow_getitem"),
    _case("molecule_energy", "graphs joined bond by bond", "input.slow_collate"),
    _case("utterance_buckets", "sorted anew for every batch", "input.slow_sampler"),
    _case("room_layout", "validation every 20, in a callback", "compute.validation_too_often"),
    _case("glyph_gan", "checkpoint every 2, in a decorator", "compute.checkpoint_stalls"),
    _case("shoe_prints", "mAP every step, in a logger", "compute.metrics_every_step"),
    _case("ad_auction", "interactions pair by pair", "compute.python_loop"),
    _case("hospital_rounds", "batch of 8, federated", "compute.small_batch", (8, 160)),
    _case("cloud_diffusion", "schedule made anew by a property", "compute.constant_recomputed"),
    _case("gauge_forecast", "copies every step, in the optimizer", "compute.state_copies"),
    _case("swing_up", "a thread polled every 25 ms", "compute.sleep"),
    _case("moss_species", "a group per parameter", "compute.optimizer_unfused"),
    _case("date_formats", "checkpointing", "compute.activation_checkpointing"),
    *(Case(script, "", ()) for script in SIXTH_HEALTHY),
)
"""Written the way public repositories train (trainer classes, callbacks, engines); gpumon was not run on
them while they were written. Rules were changed for some after the third first look."""

SEVENTH_HEALTHY = (
    "ok_active", "ok_critic", "ok_soft_actor", "ok_swapped", "ok_folds", "ok_flat_minimum", "ok_surgery",
)  # fmt: skip
SEVENTH = (
    _any("recipe_names", "sub-words in collate", "input.slow_collate"),
    _any("parking_meters", "a query and JSON per sample", "input.slow_getitem"),
    _any("herbarium", "JPEG and random crops, no workers", "input.no_workers"),
    _any("lunar_hopper", "replay list to tensors", "compute.user_code", "compute.python_loop"),
    _any("night_denoiser", "best weights copied every step", "compute.state_copies"),
    _any(
        "grid_load", "errors in Python every step",
        "compute.metrics_every_step", "compute.user_code", "compute.python_loop",
    ),
    _any("soil_folds", "4 workers, loader made anew", "input.workers_restarted", "input.too_many_workers"),
    _any("court_rulings", "always padded to 192", "compute.padding"),
    _any("private_survey", "gradients one by one", "compute.python_loop"),
    _any(
        "reading_ladder", "60,000 texts sifted each step",
        "input.slow_sampler", "compute.user_code", "compute.python_loop",
    ),
    _any("alloy_sweep", "both sets scored every epoch", "compute.validation_too_often"),
    *(Case(script, "", ()) for script in SEVENTH_HEALTHY),
)  # fmt: skip
"""For the fourth first look: styles that no set had (several files, a registry, a sweep, folds, off-policy
replay, torch.func, a database, a curriculum). gpumon was not run on them while they were written, and one
cause, padding, had no rule then. Rules were changed for some after that look."""


EIGHTH_HEALTHY = ("ok_captions", "ok_orbit_flow", "ok_offline_pilot", "ok_citations", "ok_fewer_labels")
EIGHTH = (
    _any("harbor_echo", "archive opened for each sample", "input.slow_getitem"),
    _any("litter_boxes", "anchors matched box by box", "compute.python_loop"),
    _any("street_names", "text sampled every 10 steps", "compute.validation_too_often", "compute.user_code"),
    _any("drone_swarm", "policy asked drone by drone", "compute.python_loop", "compute.user_code"),
    _any("frozen_owls", "gradients nobody applies", "compute.unused_gradients"),
    _any("ticket_stream", "buffer shuffled for each sample", "input.slow_getitem"),
    _any(
        "well_levels",
        "curves drawn every 15 steps",
        "compute.logging_too_often",
        "compute.validation_too_often",
    ),
    *(Case(script, "", ()) for script in EIGHTH_HEALTHY),
)
"""For the fifth first look: archives, anchors, text sampled while training, environments in a list, a
notebook, a stream of JSON lines, figures; healthy ones with a cached decoder, a differential equation,
offline flights, neighbours drawn, few labels. gpumon was not run on them while they were written, and one
cause, gradients of weights that no optimizer has, has no rule. Rules were changed for some after it."""

NINTH_HEALTHY = (
    "ok_reef_diver", "ok_four_in_line", "ok_helpdesk", "ok_shock_wave", "ok_rooftop_solar",
    "ok_set_finder", "ok_leaf_queue", "ok_street_sounds", "ok_coin_codes", "ok_pebble_fields",
)  # fmt: skip
NINTH = (
    _any("spice_routes", "negatives drawn one by one", "input.slow_getitem"),
    _any("field_notes", "CRF sentence by sentence", "compute.python_loop"),
    _any("pantry_words", "scores nobody reads", "compute.user_code"),
    _any("evening_feed", "a backward for each of four losses", "compute.repeated_backward"),
    _any("kart_racer", "lists of arrays to tensors", "compute.user_code", "compute.python_loop"),
    _any("radio_calls", "error rates every step", "compute.metrics_every_step"),
    _any("ballad_tuner", "batches of 1, accumulated 16 times", "compute.small_batch"),
    _any("facade_tiles", "gradients through both networks", "compute.unused_gradients"),
    _any("vase_rays", "all rays made for 320", "compute.user_code"),
    _any("whale_units", "negatives drawn step by step", "compute.python_loop", "compute.user_code"),
    _any(
        "stone_carvings", "a picture decoded for each crop", "input.slow_getitem", "input.too_few_workers"
    ),
    _any("shell_scores", "pictures sampled every 12 steps", "compute.validation_too_often"),
    _any(
        "cello_vocoder", "a cache that never hits",
        "compute.constant_recomputed", "compute.python_loop", "compute.user_code",
    ),
    _any("smoke_flow", "a grid of float64", "compute.double_precision"),
    *(_any(script, "") for script in NINTH_HEALTHY),
)  # fmt: skip
"""For the sixth first look, by authors who knew of gpumon what the README says and the names of the rules,
and had not run it. Four causes had no rule: scores of words that nobody asked for, a backward pass for each
loss, gradients that the next step throws away, small micro-batches. What was written as expected then was the
nearest one. Rules were changed for some after it. Until then `compute.constant_recomputed` counted for
vase_rays, too, where it would have been wrong: the rays are those of another view in every step."""

CASES = (*NINTH, *MORE_LIBRARIES, *EIGHTH, *SEVENTH, *SIXTH, *FIFTH, *FOURTH, *LIBRARIES, *OLD)
"""In the order in which they are measured: those whose first look was last come first. New scripts get
`fresh=True` until rules are changed for them."""
