"""Draws the README's chart from the table of comparisons with NUTS: python3 tools/readme_chart.py

Bars are processor seconds until every mean has the same Monte-Carlo standard error, on a logarithmic scale. The chart shows programs of the
second table of docs/book/src/ablation.md for which both methods pass their checks.
"""

import math
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/book/src/ablation.md"
CHART = ROOT / "docs/book/src/pictures/nuts.svg"

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 720, 216, 56, 9, 10, 44
COLOURS = {"Jensen": "#2a6fb0", "NUTS": "#b9bec6"}


def rows():
    """Returns name, dimension, and seconds of Jensen and of NUTS, without rows whose ratio is in parentheses."""
    table = PAGE.read_text().split("## Beside NUTS")[1].split("| program |")[2]
    for line in table.splitlines()[2:]:
        if not line.startswith("|"):
            return
        name, dim, jensen, _, _, _, nuts, ratio = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"[\d.]+", ratio):
            yield name, int(dim), float(jensen), float(nuts)


def main():
    found = sorted(rows(), key=lambda row: row[3] / row[2], reverse=True)
    height = TOP + len(found) * (2 * BAR + GAP) + 34
    ticks = [0.1, 1, 10, 100, 1000]
    most = max(row[3] for row in found)
    ticks = [tick for tick in ticks if tick <= 10 * most]
    span = math.log10(ticks[-1] / ticks[0])

    def at(seconds):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(seconds / ticks[0]) / span

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="12" y="20" font-size="14" fill="#222">Processor seconds to the same accuracy of all means</text>',
    ]
    for k, (name, colour) in enumerate(COLOURS.items()):
        x = WIDTH - 170 + 85 * k
        out.append(f'<rect x="{x}" y="11" width="11" height="11" fill="{colour}"/>')
        out.append(f'<text x="{x + 16}" y="21" fill="#222">{name}</text>')
    bottom = height - 26
    for tick in ticks:
        x = at(tick)
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#e3e6ea"/>')
        out.append(f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle" fill="#555">{tick:g} s</text>')
    for k, (name, dim, jensen, nuts) in enumerate(found):
        y = TOP + k * (2 * BAR + GAP)
        out.append(f'<text x="{LEFT - 8}" y="{y + BAR + 4}" text-anchor="end" fill="#222">{name} ({dim})</text>')
        for j, (method, seconds) in enumerate((("Jensen", jensen), ("NUTS", nuts))):
            width = at(seconds) - LEFT
            out.append(f'<rect x="{LEFT}" y="{y + j * BAR}" width="{width:.1f}" height="{BAR - 1}" fill="{COLOURS[method]}"/>')
        out.append(f'<text x="{at(nuts) + 6:.1f}" y="{y + 2 * BAR - 1}" fill="#555">{nuts / jensen:.0f}×</text>')
    out.append("</svg>")
    CHART.write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
