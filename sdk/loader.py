"""Inside the loader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class LoaderWatch:
    def started(self, loader: Any, make_iterator: Callable[[Any], Any]) -> Any:
        return make_iterator(loader)
