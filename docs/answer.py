"""A question and its answer, the first picture of the README: `python -m docs.answer` writes docs/images/answer.svg.

The question is one of those that `make demo` asks, and the answer is what `dpsql query` prints for it. Its noise is new
each time, so `make generate` leaves the picture alone; a test asks again and compares all but the noisy numbers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import cast

from dpsql.faces.cli.commands.demo import COSTS

TARGET = Path(__file__).resolve().parent / "images" / "answer.svg"
QUESTION = COSTS.replace(" AVG(", "\n       AVG(").replace(" JOIN icd10", "\n     JOIN icd10")
NOISY = re.compile(r"(-?[\d,.]+) (± [\d,.]+)")
LOSSES = re.compile(r"spent ε ([\d.]+), left ε ([\d.]+)")
SHOWN = re.compile(r'class="right">(-?[\d,.]+)</text>\n<text[^>]*class="noise">± ([\d,.]+)</text>')
WORDS = re.compile(r"\b(SELECT|FROM|JOIN|USING|WHERE|GROUP BY|ORDER BY|AS|COUNT|AVG)\b")
WIDE, MARGIN, LINE, ROW, LETTERS = 500, 24, 23, 28, 64
COLUMNS = (MARGIN, 180, 380)
"""Where the columns of the answer are: the first begins there; the numbers of the others end there, before their ±."""
STYLE = """\
text { font: 16px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2328 }
text { white-space: pre } .word { fill: #0550ae } .noise { fill: #953800 } .right { text-anchor: end }
.say, .head { font: 14px ui-sans-serif, system-ui, 'DejaVu Sans', sans-serif; fill: #59636e } .head { font-weight: 600 }
.card { fill: #f6f8fa; stroke: #d1d9e0 } .line { stroke: #d1d9e0 } .left { fill: #d1d9e0 } .spent { fill: #953800 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .word { fill: #79c0ff } .noise { fill: #ffa657 } .say, .head { fill: #9198a1 }
.card { fill: #151b23; stroke: #3d444d } .line { stroke: #3d444d }
.left { fill: #3d444d } .spent { fill: #ffa657 } }"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the program printed: names of columns, rows of cells, and the remarks below them, the cost first."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]


def ask(folder: Path) -> Answer:
    """Ask in a clinic of its own, made in an empty folder."""
    options = ["--analyst", "ana", "--epsilon", "0.5", "--ledger", "answer.sqlite"]

    def printed(*arguments: str) -> str:
        command = [sys.executable, "-m", "dpsql", *arguments]
        return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, timeout=300).stdout.decode()

    printed("demo", "clinic")
    names, _, *lines = printed("query", "clinic/clinic.yaml", QUESTION, *options).strip().splitlines()
    last = next(n for n, line in enumerate(lines) if line.startswith("("))
    spent = lines[last].partition(")  ")[2].split("; ")
    return Answer(_cells(names), tuple(map(_cells, lines[:last])), (*spent, *map(str.strip, lines[last + 1 :])))


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.split("|"))


def svg(answer: Answer) -> str:
    """The question, the answer, and what it cost."""
    parts: list[str] = []

    def text(x: float, y: float, content: str, kind: str = "") -> None:
        look = f' class="{kind}"' if kind else ""
        parts.append(f'<text x="{x:g}" y="{y:g}"{look}>{content}</text>')

    y = 34
    text(MARGIN, y, "1  An analyst asks", "head")
    y += 4
    for line in QUESTION.splitlines():
        y += LINE
        text(MARGIN, y, WORDS.sub(r'<tspan class="word">\1</tspan>', escape(line)))
    y += 22
    parts.append(f'<path d="M0 {y} h{WIDE}" class="line"/>')
    y += 30
    text(MARGIN, y, "2  The answer, with the noise that hides each patient", "head")
    y += 30
    for row in (answer.names, *answer.rows):
        for place, cell in zip(COLUMNS, row, strict=True):
            number = NOISY.fullmatch(cell)
            if place == MARGIN:
                text(place, y, escape(cell), "say" if row is answer.names else "")
            elif number is None:
                text(place, y, escape(cell), "say right")
            else:
                text(place, y, number[1], "right")
                text(place + 10, y, number[2], "noise")
        y += ROW
    spent, *notes = answer.remarks
    for line in (line for note in notes for line in wrap(note, LETTERS)):
        text(MARGIN, y, escape(line), "say")
        y += 20
    parts.append(f'<path d="M0 {y} h{WIDE}" class="line"/>')
    y += 30
    text(MARGIN, y, "3  What it cost", "head")
    text(WIDE - MARGIN, y, escape(spent), "say right")
    y += 14
    cost, left = (float(part) for part in cast(re.Match[str], LOSSES.match(spent)).groups())
    bar = WIDE - 2 * MARGIN
    parts.append(f'<rect x="{MARGIN}" y="{y}" width="{bar}" height="16" rx="4" class="left"/>')
    parts.append(
        f'<rect x="{MARGIN}" y="{y}" width="{bar * cost / (cost + left):g}" height="16" rx="4" class="spent"/>'
    )
    high = y + 36
    words = "An SQL query with two joins and a GROUP BY, its answer with ± beside each number, and what it cost"
    return card(WIDE, high, words, STYLE, parts)


def card(wide: int, high: int, words: str, style: str, parts: list[str]) -> str:
    """A picture on a card with round corners, for light and dark pages. words: what it shows, for who does not see."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
            f'role="img" aria-label="{words}">',
            f"<style>\n{style}\n</style>",
            f'<rect x="0.5" y="0.5" width="{wide - 1}" height="{high - 1}" rx="8" class="card"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def numbers(picture: str) -> list[tuple[float, float]]:
    """The noisy numbers that a picture shows, each with its half-width."""
    return [(float(n.replace(",", "")), float(w.replace(",", ""))) for n, w in SHOWN.findall(picture)]


def without_noise(picture: str) -> str:
    """A picture without its noisy numbers."""
    return SHOWN.sub("N", picture)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        TARGET.write_text(svg(ask(Path(folder))), encoding="utf-8")
    print(f"wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
