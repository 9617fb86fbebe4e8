"""P×K batches over multi-modal samples: P identities, K instances each (S2.1).

One rule, three ways to carry it out. The rule: an epoch is a number of rounds over the pairable
identities in random order; in each round an identity gives its K first samples by (complete before
incomplete, random key), and with `ensure_rgb` at least one of them has an RGB image.

`NaivePKPlan` finds out what a sample has by reading it, `CachedModalAwarePKSampler` looks it up in a
table made once, `PKPlan` sorts the whole epoch at once. All give the same batches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainers.datasets.metadata import describe
from trainers.datasets.plan import Plan
from trainers.errors import TrainerError


class CachedModalAwarePKSampler:
    """A batch sampler with all metadata cached once; afterwards every look-up is O(1).

    The data set may be anything `trainers.datasets.metadata` understands. `rounds` is how often an epoch
    goes over the identities; unset, as often as it takes to see about as many samples as there are.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        num_instances: int,
        ensure_rgb: bool = True,
        prefer_complete: bool = True,
        seed: int = 42,
        *,
        rounds: int | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        if num_instances < 1 or batch_size % num_instances:
            raise TrainerError(f"batch {batch_size} is not a multiple of {num_instances} instances")
        self.batch_size, self.num_instances = batch_size, num_instances
        self.ensure_rgb, self.prefer_complete, self.seed = ensure_rgb, prefer_complete, seed
        self.epoch = 0
        self._say = say or (lambda text: print(text, file=sys.stderr))
        self._cache(dataset)
        self._count_rounds(rounds)
        self._report()

    def _cache(self, dataset: Any) -> None:
        begun = time.perf_counter()
        self._say(f"caching the metadata of {len(dataset)} samples …")
        found = describe(dataset)
        self.identities, self.present = found.identities, found.present
        self.rgb = self._has_rgb(found.modalities)
        self.complete: np.ndarray = np.all(self.present, axis=1)
        self.all_ids = np.unique(self.identities)
        self.pairable = np.array(
            [i for i in self.all_ids if self._is_pairable(i)], dtype=self.identities.dtype
        )
        self.members = {int(i): np.flatnonzero(self.identities == i) for i in self.pairable}
        self.cache_seconds = time.perf_counter() - begun

    def _has_rgb(self, modalities: Sequence[str]) -> np.ndarray:
        """Which samples show RGB; a data set without that modality has none."""
        names = [name.lower() for name in modalities]
        if "rgb" in names:
            return np.asarray(self.present[:, names.index("rgb")])
        if self.ensure_rgb:
            raise TrainerError(f"no modality rgb among {', '.join(modalities)}", hint="ensure_rgb=False")
        return np.zeros(len(self.present), dtype=bool)

    def _is_pairable(self, identity: int) -> bool:
        """An identity pairs when it shows two samples, and RGB next to another modality."""
        mine = self.identities == identity
        others = self.present[mine].sum(axis=1) - self.rgb[mine]
        return bool(mine.sum() >= 2 and (self.rgb[mine].any() or not self.ensure_rgb) and others.any())

    def _count_rounds(self, rounds: int | None) -> None:
        groups = self.batch_size // self.num_instances
        self.per_round = len(self.pairable) // groups
        if not self.per_round:
            raise TrainerError(
                f"{len(self.pairable)} of {len(self.all_ids)} identities can be paired, "
                f"a batch needs {groups}",
                hint="a smaller --batch_size, a larger --num_instances, or --no-ensure_rgb",
            )
        usable = sum(map(len, self.members.values()))
        self.rounds = rounds or max(1, round(usable / (self.per_round * self.batch_size)))

    def _report(self) -> None:
        share = len(self.pairable) / len(self.all_ids)
        self._say(
            f"metadata cached ({self.cache_seconds:.1f} s): total IDs {len(self.all_ids)}, "
            f"pairable IDs {len(self.pairable)} ({share:.1%}), expected batches {len(self)}"
        )
        if share < 0.8:
            self._say("less than 80 % of the identities can be paired: look for missing modalities")

    def __len__(self) -> int:
        return self.rounds * self.per_round

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def draw(self, epoch: int, turn: int) -> tuple[np.ndarray, np.ndarray]:
        """The randomness of one round: identities in order, and a key for every sample."""
        generator = np.random.default_rng((self.seed, epoch, turn))
        groups = self.batch_size // self.num_instances
        return generator.permutation(self.pairable)[: self.per_round * groups], generator.random(
            len(self.identities)
        )

    def __iter__(self) -> Iterator[list[int]]:
        groups = self.batch_size // self.num_instances
        for turn in range(self.rounds):
            ids, keys = self.draw(self.epoch, turn)
            for at in range(0, len(ids), groups):
                yield [
                    index for identity in ids[at : at + groups] for index in self._pick(int(identity), keys)
                ]

    def _pick(self, identity: int, keys: np.ndarray) -> list[int]:
        members = self.members[identity]
        ordered = members[np.lexsort((keys[members], ~self.complete[members] & self.prefer_complete))]
        picked = [int(ordered[n % len(ordered)]) for n in range(self.num_instances)]
        if self.ensure_rgb and not self.rgb[picked].any():
            picked[-1] = int(next(index for index in ordered if self.rgb[index]))
        return picked


