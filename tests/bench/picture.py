"""Recall against time as a picture: one panel a set, a line an embedder, a point a way of asking."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Protocol

PANEL, HEIGHT, LEFT, TOP, BOTTOM = 300, 340, 46, 58, 54
COLOURS = {"onnx": "#1f6fb2", "wordllama": "#c2571a"}
STYLE = """
    .page { fill: #ffffff; } .axis { stroke: #8c959f; stroke-width: 1; } .grid { stroke: #d0d7de; stroke-width: 0.6; }
    text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 12px; fill: #1f2328; }
    .name { font-size: 15px; font-weight: 600; } .small { font-size: 11px; fill: #57606a; } .mid { text-anchor: middle; } .end { text-anchor: end; }
    @media (prefers-color-scheme: dark) { .page { fill: #0d1117; } .grid { stroke: #30363d; } text { fill: #e6edf3; } .small { fill: #9ea7b3; } }
"""


class Point(Protocol):
    @property
    def set(self) -> str: ...
    @property
    def embedder(self) -> str: ...
    @property
    def arm(self) -> str: ...
    @property
    def found(self) -> Sequence[float]: ...
    @property
    def p50(self) -> float: ...


def drawn(points: Iterable[Point]) -> str:
    """An SVG of recall@5 over the median time; only sets with something to find."""
    points = [point for point in points if point.found]
    names = list(dict.fromkeys(point.set for point in points))
    low = min(math.floor(point.found[1] / 10) * 10 for point in points)
    times = [point.p50 for point in points]
    first, last = math.log(min(times) / 1.3), math.log(max(times) * 1.5)

    def across(ms: float) -> float:
        return LEFT + (math.log(ms) - first) / (last - first) * (PANEL - LEFT - 14)

    def down(recall: float) -> float:
        return TOP + (100 - recall) / (100 - low) * (HEIGHT - TOP - BOTTOM)

    width = PANEL * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" role="img" aria-labelledby="title">',
        '<title id="title">recall@5 against the median time of a call, for every set, embedder and way of asking</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{HEIGHT}"/>',
    ]
    for place, name in enumerate(names):
        parts.append(f'<g transform="translate({place * PANEL} 0)">')
        parts.append(f'<text class="name mid" x="{(LEFT + PANEL) / 2}" y="22">{escape(name)}</text>')
        for recall in range(low, 101, 10):
            parts.append(f'<path class="grid" d="M{LEFT} {down(recall):.1f}H{PANEL - 14}"/>')
            parts.append(f'<text class="small end" x="{LEFT - 6}" y="{down(recall) + 4:.1f}">{recall}</text>')
        for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
            if first < math.log(ms) < last:
                parts.append(f'<path class="grid" d="M{across(ms):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
                parts.append(f'<text class="small mid" x="{across(ms):.1f}" y="{HEIGHT - BOTTOM + 16}">{ms}</text>')
        parts.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{PANEL - 14}"/>')
        parts.append(f'<text class="small mid" x="{(LEFT + PANEL) / 2}" y="{HEIGHT - BOTTOM + 34}">ms (median)</text>')
        for number, (embedder, colour) in enumerate(COLOURS.items()):
            own = [point for point in points if (point.set, point.embedder) == (name, embedder)]
            own.sort(key=lambda point: (point.p50, point.arm))
            if not own:
                continue
            parts.append(f'<text x="{LEFT + number * 90}" y="42" style="fill:{colour}">● {embedder}</text>')
            line = " ".join(f"{across(point.p50):.1f},{down(point.found[1]):.1f}" for point in own)
            parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.2" opacity="0.5" points="{line}"/>')
            for point in own:
                x, y = across(point.p50), down(point.found[1])
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
                # The first embedder's names stand above its points, the other's below: the points often lie close.
                end = x > PANEL * 0.8
                place_of_name = f'x="{x + (6 if end else -4):.1f}" y="{y + (16 if number else -8):.1f}"'
                kind = "small end" if end else "small"
                parts.append(f'<text class="{kind}" {place_of_name} style="fill:{colour}">{point.arm}</text>')
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])
