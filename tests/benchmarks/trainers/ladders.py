"""What is measured for each recipe: sizes, rows, goals, and the document's own claim beside them.

Everything here is settled before a run. What changed after a result was seen is in `settled_later`, and
stands in the results file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainers.datasets.source import usable_cores
from trainers.recipe import Recipe
from trainers.recipe import find as find_recipe

NAIVE, DOCUMENT, BEST = "naive", "document: its list without workers, AMP and compile", "best: everything"
CORES = usable_cores()
NAIVE_ALL, BEST_ALL = f"naive on all {CORES} cores", f"best on all {CORES} cores"
WITH_WORKERS = "document with its loader processes, one a core"


@dataclass(frozen=True)
class Row:
    """One configuration of a recipe. `compare`: whether its losses must equal the naive ones."""

    label: str
    seed: str
    options: dict[str, Any]
    compare: bool = True


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """One recipe's benchmark."""

    name: str
    claim: str
    goal: float
    """The least end-to-end ratio naive → best asked for, at the default model and data."""
    small: dict[str, Any]
    """A small model, on which the data path shows: single optimizations are measured here."""
    steps: dict[str, int]
    """Steps of a round at each size."""
    straw_men: dict[str, dict[str, Any]]
    """Naive twins nobody should have written, label → options."""
    extra: tuple[Row, ...] = ()
    tolerance: float = 1e-4
    settled_later: tuple[str, ...] = ()

    @property
    def recipe(self) -> type[Recipe[Any]]:
        return find_recipe(self.name)


BF16 = Row(
    "best with bfloat16 (other rounding; all products, none measured)",
    "S0.3 S1.1",
    {"rung": "best", "use_amp": True, "products": "all"},
    compare=False,
)
COMPILED = Row(
    "best with torch.compile",
    "S0.6 S1.3 S2.6 S4.4",
    {"rung": "best", "use_torch_compile": True, "compile_mode": "default"},
    compare=False,
)
LADDERS = (
    Ladder(
        name="tcn",
        claim="500 → 2000 (basic) → 4000 samples/s (cached): ×4, ×8; loading ×2–5; compile +20–40 %",
        goal=4.0,
        small={"channels": 8},
        steps={"default": 2, "small": 6},
        straw_men={},
        extra=(BF16,),
        settled_later=(
            "the naive twin calls scikit-learn's scaler, as the document does; a lighter scaler of our own "
            "made loading about five times cheaper and the ratio smaller",
        ),
    ),
    Ladder(
        name="tom500",
        claim="+50–80 % in all: AMP +30–50 %, loader +10–20 %, compile +10–20 %",
        goal=2.5,
        small={"width": 4, "batch_size": 4},
        steps={"default": 1, "small": 1},
        straw_men={},
        extra=(BF16,),
        tolerance=2e-3,
        settled_later=(
            "for a while one batch norm per block instead of two, after ×2.41 (width 4, batch 4); both are "
            "back, so figures before and after do not compare",
        ),
    ),
    Ladder(
        name="reid",
        claim="1.9 → 8–15 it/s: ×4–8; sampler ×3–5, logging ×2, norms ×1.5, loader ×1.2, bar ×1.1",
        goal=10.0,
        small={"width": 8},
        steps={"default": 2, "small": 2},
        straw_men={"naive, every candidate read (straw man)": {"naive_sampler": "candidates"}},
        extra=(BF16,),
        tolerance=2e-3,
        settled_later=("the generated people became harder to tell apart: the untrained rank-1 was 1.0",),
    ),
    Ladder(
        name="graph",
        claim="graph cache ×2–5; light model ×1.5–3; checkpointing ×0.8–1.2",
        goal=3.5,
        small={"hidden_channels": 32},
        steps={"default": 6, "small": 12},
        straw_men={"naive, Python loops (straw man)": {"naive_graph": "python"}},
        extra=(
            Row(
                "best with the heavy model (other work)",
                "S3.3",
                {"rung": "best", "use_optimized_model": False},
                False,
            ),
            Row("best with checkpointing", "S3.3", {"rung": "best", "use_gradient_checkpoint": True}),
            BF16,
        ),
        tolerance=2e-3,
        settled_later=(
            "sums over neighbour lists instead of a dense table, after ×2.0–2.4 at default size",
            "window 96 instead of 64 and 16 generated channels instead of 8, after ×2.3–2.9",
            "the head begins at zero, so that an untrained model repeats the last value",
        ),
    ),
    Ladder(
        name="sequence",
        claim="500–1000 → 2000–4000 samples/s: ×2–4; 50–100 → 15–30 ms a batch",
        goal=1.8,
        small={"hidden_size": 16},
        steps={"default": 2, "small": 3},
        straw_men={},
        extra=(
            Row("best with batch 128 (other work)", "S4.1", {"rung": "best", "batch_size": 128}, False),
            BF16,
        ),
        settled_later=("the model forecasts the change from the last value, no longer the value itself",),
    ),
)


