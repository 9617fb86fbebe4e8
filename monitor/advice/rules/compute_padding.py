"""Every batch is padded to one fixed length that few of its sequences have.

Looks at: columns at the end of a batch of token ids that hold the same number in every row, if their number
    differs from batch to batch while the width does not; models that look ids up in a table.
Why: A padded position costs as much as a real one in every layer; in attention, cost grows with the square of
    the length.
Remedy: pad to the longest sequence of the batch, in the collate function; group sequences of similar length.
Gain: the padded columns' part of both passes.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.compute_cost import compute_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

TABLE = "Embedding"
"""The layer that looks ids up, one at each position."""
LEAST_SPARE = 0.2
"""Judgement: fewer columns may be what a multiple of eight or a compiled graph asks for."""
LEFT = Bounds(low=0.6, likely=1.0, high=1.5)
"""What remains is this power of the columns that remain: 1 where each position costs the same, 2 in attention
and less than 1 where overhead counts. Judgement."""


@rule(
    "compute.padding", "Padding", settings=("shapes.spare",), bonus=0.3, suppresses=("compute.small_batch",)
)
def check(run: RunContext) -> Advice | None:
    spare, layers = run.setting("shapes", "spare"), run.setting("model", "layers")
    if not isinstance(spare, float) or not LEAST_SPARE <= spare < 1.0:
        return None
    if not isinstance(layers, list) or TABLE not in layers:
        return None
    share = run.compute_share
    return Advice(
        title=f"Padding: {units.percent(spare)} of a batch's columns hold nothing but padding in every row "
        f"({units.percent(share)} of the step is forward and backward)",
        remedy="Pad to the longest sequence of each batch in the collate function "
        '(`nn.utils.rnn.pad_sequence`; in Hugging Face `padding="longest"`), and let the sampler group '
        "sequences of similar length.",
        effect="rounding",
        price="batches of different widths: a compiled model compiles again for each",
        avoid="This where the model needs one fixed length, as a linear layer over all positions does.",
        evidence={"padded_share": spare, "compute_share": share},
        gain=LEFT.of(lambda power: _without(run, spare, power)),
        because=f"{units.percent(spare)} of the columns are padding, on {units.percent(share)} of the step",
    )


def _without(run: RunContext, spare: float, power: float) -> Change:
    return compute_change(run, (1.0 - spare) ** power)
