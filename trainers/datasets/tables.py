"""Tables from files: CSV with a header, or NPZ with one array per column (or `data` + `columns`).

People's tables have dates, empty cells and text. Dates order the rows (and become features when asked
for), empty cells are filled only when asked for, text columns are left out; each is reported.
"""

from __future__ import annotations

import csv
import glob
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trainers.datasets.dates import DATE_FEATURES, date_features, parse_dates
from trainers.errors import TrainerError

SUFFIXES = (".csv", ".npz")
EMPTY = {"", "na", "n/a", "nan", "null", "none", "-"}
UNREADABLE = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, csv.Error)


@dataclass(kw_only=True)
class Table:
    """One file: numbers by column, the text columns' names, and the dates when it has any."""

    names: list[str]
    rows: np.ndarray
    text: dict[str, str] = field(default_factory=dict)
    """Columns that are no numbers → their first cell that is none."""
    dates: np.ndarray | None = None
    """Days since 1970, one a row."""


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """How a table becomes rows of numbers."""

    fill: str = "none"
    dates: str = "index"
    min_rows: int = 1


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


def read_tables(
    files: Sequence[Path],
    columns: Sequence[str] | None,
    settings: TableSettings,
    skip: Callable[[Path, str], None],
    say: Callable[[str], None] = lambda text: None,
) -> tuple[list[np.ndarray], list[str]]:
    """Every usable table, and the names of its columns; unset `columns`: all of the first good file.

    Broken, short and incomplete files are skipped and counted; wrong columns stop the run.
    """
    found: list[np.ndarray] = []
    why = ""
    names = list(columns) if columns else None
    for path in files:
        try:
            table = read_table(path)
            names = names or _default_columns(table, settings, path, say)
            found.append(_rows(path, table, names, settings, say))
        except UNREADABLE as error:
            why = why or f"{path}: {_reason(error)}"
            skip(path, _reason(error))
    if not found or names is None:
        raise TrainerError(f"no file of {len(files)} could be used; {why}")
    return found, names


def places(wanted: Sequence[str], there: Sequence[str]) -> list[int]:
    """Where the wanted columns are among those there are."""
    missing = [name for name in wanted if name not in there]
    if missing:
        raise TrainerError(f"no column {', '.join(missing)}: there are {', '.join(there)}")
    return [there.index(name) for name in wanted]


def read_table(path: Path) -> Table:
    """The whole file; raises one of UNREADABLE when it is broken."""
    return _read_npz(path) if path.suffix == ".npz" else _read_csv(path)


def _default_columns(
    table: Table, settings: TableSettings, path: Path, say: Callable[[str], None]
) -> list[str]:
    if table.text:
        say(f"{path.name}: text column{'s' * (len(table.text) > 1)} left out: {', '.join(table.text)}")
    dated = settings.dates == "features" and table.dates is not None
    names = table.names + (list(DATE_FEATURES) if dated else [])
    if not names:
        raise ValueError("no column of numbers")
    return names


def _rows(
    path: Path, table: Table, names: Sequence[str], settings: TableSettings, say: Callable[[str], None]
) -> np.ndarray:
    """The named columns as float64 rows in the order of the dates, gaps filled as asked for."""
    have, rows = list(table.names), table.rows
    if table.dates is not None:
        have, rows = have + list(DATE_FEATURES), np.column_stack([rows, date_features(table.dates)])
        if (np.diff(table.dates) < 0).any():
            say(f"{path.name}: rows put into the order of their dates")
            rows = rows[np.argsort(table.dates, kind="stable")]
    missing = [name for name in names if name not in have]
    if missing:
        for name in set(missing) & set(table.text):
            raise ValueError(f"column {name} holds text: {table.text[name]!r}")
        raise TrainerError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(have[:12])}",
            hint="--columns (tcn: --input_columns and --target_columns) names the columns to use",
        )
    chosen = np.array(rows[:, [have.index(name) for name in names]], dtype=np.float64)
    chosen = fill_gaps(chosen, names, settings.fill, lambda text: say(f"{path.name}: {text}"))
    if len(chosen) < settings.min_rows:
        raise ValueError(f"{len(chosen)} rows, {settings.min_rows} are needed")
    return np.ascontiguousarray(chosen)


