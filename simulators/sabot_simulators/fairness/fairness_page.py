"""A page of the evidence: the table of tests, a heat-map of card by position, the curve of right guesses."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sabot_simulators.fairness.order_tests import OrderReport, OrderTest, guesses_in_line, position_counts
from sabot_simulators.fairness.simulated_shuffles import Orders

CELLS = 52  # of the heat-map, in each direction
SIZE = 8
WIDTH, HEIGHT = 640, 320
LEGEND_WIDTH = 20
DEEP = 4.0  # standard deviations that have the full colour

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Fairness: {title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse }}
td, th {{ padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd }}
td:first-child, th:first-child, td:last-child, th:last-child {{ text-align: left }}
.biased {{ color: #b00020 }}
.wide {{ overflow-x: auto }}
svg {{ max-width: 100%; height: auto }}
svg text {{ font: 10px sans-serif; fill: #444 }}
.about td {{ text-align: left; overflow-wrap: anywhere }}
.about td:first-child {{ min-width: 6.5rem; overflow-wrap: normal }}
@media (max-width: 40rem) {{
.tests tr:first-child {{ display: none }}
.tests tr {{ display: block; margin-bottom: .8rem }}
.tests td {{ display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0; border: 0 }}
.tests td:first-child {{ font-weight: bold; border-bottom: 1px solid #ddd }}
.tests td:not(:first-child)::before {{ content: attr(data-name); color: #555 }}
.about td {{ padding: .2rem .3rem }} ul {{ padding-left: 1.2rem }}
}}
@media print {{ body {{ max-width: none; margin: 0; font-size: 10pt }} h2 {{ break-after: avoid }}
svg, tr {{ break-inside: avoid }} * {{ print-color-adjust: exact }} }}
</style><meta name="viewport" content="width=device-width, initial-scale=1">
<h1>{title}: <span class="{verdict}">{words}</span></h1>
<p>{shuffles:,} shuffles of {cards} cards, shuffled by {by}; the order is that of the cards themselves. A
uniform machine is called biased once in {once:,} runs.{seen}</p>
<div class="wide"><table class="tests">
<tr><th>test</th><th>seen</th><th>expected</th><th>p</th><th>p, corrected</th>
<th>found with 99 %</th><th>in</th></tr>
{rows}</table></div>
<p>"Found with 99 %" is the deviation that the test would have found with that probability. P-values are
corrected for the number of tests by Holm's method (S. Holm, Scandinavian Journal of Statistics 6, 1979).</p>
<h2>Method of each test</h2>
<ul>{methods}</ul>
<h2>Where this comes from</h2>
<table class="about">{about}</table>
<h2>Card by position</h2>
<p>How often each card (downwards) was at each position (across), against the mean: red oftener, blue rarer;
full colour is four standard deviations. Cards and positions are counted from 1, the top card first.</p>
{heat}
<h2>Guesses</h2>
<p>How often a player who sees every card after guessing it is right, going on in the direction of the last
two (line), and what a uniform deck gives (dots): {mean:.2f} cards a deck against {uniform:.2f}.</p>
{curve}
</html>
"""


WORDS = {"uniform": "no bias found", "biased": "biased", "too_few": "too few shuffles to judge"}


def write_page(
    folder: Path,
    title: str,
    findings: OrderReport,
    orders: Orders,
    about: Mapping[str, object],
    seen: str = "",
) -> Path:
    """Write ``index.html`` into a folder, made if need be; where it is.

    ``about`` says where it is from, ``seen`` in words which bias would have been found.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(
        f"<tr><td>{escape(test.name)}</td>{_cells(findings, test)}</tr>\n" for test in findings.tests
    )
    right = guesses_in_line(orders).mean(axis=0)
    chances = 1 / np.arange(orders.shape[1], 0, -1)
    page = folder / "index.html"
    page.write_text(
        PAGE.format(
            title=escape(title),
            verdict=findings.verdict,
            words=WORDS[findings.verdict],
            methods="".join(
                f"<li><b>{escape(test.name)}</b>: {escape(test.method)} "
                f'<span class="from">({escape(test.reference)})</span></li>\n'
                for test in findings.tests
            ),
            about="".join(
                f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>\n"
                for name, value in about.items()
            ),
            by=escape(str(about["shuffled by"])),
            seen=escape(seen),
            shuffles=findings.shuffles,
            cards=findings.cards,
            once=round(1 / findings.level),
            rows=rows,
            heat=heat_map(orders),
            curve=guess_curve(right, chances),
            mean=right.sum(),
            uniform=chances.sum(),
        ),
        encoding="utf-8",
    )
    return page


def _cells(findings: OrderReport, test: OrderTest) -> str:
    """The cells of a test behind its name; each has its column's name, for a narrow screen."""
    values = {
        "seen": f"{test.statistic:.5g}",
        "expected": f"{test.expected:.5g}",
        "p": f"{test.p:.3g}",
        "p, corrected": f"{test.p_corrected:.3g}",
        "found with 99 %": f"{findings.detectable(test):.3g}",
        "in": test.unit,
    }
    return "".join(f'<td data-name="{escape(name)}">{escape(value)}</td>' for name, value in values.items())


