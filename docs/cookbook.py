"""The cookbook's answers: `python -m docs.cookbook` asks each query of docs/cookbook.md and writes its answer below.

The page is written by hand but for the blocks of text behind its SQL and the pictures behind those: an answer of two
rows or more, with its ±. Their noise is new each time, so `make generate` leaves the page alone; a test asks again and
compares all but the noisy numbers.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from html import escape
from pathlib import Path

import dpsql
from docs.chart import STYLE, WIDE

PAGE = Path(__file__).resolve().parent / "cookbook.md"
PICTURES = PAGE.parent / "images" / "cookbook"
QUESTION = re.compile(
    r"^### (\d+)\. ([^\n]*)\n\n```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?"
    r"(?:\n!\[[^\n]*\]\(images/cookbook/[^\n]*\n)?",
    re.DOTALL | re.MULTILINE,
)
"""Its number, its title, its SQL, and the answer."""
FIRST = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
MOST, DRAWN = 6, 12
"""Rows of an answer that are written, and that are drawn."""
ROW, LEFT, RIGHT, TOP = 26, 130, 160, 54
"""Pixels of a picture: a row of it, what is kept for labels and for numbers, and the title."""


def build(page: str, folder: Path) -> None:
    """Run the page's first block, which makes the data and the policy, in a folder."""
    found = FIRST.search(page)
    assert found is not None
    with contextlib.chdir(folder):
        exec(compile(found[1], str(PAGE), "exec"), {"__name__": "__cookbook__"})


def asked(page: str, folder: Path) -> list[str]:
    """The answers to all queries of the page, in its order."""
    with dpsql.connect(folder / "policy.yaml", ledger=":memory:") as con:
        return [str(con.sql(sql).run()) for _, _, sql, _ in QUESTION.findall(page)]


def shown(answer: str) -> str:
    """An answer as the page has it: its first rows."""
    rows = [row.rstrip() for row in answer.splitlines()]
    return "\n".join([*rows[: MOST + 1], *(["…"] if len(rows) > MOST + 1 else [])]) + "\n"


def filled(page: str, answers: list[str], pictures: dict[str, str]) -> str:
    """The page with these answers. pictures: number of a question → what is to be seen in its picture."""
    rest = iter(answers)

    def one(found: re.Match[str]) -> str:
        number, title, sql, _ = found.groups()
        words = f"\n![{pictures[number]}](images/cookbook/{number}.svg)\n" if number in pictures else ""
        return f"### {number}. {title}\n\n```sql\n{sql}```\n\n```text\n{shown(next(rest))}```\n{words}"

    return QUESTION.sub(one, page)


def names(answer: str) -> list[str]:
    """The names of its columns."""
    return answer.splitlines()[0].split()


def picture(title: str, answer: str) -> tuple[str, str] | None:
    """What is to be seen, and an SVG: a bar with its ± for each row. None for an answer of few rows, or of no ±."""
    head, *rows = (re.split(r"\s{2,}", line.strip()) for line in answer.splitlines())
    noisy = [i for i in range(len(head)) if any("±" in row[i] for row in rows)]
    if len(rows) < 2 or not noisy:
        return None
    rows = rows[:DRAWN]
    labels = [" ".join(row[: noisy[0]]) for row in rows]
    found = [re.findall(r"-?[\d.]+", row[noisy[-1]].replace(",", "")) for row in rows]
    points = [(float(n[0]), float(n[1])) if len(n) == 2 else None for n in found]
    ends = [0.0, *(m + side * w for m, w in filter(None, points) for side in (-1, 1))]
    scale = (WIDE - LEFT - RIGHT) / (max(ends) - min(ends))

    def at(value: float) -> float:
        return round(LEFT + (value - min(ends)) * scale, 1)

    high = TOP + ROW * len(rows) + 12
    words = f"{title} {head[noisy[-1]]}, a bar with its ± for each row"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{high}" viewBox="0 0 {WIDE} {high}" '
        f'role="img" aria-label="{escape(words)}">',
        f"<style>\n{STYLE}\n.bar {{ fill: #0969da; fill-opacity: 0.3 }}\n</style>",
        f'<rect x="0.5" y="0.5" width="{WIDE - 1}" height="{high - 1}" rx="8" class="card"/>',
        f'<text x="16" y="26" class="title">{escape(title)}</text>',
        f'<text x="16" y="45" class="dim">{escape(head[noisy[-1]])}, ± at 95 %</text>',
        f'<path d="M{at(0):g} {TOP} V{high - 12}" class="grid"/>',
    ]
    for i, (label, point, row) in enumerate(zip(labels, points, rows, strict=True)):
        y = TOP + ROW * i + ROW / 2
        parts.append(f'<text x="{LEFT - 10}" y="{y + 5:g}" class="dim end">{escape(label)}</text>')
        parts.append(f'<text x="{WIDE - RIGHT + 10}" y="{y + 5:g}" class="dim">{escape(row[noisy[-1]])}</text>')
        if point is not None:
            middle, width = point
            left, right = sorted((at(0), at(middle)))
            parts.append(f'<rect x="{left:g}" y="{y - 7:g}" width="{right - left:g}" height="14" class="bar"/>')
            parts.append(f'<path d="M{at(middle - width):g} {y:g} H{at(middle + width):g}" class="a"/>')
            parts.append(f'<circle cx="{at(middle):g}" cy="{y:g}" r="3" class="dot"/>')
    return words, "\n".join([*parts, "</svg>", ""])


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        build(page, Path(folder))
        answers = asked(page, Path(folder))
    PICTURES.mkdir(exist_ok=True)
    pictures: dict[str, str] = {}
    for (number, title, _, _), answer in zip(QUESTION.findall(page), answers, strict=True):
        if (drawn := picture(title, answer)) is not None:
            pictures[number] = drawn[0]
            (PICTURES / f"{number}.svg").write_text(drawn[1], encoding="utf-8")
    PAGE.write_text(filled(page, answers, pictures), encoding="utf-8")
    print(f"wrote {PAGE} and {len(pictures)} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
