"""The live page at ``/``: one file, no outside assets, fed by the stream."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

HERE = Path(__file__).parent / "page"


@cache
def _page() -> tuple[bytes, str]:
    """The page with its style and script inlined, and the policy that allows just these two."""
    style = (HERE / "page.css").read_text(encoding="utf-8")
    script = (HERE / "page.js").read_text(encoding="utf-8")
    html = (HERE / "page.html").read_text(encoding="utf-8")
    html = html.replace("/*STYLE*/", style).replace("/*SCRIPT*/", script)
    policy = f"default-src 'none'; connect-src 'self'; style-src {_hash(style)}; script-src {_hash(script)}"
    return html.encode(), f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


async def live_page(request: Request) -> Response:
    body, policy = _page()
    headers = {"content-security-policy": policy, "cache-control": "no-cache"}
    return Response(body, media_type="text/html", headers=headers)