def ends(ladder: Ladder) -> list[Row]:
    """The three rungs: the headline."""
    return [
        Row(NAIVE, "", {"rung": "naive", "num_workers": 0}),
        Row(DOCUMENT, "", {"rung": "document", "num_workers": 0}),
        Row(BEST, "", {"rung": "best"}),
    ]


def defaults(ladder: Ladder) -> list[Row]:
    """What is measured at the default size: the rungs, a number format, and both ends with all cores."""
    naive, _, best = ends(ladder)
    both = ((NAIVE_ALL, naive), (BEST_ALL, best)) if CORES > 1 else ()
    every = [Row(label, "", {**row.options, "threads": CORES}, compare=row.compare) for label, row in both]
    return [*ends(ladder), BF16, *every]


SETTLED_FOR_ALL = (
    "best keeps freed memory for the next step, so each row runs in a process of its own; no longer in one",
)
"""Changes after results were seen that concern every recipe."""


def settings(ladder: Ladder) -> tuple[object, ...]:
    """What a measurement depends on; a page's words are not among it."""
    return ladder.small, ladder.steps, ladder.tolerance, defaults(ladder), rows(ladder), COMPILED


def rows(ladder: Ladder) -> list[Row]:
    """naive, each of the document's items alone, all of them, each of ours on top, all, and extras."""
    naive, document, best = ends(ladder)
    found = [naive]
    for label, options in ladder.straw_men.items():
        found.append(Row(label, "", {**naive.options, **options}))
    items = [item for item in ladder.recipe.optimizations if not item.gpu_only and item.name != "compile"]
    for item in items:
        if item.rung == "document":
            needs = ",+normalise_once" if item.name == "cache_data" and ladder.name == "tcn" else ""
            options = {"rung": "naive", "ablate": f"+{item.name}{needs}"}
            found.append(Row(f"naive + {item.text}", item.seed, _workers(item.name, options)))
    found += [document, Row(WITH_WORKERS, "S0.4 S1.2 S4.3", {"rung": "document"})]
    for item in items:
        if item.rung == "best":
            needs = ",+resident" if ladder.name == "graph" and item.measured else ""
            options = {**document.options, "ablate": f"+{item.name}{needs}"}
            found.append(Row(f"document + {item.text}", item.seed, options))
    return [*found, best, *ladder.extra]


def _workers(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Only the row about loader processes has any: here they cost more than they bring."""
    return options if name == "workers" else {**options, "num_workers": 0}


def not_measured(ladder: Ladder) -> list[tuple[str, str]]:
    """What only a GPU can show."""
    items = [item for item in ladder.recipe.optimizations if item.gpu_only or item.name == "compile"]
    notes = {"compile": " on a GPU", "amp": " on a GPU"}
    return [(item.text + notes.get(item.name, ""), item.seed) for item in items]
