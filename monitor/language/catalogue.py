"""One language's catalogue: English sentences, with `{}` for what is filled in, and what to say instead.

A sentence is recognised after it was filled in, and only as a whole. A translation says what may be in a
hole:

    {0}    anything, kept as it is: names, paths, code
    {0:n}  a quantity ("12 ms", "×1.8 (1.4–2.0)"), {0:i} one word, or code in backticks; both kept as they are
    {0:w}  a word, or several after commas, from the catalogue ("data" → "数据")
    {0:t}  text from the catalogue: one sentence or several; may be empty
    {0:x}  something Chinese does not need, such as a plural: left out

What the catalogue does not know stays English.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

HERE = Path(__file__).parent
HOLES = re.compile(r"(?:\{\})+")
UNIT = r"µs|ms|ns|min|[KMGTk]?i?B(?:/s)?|GHz|MHz|kWh|[shdmWkMGT](?![A-Za-z])"
QUANTITY = rf"(?=[^A-Za-z]*[\d—])(?:[\d.,:×+−±~≈<>%°–—/() -]|{UNIT})+?"
ONLY = re.compile(QUANTITY)
NAME = r"(?:(?!; | · |\. [A-Z]).)+?"
"""Not across sentences: if a name or a line of code has such a place in it, its sentence stays English."""
LEADING = NAME.replace("; ", "[;:] ")
"""Nor, at the beginning, what stands before a colon."""
WHOLE = r"(`[^`]+`(?: \([^()]*\))?|\S+?)"
HOLE = {
    "": f"({NAME})",
    "n": f"({QUANTITY})",
    "i": WHOLE,
    "w": f"({NAME})",
    "t": r"((?:(?! · ).)*?)",
    "x": r"(\w*)",
}
GLUED = re.compile(r"[A-Za-z]*\{\}[A-Za-z]*")
"""A hole, with a word it may be the end of: "worker{}" is "worker" or "workers"."""
WORD = re.compile(r"[A-Za-z]{2,}")
SENTENCES = re.compile(r"(?<=[.?!])(?= )|(?=; )|(?<=[;:→] )|(?= · )|(?<= · )")
CLAUSES = re.compile(r"(?=[ ,;:(])")
FURTHER = re.compile(r"[.;] [A-Z]")
MOST_LETTERS, MOST_PIECES = 1500, 40
"""Longer texts are nobody's sentence (ours have at most 400 letters): looking for one would take long."""
CODE = re.compile(r"`[^`]*`")
ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,}")
JOINTS = {"; ": "；", ", ": "，", ": ": "：", ". ": "。"}
STOPS = {".": "。", ":": "："}
FULL = tuple("。；，：？！）")


class Part(NamedTuple):
    """Literal text, then a hole of a kind; the last part of a translation may have no hole."""

    text: str
    hole: int | None
    kind: str


class Template(NamedTuple):
    pattern: re.Pattern[str]
    parts: tuple[Part, ...]


def read(language: str) -> dict[str, str]:
    """All files of a language as one table."""
    found: dict[str, str] = {}
    for file in sorted((HERE / language).glob("*.json")):
        found |= json.loads(file.read_text(encoding="utf-8"))
    return found


@cache
def catalogue(language: str) -> Catalogue:
    return Catalogue(read(language), language)


def parts_of(target: str) -> tuple[Part, ...]:
    """A translation's literals and holes; holes without a number are counted."""
    out, counted = [], 0
    for text, name, kind, _ in Formatter().parse(target):
        hole = None if name is None else int(name) if name else counted
        counted += name == ""
        out.append(Part(text, hole, kind or ""))
    return tuple(out)


def literals(source: str) -> list[str]:
    """The text between the holes of an English template."""
    return [text.replace("{{", "{").replace("}}", "}") for text in re.split(r"(?<!\{)\{\}(?!\})", source)]


