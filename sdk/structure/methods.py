"""Methods of tensors, arrays and containers, by name: which read, and which change, their object."""

from __future__ import annotations

import sys
from functools import cache

_NUMERIC = (
    "torch.", "numpy.", "math.", "scipy.", "sklearn.", "builtins.", "copy.", "json.", "time.", "statistics.",
    "itertools.", "functools.", "collections.", "random.", "operator.", "os.path.", "os.", "pandas.", "PIL.",
    "cv2.", "einops.", "datetime.", "re.", "torchvision.", "torchaudio.", "torchmetrics.", "string.", "zlib.",
    "hashlib.", "pathlib.", "struct.", "typing.", "dataclasses.", "contextlib.", "gymnasium.", "tqdm.",
    "sys.",
)  # fmt: skip
"""Libraries whose functions return a value and do not change their arguments, except those whose name ends in
an underscore."""
_ALWAYS = (
    "append", "extend", "insert", "update", "appendleft", "put", "push", "setdefault", "pop", "clear",
    "popleft",
)  # fmt: skip
"""Methods that change a container even if their value is used."""
_CONTAINER = (*_ALWAYS, "add", "remove", "discard", "fill", "sort", "put_nowait")
"""Methods that change a container; they store their arguments without changing them."""
_VIEWS = (
    "detach", "numpy", "view", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "permute", "t",
    "expand", "cpu", "parameters", "named_parameters", "modules", "children", "items", "values", "contiguous",
    "to", "state_dict", "buffers", "unbind", "chunk", "split", "get",
)  # fmt: skip
"""Methods that return the object itself or a part of it."""
_READ = (
    "parameters", "named_parameters", "modules", "named_modules", "children", "buffers", "state_dict",
    "items", "keys", "values", "get", "copy", "format", "join", "log_prob", "entropy", "sample", "rsample",
    "read", "readline", "fileno", "isoformat", "strftime", "get_last_lr", "elapsed", "hexdigest", "digest",
)  # fmt: skip
"""Methods of modules, distributions, files and clocks that change nothing."""


@cache
def _known() -> frozenset[str]:
    """Names of all methods of tensors, arrays and Python's own types; libraries not loaded add none."""
    kinds: list[object] = [str, bytes, dict, list, set, tuple, int, float]
    for module, name in (("torch", "Tensor"), ("numpy", "ndarray"), ("torch", "Generator")):
        kinds.append(getattr(sys.modules.get(module), name, None))
    return frozenset(name for kind in kinds if kind is not None for name in dir(kind)) | frozenset(_READ)


def is_numeric(api: str) -> bool:
    return api.startswith(_NUMERIC)


def changes_receiver(name: str, dropped: bool) -> bool:
    """Whether a method is called for its effect, because its value is unused or it always has one."""
    return name in _ALWAYS or dropped


def keeps_arguments(name: str) -> bool:
    return name in _CONTAINER or name in _known()


def reads_only(name: str) -> bool:
    return name in _known() and name not in _ALWAYS


def is_view(name: str) -> bool:
    return name in _VIEWS


def keeps_old_value(name: str) -> bool:
    """Whether an in-place method's result also depends on the previous value."""
    return name not in ("copy_", "zero_", "fill_", "set_", "_foreach_copy_", "_foreach_zero_")