class PKPlan(Plan):
    """The sampler's epochs as a plan, each sorted in one go."""

    def __init__(self, sampler: CachedModalAwarePKSampler) -> None:
        super().__init__(sampler.batch_size, drop_last=True)
        self.sampler = sampler
        self._made: tuple[int, Tensor] = (-1, torch.empty(0))

    def order(self, epoch: int) -> Tensor:
        if self._made[0] != epoch:
            rounds = [self._round(epoch, turn) for turn in range(self.sampler.rounds)]
            self._made = (epoch, torch.from_numpy(np.concatenate(rounds)))
        return self._made[1]

    def length(self, epoch: int) -> int:
        total = len(self.sampler) * self.sampler.batch_size
        return total - total % self.batch_size

    def _round(self, epoch: int, turn: int) -> np.ndarray:
        """K samples of each identity of a round: one sort by (identity, incomplete, key)."""
        sampler = self.sampler
        ids, keys = sampler.draw(epoch, turn)
        order = np.lexsort((keys, ~sampler.complete & sampler.prefer_complete, sampler.identities))
        sorted_ids = sampler.identities[order]
        first = np.searchsorted(sorted_ids, ids)
        count = np.searchsorted(sorted_ids, ids, side="right") - first
        steps = np.arange(sampler.num_instances)
        picked = order[first[:, None] + steps % count[:, None]]
        if sampler.ensure_rgb:
            lacking = ~sampler.rgb[picked].any(axis=1)
            with_rgb = order[sampler.rgb[order]]
            at = np.searchsorted(sampler.identities[with_rgb], ids[lacking])
            picked[lacking, -1] = with_rgb[at]
        return picked.reshape(-1)


class LookupPKPlan(PKPlan):
    """The document's remedy: batch by batch from the cached table."""

    def iterate(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        if self.world > 1 or self.batch_size != self.sampler.batch_size:
            yield from super().iterate(epoch, start)
            return
        self.sampler.set_epoch(epoch)
        skip = start // self.batch_size
        for number, batch in enumerate(self.sampler):
            if number >= skip:
                yield torch.tensor(batch)


class NaivePKPlan(PKPlan):
    """What the document found: modalities are inferred from the sample itself, batch after batch.

    `everyone`: each candidate of an identity is looked at; else only until K good ones are found.
    """

    def __init__(
        self, sampler: CachedModalAwarePKSampler, infer: Callable[[int], tuple[bool, bool]], everyone: bool
    ):
        super().__init__(sampler)
        self.infer, self.everyone = infer, everyone
        self.calls = 0

    def iterate(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        if self.world > 1 or self.batch_size != self.sampler.batch_size:
            yield from super().iterate(epoch, start)
            return
        sampler, groups = self.sampler, self.batch_size // self.sampler.num_instances
        number = 0
        for turn in range(sampler.rounds):
            ids, keys = sampler.draw(epoch, turn)
            for at in range(0, len(ids), groups):
                number += 1
                if number > start // self.batch_size:
                    yield torch.tensor(
                        [i for identity in ids[at : at + groups] for i in self._pick(identity, keys)]
                    )

    def _pick(self, identity: int, keys: np.ndarray) -> list[int]:
        sampler, wanted = self.sampler, self.sampler.num_instances
        members = sampler.members[int(identity)]
        good: list[tuple[int, bool]] = []
        rest: list[tuple[int, bool]] = []
        for index in members[np.argsort(keys[members])]:
            complete, rgb = self._look(int(index))
            (good if complete or not sampler.prefer_complete else rest).append((int(index), rgb))
            if not self.everyone and len(good) >= wanted and any(rgb for _, rgb in good[:wanted]):
                break
        ordered = good + rest
        picked = [ordered[n % len(ordered)] for n in range(wanted)]
        if sampler.ensure_rgb and not any(rgb for _, rgb in picked):
            picked[-1] = next(pair for pair in ordered if pair[1])
        return [index for index, _ in picked]

    def _look(self, index: int) -> tuple[bool, bool]:
        self.calls += 1
        return self.infer(index)