def fill_gaps(rows: np.ndarray, names: Sequence[str], fill: str, say: Callable[[str], None]) -> np.ndarray:
    """Empty cells (NaN) filled, or a ValueError that says where they are."""
    if np.isinf(rows).any():
        raise ValueError(f"infinite values in {_where(np.isinf(rows), names)}")
    empty = np.isnan(rows)
    if not empty.any():
        return rows
    if fill == "none":
        raise ValueError(f"empty cells in {_where(empty, names)}; --fill forward, linear, mean or drop")
    say(f"{int(empty.sum())} empty cells in {_where(empty, names)}: --fill {fill}")
    if fill == "drop":
        return np.asarray(rows[~empty.any(axis=1)])
    if empty.all(axis=0).any():
        raise ValueError(f"nothing but empty cells in {_where(empty & empty.all(axis=0), names)}")
    filled = rows.copy()
    for column in np.flatnonzero(empty.any(axis=0)):
        filled[:, column] = _filled(rows[:, column], fill)
    return filled


def _filled(values: np.ndarray, fill: str) -> np.ndarray:
    known = np.flatnonzero(~np.isnan(values))
    if fill == "mean":
        return np.where(np.isnan(values), np.mean(values[known]), values)
    if fill == "linear":
        return np.asarray(np.interp(np.arange(len(values)), known, values[known]))
    # forward: the newest known value; before the first one there is only that one
    last = np.searchsorted(known, np.arange(len(values)), side="right") - 1
    return np.asarray(values[known[last.clip(min=0)]])


def _where(mask: np.ndarray, names: Sequence[str]) -> str:
    return "column " + ", ".join(names[n] for n in np.flatnonzero(mask.any(axis=0))[:5])


def _read_csv(path: Path) -> Table:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        delimiter = max(",;\t", key=stream.readline().count)
        stream.seek(0)
        lines = [line for line in csv.reader(stream, delimiter=delimiter) if line]
    if len(lines) < 2:
        raise ValueError("no rows")
    names, cells = [name.strip() for name in lines[0]], lines[1:]
    widths = {len(line) for line in cells}
    if widths != {len(names)}:
        raise ValueError(f"{len(names)} column names, rows of {', '.join(map(str, sorted(widths)))} cells")
    columns = {name: [line[n].strip() for line in cells] for n, name in enumerate(names)}
    decimal = "," if delimiter == ";" else "."
    numbers = {name: _numbers(values, decimal) for name, values in columns.items()}
    dates = {name: parse_dates(columns[name]) for name, found in numbers.items() if found is None}
    dated = next((name for name, found in dates.items() if found is not None), None)
    good = [(name, found) for name, found in numbers.items() if found is not None]
    return Table(
        names=[name for name, _ in good],
        rows=np.column_stack([found for _, found in good]) if good else np.empty((len(cells), 0)),
        text={name: _first_text(columns[name], decimal) for name in dates if name != dated},
        dates=dates[dated] if dated else None,
    )


def _numbers(cells: Sequence[str], decimal: str) -> np.ndarray | None:
    """The cells as numbers, empty ones as NaN; None when one is neither."""
    try:
        return np.array(
            [np.nan if cell.lower() in EMPTY else float(cell.replace(decimal, ".")) for cell in cells]
        )
    except ValueError:
        return None


def _first_text(cells: Sequence[str], decimal: str) -> str:
    return next(cell for cell in cells if _numbers([cell], decimal) is None)


def _read_npz(path: Path) -> Table:
    with np.load(path, allow_pickle=False) as arrays:
        if "columns" in arrays and "data" in arrays:
            names, rows = [str(name) for name in arrays["columns"]], arrays["data"]
            if rows.ndim != 2 or rows.shape[1] != len(names):
                raise ValueError(f"{len(names)} column names for data of shape {rows.shape}")
            return Table(names=names, rows=rows.astype(np.float64))
        names = [name for name in arrays.files if arrays[name].ndim == 1]
        if not names or len({len(arrays[name]) for name in names}) > 1:
            raise ValueError("its arrays are not columns of equal length")
        numeric = [name for name in names if arrays[name].dtype.kind in "biuf"]
        rows = np.column_stack([arrays[name].astype(np.float64) for name in numeric])
        return Table(names=numeric, rows=rows, text={n: str(arrays[n][0]) for n in names if n not in numeric})


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not text in UTF-8; save it as UTF-8"
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    # numpy's own words would advise to execute the file's content
    return "it holds Python objects, not numbers" if "allow_pickle" in text else text
