"""What is measured for each recipe: sizes, rows, and the document's own claim beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainers.engine.recipe import Recipe
from trainers.graph import GraphRecipe
from trainers.reid import ReidRecipe
from trainers.sequence import SequenceRecipe
from trainers.tcn import TcnRecipe
from trainers.tom500 import Tom500Recipe


@dataclass(frozen=True)
class Row:
    """One configuration of a recipe. `compare`: whether its losses must equal the naive ones."""

    label: str
    seed: str
    options: dict[str, Any]
    compare: bool = True


@dataclass(frozen=True)
class Ladder:
    """One recipe's benchmark."""

    recipe: type[Recipe[Any]]
    claim: str
    target: float
    """The least end-to-end ratio naive → best asked for (data path for `sequence`)."""
    options: dict[str, Any]
    small: dict[str, Any]
    large: dict[str, Any]
    steps: int
    extra: tuple[Row, ...] = ()
    twins: dict[str, tuple[dict[str, Any], float]] = field(default_factory=dict)
    """Other naive twins: label → (options, least ratio against best)."""
    tolerance: float = 1e-4


LADDERS = (
    Ladder(
        TcnRecipe,
        claim="500 → 2000 (basic) → 4000 samples/s (cached): ×4, ×8; loading ×2–5; compile +20–40 %",
        target=5.0,
        options={"synthetic_size": 0.6, "epochs": 1000},
        small={"channels": 8},
        large={"channels": 32},
        steps=6,
    ),
    Ladder(
        Tom500Recipe,
        claim="+50–80 % in all: AMP +30–50 %, loader +10–20 %, compile +10–20 %",
        target=2.5,
        options={"synthetic_size": 0.012, "epochs": 1000, "batch_size": 4},
        small={"width": 4},
        large={"width": 8},
        steps=1,
        tolerance=2e-3,
    ),
    Ladder(
        ReidRecipe,
        claim="1.9 → 8–15 it/s: ×4–8; sampler ×3–5, logging ×2, norms ×1.5, loader ×1.2, bar ×1.1",
        target=4.0,
        options={"synthetic_size": 0.05, "epochs": 1000},
        small={"width": 8},
        large={"width": 16},
        steps=2,
        twins={"naive, every candidate read": ({"naive_sampler": "candidates"}, 15.0)},
        tolerance=2e-3,
    ),
    Ladder(
        GraphRecipe,
        claim="graph cache ×2–5; light model ×1.5–3; checkpointing ×0.8–1.2",
        target=3.3,
        options={"synthetic_size": 0.4, "epochs": 1000},
        small={"hidden_channels": 32},
        large={"hidden_channels": 64},
        steps=12,
        extra=(
            Row(
                "best with the heavy model",
                "S3.3",
                {"rung": "best", "use_optimized_model": False},
                compare=False,
            ),
            Row("best with checkpointing", "S3.3", {"rung": "best", "use_gradient_checkpoint": True}),
        ),
        twins={"naive, Python loops": ({"naive_graph": "python"}, 10.0)},
        tolerance=2e-3,
    ),
    Ladder(
        SequenceRecipe,
        claim="500–1000 → 2000–4000 samples/s: ×2–4; 50–100 → 15–30 ms a batch",
        target=15.0,
        options={"synthetic_size": 0.4, "epochs": 1000},
        small={"hidden_size": 16},
        large={"hidden_size": 64},
        steps=3,
        extra=(Row("best with batch 128", "S4.1", {"rung": "best", "batch_size": 128}, compare=False),),
    ),
)


def rows(ladder: Ladder) -> list[Row]:
    """naive, each of the document's items alone, all of them, each of ours on top, all."""
    found = [Row("naive", "", {"rung": "naive"})]
    for label, (options, _) in ladder.twins.items():
        found.append(Row(label, "", {"rung": "naive", **options}))
    items = [item for item in ladder.recipe.optimizations if not item.gpu_only and item.name != "compile"]
    for item in items:
        if item.rung == "document":
            needs = ",+normalise_once" if item.name == "cache_data" and ladder.recipe.name == "tcn" else ""
            options = {"rung": "naive", "ablate": f"+{item.name}{needs}"}
            found.append(Row(f"naive + {item.text}", item.seed, _workers(item.name, options)))
    found.append(Row("document: all of them", "", {"rung": "document", "num_workers": 0}))
    for item in items:
        if item.rung == "best":
            needs = ",+resident" if item.name == "dense" else ""
            found.append(
                Row(
                    f"document + {item.text}",
                    item.seed,
                    {"rung": "document", "num_workers": 0, "ablate": f"+{item.name}{needs}"},
                )
            )
    found.append(Row("best: everything", "", {"rung": "best"}))
    return [*found, *ladder.extra]


def _workers(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Only the row about loader processes has any: here they cost more than they bring."""
    return options if name == "workers" else {**options, "num_workers": 0}


def not_measured(ladder: Ladder) -> list[tuple[str, str]]:
    """What only a GPU can show."""
    items = [item for item in ladder.recipe.optimizations if item.gpu_only or item.name == "compile"]
    slow = " (a minute of compiling on this CPU)"
    return [(item.text + (slow if item.name == "compile" else ""), item.seed) for item in items]
