"""The re-identification recipe: which data, which model, which loss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainers import native, rungs
from trainers.datasets.cache import fits_in_memory
from trainers.datasets.cached_sampler import CachedModalAwarePKSampler, LookupPKPlan, NaivePKPlan, PKPlan
from trainers.datasets.plan import Plan, SequentialPlan
from trainers.datasets.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.errors import TrainerError
from trainers.metrics import retrieval
from trainers.options import listed
from trainers.recipe import Data, Recipe
from trainers.reid.data import Record, ReidImages, find_records, without_broken
from trainers.reid.model import ReidNet, batch_hard_triplet
from trainers.reid.options import ReidConfig
from trainers.reid.store import DecodedImages
from trainers.reid.synthetic import write_synthetic
from trainers.tuning.layout import channels_last


class ReidRecipe(Recipe[ReidConfig]):
    name = "reid"
    shape_options = ("image_height", "image_width", "width", "modalities")
    config_class = ReidConfig
    metric = ("mAP", "max")
    workers = 2
    compile_mode = "reduce-overhead"
    optimizations = (
        rungs.Optimization(
            name="cached_sampler", seed="S2.1", rung="document", text="sampler metadata cached once"
        ),
        *rungs.COMMON,
        rungs.Optimization(
            name="resident", seed="beyond", rung="best", text="images decoded once, batches gathered"
        ),
        rungs.Optimization(
            name="epoch_plan", seed="beyond", rung="best", text="the whole epoch sampled in one sort"
        ),
        rungs.Optimization(
            name="native",
            seed="beyond",
            rung="best",
            text="convolutions of stride 2 in C (on a CPU)",
            measured=True,
        ),
        rungs.CHANNELS_LAST,
    )

    def build_data(self) -> Data:
        config = self.config
        self.batch_unit = config.num_instances  # type: ignore[misc]
        self.modalities = tuple(listed("modalities", config.modalities))
        if "rgb" not in self.modalities or config.naive_sampler not in ("picked", "candidates"):
            raise TrainerError("--modalities needs rgb, and --naive_sampler is picked or candidates")
        self.size = (config.image_height, config.image_width)
        self.folder = Path(config.cache_dir or Path(config.out) / self.name / "decoded")
        train, validation = self._split(self._records())
        plan = self._plan(train)
        held_out = SequentialPlan(len(validation), config.batch_size * 4)
        return Data(
            train=self._source(train, plan, "train"),
            validation=self._source(validation, held_out, "held_out"),
        )

    def _records(self) -> list[Record]:
        config = self.config
        if not config.synthetic:
            found = find_records(Path(config.data_dir or ""), self.modalities)
            return without_broken(found, self.folder, self.skip)
        samples = max(96, round(14910 * config.synthetic_size))
        identities = max(12, round(320 * config.synthetic_size))
        made = f"generated-{samples}-{identities}-{config.seed}-{'-'.join(self.modalities)}"
        folder = Path(config.out) / self.name / made
        if not (folder / "done").exists():
            write_synthetic(folder, config, samples, identities)
        return without_broken(find_records(folder, self.modalities), self.folder, self.skip)

    def _split(self, records: list[Record]) -> tuple[ReidImages, ReidImages]:
        """By identity: the network is asked about people it has never seen."""
        ids = sorted({record.identity for record in records})
        held_out = set(ids[:: max(2, round(1 / self.config.validation_fraction))])
        parts = []
        for chosen in (set(ids) - held_out, held_out):
            names = {identity: label for label, identity in enumerate(sorted(chosen))}
            part = [record for record in records if record.identity in chosen]
            parts.append(ReidImages(part, [names[r.identity] for r in part], self.modalities, self.size))
        self.identities = len(ids) - len(held_out)
        return parts[0], parts[1]

    def _plan(self, dataset: ReidImages) -> Plan:
        config = self.config
        self.sampler = CachedModalAwarePKSampler(
            dataset,
            config.batch_size,
            config.num_instances,
            config.ensure_rgb,
            config.prefer_complete,
            config.seed,
            say=self.say,
        )
        if self.on("epoch_plan"):
            return PKPlan(self.sampler)
        if self.on("cached_sampler"):
            return LookupPKPlan(self.sampler)
        return NaivePKPlan(
            self.sampler, dataset.infer_modalities_of_sample, config.naive_sampler == "candidates"
        )

    def _source(self, dataset: ReidImages, plan: Plan, name: str) -> BatchSource:
        if not self.on("resident"):
            return LoaderSource(dataset, plan, self.loader_settings(), collate=dataset.collate)
        images = DecodedImages(self.folder / name, dataset)
        if fits_in_memory(images.pixels.nbytes, "the decoded images", self.say):
            return ResidentSource(images.resident(self.device, lambda: self._native), plan, self.device)
        return ResidentSource(images.mapped(self.device), plan, torch.device("cpu"))

    @property
    def _native(self) -> bool:
        return self.on("native") and self.plain and native.fits(self.config.width)

    def build_model(self) -> nn.Module:
        model = ReidNet(len(self.modalities), self.identities, self.config.width, self._native)
        return channels_last(model) if self.on("channels_last") else model

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        fused, necked, scores = model(batch["images"], batch["present"])
        self.features = fused.detach(), necked.detach()
        identity = batch["identity"]
        triplet = batch_hard_triplet(fused.float(), identity, self.config.margin)
        return F.cross_entropy(scores.float(), identity) + triplet

    def baseline(self, data: Data) -> dict[str, float]:
        untrained = self.build_model().to(self.device).eval()
        return {
            f"{name}_untrained": value for name, value in self.evaluate(untrained, data.validation).items()
        }

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        """Every sample asks, all others answer."""
        features: list[Tensor] = []
        identities: list[Tensor] = []
        for batch in source.epoch(0):
            features.append(model(batch["images"].to(self.device), batch["present"].to(self.device))[1])
            identities.append(batch["identity"].to(self.device))
        parts = self.gather([(f.cpu(), i.cpu()) for f, i in zip(features, identities, strict=True)])
        found, identity = (torch.cat(part) for part in zip(*(p for part in parts for p in part), strict=True))
        return retrieval(found, found, identity, identity, themselves=True)

    def watched(self) -> dict[str, Tensor]:
        fused, necked = (part.float().norm(dim=1).mean() for part in self.features)
        return {"fused_norm": fused, "bn_norm": necked}

    def without_effect(self) -> Iterator[tuple[str, str]]:
        yield from super().without_effect()
        if self.on("cached_sampler") or self.on("epoch_plan"):
            yield "naive_sampler", "the sampler's table is cached"

    def state(self) -> dict[str, Any]:
        return {"pairable": len(self.sampler.pairable)}
