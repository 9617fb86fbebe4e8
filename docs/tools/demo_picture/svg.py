"""A transcript as an SVG that moves by itself: every line has the time in which it is seen, and the page scrolls."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from docs.tools.demo_picture.transcript import Line, Piece, Transcript

ROWS, CELL, ROW = 30, 7.8, 17.0
MARGIN = 16.0
LONGEST, SLOWER, HOLD = 0.12, 1.2, 6.0
"""The longest pause between two pictures, how much longer a picture with new sentences stays, and how long the
end does, in seconds: nobody waits for a training in a picture."""
COLORS = {
    "31": "#ff7b72", "32": "#3fb950", "33": "#e3b341", "36": "#76d9e6", "2": "#8b949e",
}  # fmt: skip
Span = tuple[int, Line, float, float]
"""Row, content, begin and end."""


def animated(transcript: Transcript, columns: int) -> str:
    moments, length = _paced(transcript)
    spans = list(_spans(moments, length))
    width, height = columns * CELL + 2 * MARGIN, ROWS * ROW + 2 * MARGIN + ROW
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
            "<title>gpumon demo, recorded on a machine without a GPU; waiting is shortened</title>",
            "<style>",
            "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#e6edf3}",
            *_rules(spans, moments, length),
            "@media (prefers-reduced-motion:reduce){*{animation:none!important}}",
            "</style>",
            f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/><clipPath id="c"><rect x="0" y="{MARGIN}" '
            f'width="{width:.0f}" height="{ROWS * ROW:.0f}"/></clipPath>',
            '<g clip-path="url(#c)"><g class="page">',
            *(_text(number, span) for number, span in enumerate(spans)),
            "</g></g>",
            f'<text x="{width - MARGIN:.0f}" y="{height - 10:.0f}" text-anchor="end" style="fill:#8b949e">'
            "gpumon demo · no GPU · waiting shortened</text>",
            "</svg>\n",
        ]
    )


def _paced(transcript: Transcript) -> tuple[list[tuple[float, tuple[Line, ...]]], float]:
    """The moments with short pauses, but time to read new sentences; and how long all of it is."""
    moments: list[tuple[float, tuple[Line, ...]]] = []
    at, before, seen = 0.0, 0.0, 0
    for now, lines in transcript.moments:
        at += min(LONGEST, now - before)
        moments.append((at, lines))
        if len(lines) > seen + 1:
            at += SLOWER
        before, seen = now, max(seen, len(lines))
    return moments, at + HOLD


def _spans(moments: list[tuple[float, tuple[Line, ...]]], length: float) -> Iterator[Span]:
    """Each line as long as it stays the same."""
    open_: dict[int, tuple[Line, float]] = {}
    for at, lines in moments:
        for row in set(open_) | set(range(len(lines))):
            line = lines[row] if row < len(lines) else ()
            shown, since = open_.get(row, ((), at))
            if line != shown:
                if shown:
                    yield row, shown, since, at
                open_[row] = line, at
    yield from ((row, line, since, length) for row, (line, since) in open_.items() if line)


def _rules(spans: list[Span], moments: list[tuple[float, tuple[Line, ...]]], length: float) -> Iterator[str]:
    """One animation a line, and one that scrolls."""
    for number, (_, _, begin, end) in enumerate(spans):
        stays = end >= length
        gone = "" if stays else f"{_percent(end, length)}{{opacity:0}}"
        yield f"@keyframes k{number}{{0%{{opacity:0}}{_percent(begin, length)}{{opacity:1}}{gone}}}"
        yield f".k{number}{{opacity:{int(stays)};animation:k{number} {length:.1f}s step-end infinite}}"
    steps, last = ["0%{transform:translateY(0)}"], 0
    for at, lines in moments:
        up = max(0, len(lines) - ROWS)
        if up != last:
            steps.append(f"{_percent(at, length)}{{transform:translateY({-up * ROW:.0f}px)}}")
            last = up
    yield f"@keyframes page{{{''.join(steps)}}}"
    yield f".page{{transform:translateY({-last * ROW:.0f}px);animation:page {length:.1f}s step-end infinite}}"


def _percent(at: float, length: float) -> str:
    return f"{100 * at / length:.2f}%"


def _text(number: int, span: Span) -> str:
    row, line, _, _ = span
    pieces = "".join(map(_piece, line))
    return f'<text class="k{number}" x="{MARGIN:.0f}" y="{MARGIN + ROW * row + 13:.0f}">{pieces}</text>'


def _piece(piece: Piece) -> str:
    parts = piece.style.split(";")
    color = next((COLORS[part] for part in parts if part in COLORS), "")
    style = (f"fill:{color};" if color else "") + ("font-weight:bold" if "1" in parts else "")
    return f'<tspan style="{style}">{escape(piece.text)}</tspan>' if style else escape(piece.text)
