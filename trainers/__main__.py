"""`python -m trainers RECIPE …`, which is `gpumon train RECIPE …`; without a recipe it lists them."""

from __future__ import annotations

import runpy
import sys

from trainers import RECIPES
from trainers.errors import EXIT_USAGE


def listing() -> str:
    lines = [f"  {name:<10}{text}" for name, text in RECIPES.items()]
    usage = "gpumon train RECIPE --help shows the options, --synthetic needs no data"
    return "\n".join(["recipes:", *lines, "", usage])


def main() -> int:
    if len(sys.argv) < 2:
        print(listing())
        return 0
    recipe = sys.argv.pop(1)
    if recipe not in RECIPES:
        print(f"trainers: no recipe {recipe!r}\n\nhint: there are: {', '.join(RECIPES)}", file=sys.stderr)
        return EXIT_USAGE
    runpy.run_module(f"trainers.{recipe}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
