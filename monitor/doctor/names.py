"""Checks whether another project uses one of our package names."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import monitor
from monitor.doctor.check import Context, Result, check, passed, warned
from monitor.doctor.probes import ProbeError, ask_python
from monitor.doctor.software import DISTRIBUTION

PACKAGES = ("gpumon", "sdk", "monitor", "trainers")
SECONDS = 30.0
"""Chosen: Python starts in far less than a second, even from a slow disk."""
_WHERE = """
import importlib.util, json
def where(name):
    spec = importlib.util.find_spec(name)
    return spec and (spec.origin or str(list(spec.submodule_search_locations or [""])[0]))
print(json.dumps({name: where(name) for name in %r}))
"""
REMEDIES = {
    "gpumon": "rename or uninstall it: `from gpumon import …` gives that one",
    "sdk": "in scripts write `from gpumon import TrainingMonitor`; the gpumon command is not affected",
    "monitor": "nothing, unless a script is to import ours; the gpumon command is not affected",
    "trainers": "start `gpumon train` in another folder",
}


@check("names", "whether a folder here or another package hides one of ours")
def names(context: Context) -> Result:
    """A script's folder comes first on its path, so packages there hide ours."""
    try:
        found = ask_python(_WHERE % (PACKAGES,), SECONDS)
    except ProbeError as error:
        return warned(
            f"Python does not say what it would import: {error}", "python -c pass shows the whole error"
        )
    hidden = {name: where for name, where in found.items() if where and Path(where).resolve() != _ours(name)}
    if hidden:
        told = "; ".join(f"`{name}` is another project's ({where})" for name, where in hidden.items())
        return warned(
            f"for a script started here, {told}", "; ".join(REMEDIES[name] for name in hidden), **hidden
        )
    return _installed_over()


def _ours(name: str) -> Path:
    return Path(monitor.__file__).resolve().parents[1] / name / "__init__.py"


def _installed_over() -> Result:
    """Another distribution may have installed its package over ours."""
    others = sorted({one.name for one in metadata.distributions() if _has_our_files(one)} - {DISTRIBUTION})
    if others:
        return warned(
            f"{', '.join(others)} installed packages with our names into the same folder",
            f"pip uninstall {' '.join(others)} && pip install --force-reinstall {DISTRIBUTION}",
        )
    return passed(f"{', '.join(PACKAGES)} are gpumon's own")


def _has_our_files(one: metadata.Distribution) -> bool:
    names = {f"{name}/__init__.py": name for name in PACKAGES}
    return any(
        Path(str(one.locate_file(file))).resolve() == _ours(names[str(file)])
        for file in one.files or ()
        if str(file) in names
    )
