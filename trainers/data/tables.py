"""Tables from files: CSV with a header, or NPZ with one array per column (or `data` + `columns`)."""

from __future__ import annotations

import glob
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from trainers.errors import TrainerError

SUFFIXES = (".csv", ".npz")


def find_files(pattern: str, suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """Files under every folder (or file) the glob names, sorted."""
    roots = [Path(name) for name in sorted(glob.glob(pattern))]
    if not roots:
        raise TrainerError(
            f"--data_dir {pattern!r} matches nothing", hint="quote the glob; --synthetic needs no data"
        )
    found = [path for root in roots for path in ([root] if root.is_file() else root.rglob("*"))]
    files = sorted(path for path in found if path.name.endswith(tuple(suffixes)) and path.is_file())
    if not files:
        raise TrainerError(f"no {' or '.join(suffixes)} file under {pattern!r}")
    return files


def read_table(path: Path, columns: Sequence[str]) -> np.ndarray:
    """The named columns as float64 rows. Missing columns stop with the file's own list of them."""
    names, rows = _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    missing = [name for name in columns if name not in names]
    if missing:
        raise TrainerError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(names[:12])}",
            hint="--input_columns and --target_columns name the columns to use",
        )
    return np.ascontiguousarray(rows[:, [names.index(name) for name in columns]], dtype=np.float64)


def column_names(path: Path) -> list[str]:
    """The columns a file has."""
    try:
        return (_read_npz(path) if path.suffix == ".npz" else _read_csv(path))[0]
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise TrainerError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _read_csv(path: Path) -> tuple[list[str], np.ndarray]:
    with open(path, encoding="utf-8") as lines:
        names = [name.strip().strip('"') for name in lines.readline().split(",")]
        rows = np.loadtxt(lines, delimiter=",", ndmin=2)
    if not rows.size or rows.shape[1] != len(names):
        raise ValueError(f"{len(names)} column names, {rows.shape[1] if rows.size else 0} columns")
    return names, rows


def _read_npz(path: Path) -> tuple[list[str], np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        if "columns" in arrays and "data" in arrays:
            return [str(name) for name in arrays["columns"]], arrays["data"]
        names = [name for name in arrays.files if arrays[name].ndim == 1]
        return names, np.column_stack([arrays[name] for name in names])


def read_tables(
    files: Sequence[Path], columns: Sequence[str], min_rows: int, skip: Callable[[Path, str], None]
) -> list[np.ndarray]:
    """Every readable table; broken, short and non-finite ones are skipped and counted."""
    tables = []
    for path in files:
        try:
            rows = read_table(path, columns)
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            skip(path, str(error).splitlines()[0] if str(error) else type(error).__name__)
            continue
        if len(rows) < min_rows:
            skip(path, f"{len(rows)} rows, a window needs {min_rows}")
        elif not np.isfinite(rows).all():
            skip(path, "NaN or infinity in it")
        else:
            tables.append(rows)
    if not tables:
        raise TrainerError(f"none of {len(files)} files could be used", hint="the lines above say why")
    return tables
