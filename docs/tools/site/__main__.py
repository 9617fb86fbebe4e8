"""``python -m docs.tools.site [--no-build]``: gathers all pages in out/docs and builds out/site with MkDocs.

Strict: a link to a page or heading that is not there, or a page in no menu, is an error.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from docs.tools.site.gather import ROOT, gather

OUT = ROOT / "out"


def main(words: list[str]) -> int:
    problems = gather(OUT / "docs", OUT / "mkdocs.yml")
    for problem in problems:
        print(f"docs: {problem}", file=sys.stderr)
    if problems or "--no-build" in words:
        return 1 if problems else 0
    return subprocess.run([*_mkdocs(), "build", "--strict", "--quiet", f"-f{OUT / 'mkdocs.yml'}"]).returncode


def _mkdocs() -> list[str]:
    beside = Path(sys.executable).with_name("mkdocs")
    if not beside.exists():
        raise SystemExit("docs: MkDocs is not installed\n\nhint: pip install -e '.[docs]'")
    return [str(beside)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