def heat_map(orders: Orders) -> str:
    """An SVG of the deviations; decks of more cards in blocks."""
    shuffles, cards = orders.shape
    block = max(cards // CELLS, 1)
    cells = cards // block
    counts = position_counts(orders)[: cells * block, : cells * block]
    counts = counts.reshape(cells, block, cells, block).sum(axis=(1, 3))
    mean = shuffles * block * block / cards
    deviations = (counts - mean) / np.sqrt(mean)
    side = cells * SIZE
    frame = f"-34 -5 {side + 39} {side + 55}"
    parts = [f'<svg viewBox="{frame}" width="{side + 39}" role="img" aria-label="card by position">']
    for at in range(0, cells, 13):
        first = at * block + 1
        parts.append(f'<text x="{at * SIZE}" y="{side + 12}">{first}</text>')
        parts.append(f'<text x="-18" y="{at * SIZE + 8}">{first}</text>')
    parts.append(f'<text x="{side - 45}" y="{side + 12}">position</text>')
    parts.append(f'<text transform="rotate(-90)" x="{-side}" y="-24">card</text>')
    for step in range(-4, 5):
        at = side / 2 + step * LEGEND_WIDTH
        parts.append(
            f'<path d="M{at:.0f} {side + 22}h{LEGEND_WIDTH}v10h-{LEGEND_WIDTH}z" fill="{_colour(step / 4)}"/>'
        )
        if step % 2 == 0:
            parts.append(f'<text x="{at + 4:.0f}" y="{side + 44}">{step:+d}</text>')
    parts.append(f'<text x="0" y="{side + 31}">standard deviations:</text>')
    for row in range(cells):
        for column in range(cells):
            colour = _colour(float(deviations[row, column]) / DEEP)
            where = f'x="{column * SIZE}" y="{row * SIZE}"'
            parts.append(f'<rect {where} width="{SIZE}" height="{SIZE}" fill="{colour}"/>')
    return "".join([*parts, "</svg>"])


def _colour(depth: float) -> str:
    """The colour of a deviation from -1 (deep blue) to 1 (deep red)."""
    depth = max(-1.0, min(1.0, depth))
    pale = round(255 * (1 - abs(depth)))
    return f"rgb(255,{pale},{pale})" if depth > 0 else f"rgb({pale},{pale},255)"


def guess_curve(right: NDArray[np.float64], chances: NDArray[np.float64]) -> str:
    """An SVG of the chance of a right guess at each position."""
    across = WIDTH / (len(right) - 1)
    line = " ".join(f"{at * across:.1f},{HEIGHT * (1 - each):.1f}" for at, each in enumerate(right))
    dots = "".join(
        f'<circle cx="{at * across:.1f}" cy="{HEIGHT * (1 - each):.1f}" r="2" fill="#888"/>'
        for at, each in enumerate(chances)
    )
    return (
        f'<svg viewBox="-30 -8 {WIDTH + 40} {HEIGHT + 26}" width="{WIDTH}" role="img" aria-label="guesses">'
        f"{dots}"
        f'<text x="-26" y="6">100 %</text><text x="-26" y="{HEIGHT}">0 %</text>'
        f'<text transform="rotate(-90)" x="{-HEIGHT / 2 - 60:.0f}" y="-12">chance of a right guess</text>'
        f'<path d="M0 0V{HEIGHT}H{WIDTH}" fill="none" stroke="#999"/>'
        f'<text x="0" y="{HEIGHT + 14}">card 1</text>'
        f'<text x="{WIDTH - 40}" y="{HEIGHT + 14}">card {len(right)}</text>'
        f'<text x="40" y="12">line: seen; dots: uniform deck</text>'
        f'<polyline points="{line}" fill="none" stroke="#b00020" stroke-width="1.5"/></svg>'
    )
