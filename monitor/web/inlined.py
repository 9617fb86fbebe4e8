"""What a content security policy needs to allow a style or script inside the page."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import lru_cache


@lru_cache(maxsize=16)
def source_hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
