"""Identity and modalities of every sample, from any data set that provides them in one of the usual ways.

    methods      identity_of(index), modalities_of(index) and a tuple `modalities` of names
    lists        labels (identities, targets, pids …) beside modalities (sample_modalities …), one a sample
    records      samples (records, data …): a dictionary for each sample, with keys as below
    itself       dataset[index] is such a dictionary; every sample is read once

A sample's modalities are a name, names, or a mapping of names (to files, images or flags).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainers.errors import TrainerError

IDENTITY = ("identity", "person_id", "pid", "label", "target", "id")
MODALITIES = ("modalities", "modality", "images", "files", "paths")
IDENTITY_LISTS = ("identities", "labels", "targets", "pids", "person_ids", "ids")
MODALITY_LISTS = ("sample_modalities", "modalities", "modality", "cameras")
RECORD_LISTS = ("samples", "records", "data_list", "data", "items")


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """One row a sample."""

    identities: np.ndarray
    """Whole numbers: the data set's own, or the places of its names in alphabetical order."""
    present: np.ndarray
    """(samples, modalities): which modality a sample has."""
    modalities: tuple[str, ...]


def describe(dataset: Any) -> Metadata:
    """The metadata of a data set; one sentence when it tells none."""
    count = len(dataset)
    if hasattr(dataset, "identity_of") and hasattr(dataset, "modalities_of"):
        present = np.array([dataset.modalities_of(i) for i in range(count)], dtype=bool)
        names = tuple(dataset.modalities)
        return Metadata(
            identities=_numbers([dataset.identity_of(i) for i in range(count)]),
            present=present.reshape(count, len(names)),
            modalities=names,
        )
    found = _from_lists(dataset, count) or _from_records(dataset, count)
    if found is None:
        raise TrainerError(
            f"the sampler finds no identities and modalities in {type(dataset).__name__}",
            hint="labels and modalities as lists, or samples as dictionaries with identity and modalities",
        )
    identities, modalities = found
    return _table(identities, [_names(entry) for entry in modalities])


def _from_lists(dataset: Any, count: int) -> tuple[Sequence[Any], Sequence[Any]] | None:
    identities = _list_of(dataset, IDENTITY_LISTS, count)
    modalities = _list_of(dataset, MODALITY_LISTS, count)
    return None if identities is None or modalities is None else (identities, modalities)


def _list_of(dataset: Any, names: Sequence[str], count: int) -> Sequence[Any] | None:
    for name in names:
        value: Any = getattr(dataset, name, None)
        if hasattr(value, "__len__") and not isinstance(value, str) and len(value) == count:
            return list(value)
    return None


def _from_records(dataset: Any, count: int) -> tuple[Sequence[Any], Sequence[Any]] | None:
    listed = _list_of(dataset, RECORD_LISTS, count)
    records = listed if listed is not None else [dataset[index] for index in range(count)]
    pairs = [(_entry(record, IDENTITY), _entry(record, MODALITIES)) for record in records]
    if not pairs or any(identity is None or has is None for identity, has in pairs):
        return None
    return [identity for identity, _ in pairs], [has for _, has in pairs]


def _entry(record: Any, keys: Sequence[str]) -> Any:
    if isinstance(record, Mapping):
        return next((record[key] for key in keys if key in record), None)
    return next((getattr(record, key) for key in keys if hasattr(record, key)), None)


def _names(entry: Any) -> set[str]:
    """The modalities of one sample; a mapping's empty entries are missing ones."""
    if isinstance(entry, str):
        return {entry}
    if isinstance(entry, Mapping):
        return {str(name) for name, has in entry.items() if has is not None and has is not False}
    return {str(name) for name in entry}


def _table(identities: Sequence[Any], modalities: Sequence[set[str]]) -> Metadata:
    names = tuple(sorted(set().union(*modalities)))
    present = np.array([[name in has for name in names] for has in modalities], dtype=bool)
    return Metadata(identities=_numbers(identities), present=present, modalities=names)


def _numbers(identities: Sequence[Any]) -> np.ndarray:
    values = np.asarray([item.item() if hasattr(item, "item") else item for item in identities])
    return values if values.dtype.kind in "iu" else np.unique(values, return_inverse=True)[1]