class Catalogue:
    """Looks sentences up. Templates are filed under their rarest word, so few are ever tried."""

    def __init__(self, entries: Mapping[str, str], language: str = "zh") -> None:
        self.language = language
        constants = {k.strip(): v.strip() for k, v in entries.items() if len(literals(k)) == 1}
        entries = constants | dict(entries)
        self._constants = {"".join(literals(k)): v for k, v in entries.items() if len(literals(k)) == 1}
        self._filed: dict[str, list[str]] = {}
        self._targets = {key: value for key, value in entries.items() if len(literals(key)) > 1}
        self._file()
        self._compiled: Callable[[str], Template] = cache(self._compile)
        self.whole = lru_cache(4096)(self._whole)
        self.sentences = lru_cache(4096)(self._sentences)

    def _file(self) -> None:
        """The longest first: the template that says most about a sentence is tried first."""
        ordered = sorted(self._targets, key=lambda one: -sum(map(len, literals(one))))
        self._rank = {key: at for at, key in enumerate(ordered)}
        known = {key: _words([GLUED.sub(" ", key)]) for key in ordered}
        common = Counter(word for words in known.values() for word in words)
        for key, words in known.items():
            rarest = min(words, key=lambda word: (common[word], -len(word)), default="")
            self._filed.setdefault(rarest, []).append(key)

    def _compile(self, key: str) -> Template:
        parts = parts_of(self._targets[key])
        kinds = {part.hole: part.kind for part in parts}
        first, *others = literals(key)
        holes = "".join(HOLE[kinds.get(at, "x")] + re.escape(text) for at, text in enumerate(others))
        if not first and kinds.get(0) == "":
            holes = holes.replace(NAME, LEADING, 1)
        return Template(re.compile(re.escape(first) + holes, re.DOTALL), parts)

    def part(self, keys: Container[str]) -> dict[str, Any]:
        """These entries alone, for a script: words as they are, templates as patterns, the longest first."""
        templates = (self._compiled(key) for key in self._rank if key in keys)
        return {
            "words": {key: told for key, told in self._constants.items() if key in keys},
            "templates": [[one.pattern.pattern, one.parts] for one in templates],
        }

    def word(self, text: str) -> str:
        """A label or a word; several words after commas are looked up one by one."""
        found = self._known(text)
        if found is None and ", " in text:
            return ", ".join(map(self.word, text.split(", ")))
        return text if found is None else found

    def text(self, text: str) -> str:
        """What stands in a hole for text: sentences, or clauses one after the other."""
        found = self._known(text)
        if found is not None:
            return found
        stopped = self._known(f"{text}.")  # its stop was that of the whole sentence
        if stopped is not None:
            return stopped.removesuffix(STOPS["."])
        told = self.sentences(text)
        if told != text:
            return told
        pieces = _cut(CLAUSES, text)
        told = self._tiled(pieces, self._sentence) if len(pieces) <= MOST_PIECES else text
        return text if ENGLISH.search(CODE.sub("", told)) else told

    def _sentences(self, text: str) -> str:
        """A sentence, or several; a single word is nobody's sentence, it may be a name."""
        if len(text) > MOST_LETTERS or not WORD.search(text):
            return text
        return _ended(self._tiled(_cut(SENTENCES, text), self._sentence))

    def _sentence(self, text: str) -> str | None:
        return self._known(text) if " " in text.strip() else None

    def _tiled(self, pieces: list[str], find: Callable[[str], str | None]) -> str:
        """The longest known stretches from left to right; the rest stays."""
        out, at = "", 0
        while at < len(pieces):
            stretches = ((end, find("".join(pieces[at:end]))) for end in range(len(pieces), at, -1))
            end, told = next(((e, one) for e, one in stretches if one is not None), (at + 1, None))
            out = _appended(out, pieces[at] if told is None else told)
            at = end
        return out

    def _known(self, text: str) -> str | None:
        """As it is, without the blanks around it, or without the stop at its end."""
        if text[-1:] in STOPS and text not in self._constants:
            found = self.whole(text[:-1])
            if found is not None:
                return found + STOPS[text[-1]]
        found, bare = self.whole(text), text.strip()
        if found is None and bare != text and bare:
            lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
            inner = self._known(bare)
            return None if inner is None else lead + inner + tail
        return found

    def _whole(self, text: str) -> str | None:
        constant = self._constant(text)
        if constant is not None:
            return constant
        for key in self._candidates(text):
            template = self._compiled(key)
            match = template.pattern.fullmatch(text)
            if match and not self._strays(template.parts, match.groups()):
                return "".join(self._filled(template.parts, self._parted(key, match.groups())))
        return None

    def _constant(self, text: str) -> str | None:
        """A sentence without holes; inside another it may begin with a small letter and have no full stop."""
        for begun in (text, text[:1].upper() + text[1:]):
            if begun in self._constants:
                return self._constants[begun]
            if f"{begun}." in self._constants:
                return self._constants[f"{begun}."].rstrip("。")
        return None

    def _strays(self, parts: Iterable[Part], values: tuple[str, ...]) -> bool:
        """Whether a hole for text would swallow further sentences that are not known in it."""
        texts = (values[part.hole] for part in parts if part.hole is not None and part.kind == "t")
        return any(FURTHER.search(one) and ENGLISH.search(CODE.sub("", self.text(one))) for one in texts)

    def _parted(self, key: str, values: tuple[str, ...]) -> tuple[str, ...]:
        """Of two holes with only a blank between them, the pattern cannot tell where the first ends: it ends
        where both are known, or a quantity where one is wanted."""
        at = literals(key).index(" ") - 1 if " " in literals(key)[1:-1] else None
        if at is None:
            return values
        kinds = {part.hole: part.kind for part in self._compiled(key).parts}
        words = f"{values[at]} {values[at + 1]}".split(" ")
        for end in range(1, len(words)):
            two = " ".join(words[:end]), " ".join(words[end:])
            if all(self._fits(one, kinds.get(at + n)) for n, one in enumerate(two)):
                return (*values[:at], *two, *values[at + 2 :])
        return values

    def _fits(self, value: str, kind: str | None) -> bool:
        return self._known(value) is not None or (kind == "n" and ONLY.fullmatch(value) is not None)

    def _candidates(self, text: str) -> list[str]:
        found = (key for word in ("", *_words([text])) for key in self._filed.get(word, ()))
        return sorted(found, key=self._rank.__getitem__)

    def _filled(self, parts: Iterable[Part], values: tuple[str, ...]) -> Iterator[str]:
        for text, hole, kind in parts:
            yield text
            if hole is not None:
                yield self._into(kind, values[hole])

    def _into(self, kind: str, value: str) -> str:
        if kind == "w":
            return self.word(value)
        return self.text(value) if kind == "t" else "" if kind == "x" else value


def _words(texts: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(word for text in texts for word in WORD.findall(text))


def _cut(where: re.Pattern[str], text: str) -> list[str]:
    """Pieces of a text, none of which begins or ends inside code."""
    masked = CODE.sub(lambda code: "`" * len(code.group()), text)
    places = [match.start() for match in where.finditer(masked) if 0 < match.start() < len(text)]
    return [text[begin:end] for begin, end in pairwise((0, *places, len(text)))]


def _appended(before: str, piece: str) -> str:
    """Chinese sentences follow each other without a blank, and end in a Chinese full stop."""
    before = _ended(before)
    if before.endswith(FULL):
        return before + piece.lstrip()
    for joint, full in JOINTS.items():
        if before.endswith(joint) and _is_wide(before[-len(joint) - 1 : -len(joint)]):
            return before[: -len(joint)] + full + piece
    return before + piece


def _ended(text: str) -> str:
    return text[:-1] + "。" if text.endswith(".") and _is_wide(text[-2:-1]) else text


def _is_wide(letter: str) -> bool:
    return letter > "\u2e80"
