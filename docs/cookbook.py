"""The cookbook's answers: `python -m docs.cookbook` asks each query of docs/cookbook.md and writes its answer below.

The page is written by hand but for the blocks of text behind its SQL. Their noise is new each time, so `make generate`
leaves the page alone; a test asks again and compares all but the noisy numbers.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path

import dpsql
from docs.chart import Axis, Chart

PAGE = Path(__file__).resolve().parent / "cookbook.md"
PICTURE = PAGE.parent / "images" / "cookbook-months.svg"
QUESTION = re.compile(r"^```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
FIRST = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
MOST = 6
"""Rows of an answer that are shown."""


def build(page: str, folder: Path) -> None:
    """Run the page's first block, which makes the data and the policy, in a folder."""
    found = FIRST.search(page)
    assert found is not None
    with contextlib.chdir(folder):
        exec(compile(found[1], str(PAGE), "exec"), {"__name__": "__cookbook__"})


def asked(page: str, folder: Path) -> list[str]:
    """The answers to all queries of the page, in its order."""
    with dpsql.connect(folder / "policy.yaml", ledger=":memory:") as con:
        return [str(con.sql(question).run()) for question, _ in QUESTION.findall(page)]


def shown(answer: str) -> str:
    """An answer as the page has it: its first rows."""
    rows = [row.rstrip() for row in answer.splitlines()]
    return "\n".join([*rows[: MOST + 1], *(["…"] if len(rows) > MOST + 1 else [])]) + "\n"


def filled(page: str, answers: list[str]) -> str:
    """The page with these answers."""
    rest = iter(answers)

    def one(found: re.Match[str]) -> str:
        return f"```sql\n{found[1]}```\n\n```text\n{next(rest)}```\n"

    return QUESTION.sub(one, page)


def names(answer: str) -> list[str]:
    """The names of its columns."""
    return answer.splitlines()[0].split()


def months(answer: str) -> str:
    """The answer about months as a picture: points with their ±."""
    rows = [tuple(map(float, re.findall(r"\d+", row))) for row in answer.splitlines()[1:]]
    chart = Chart(
        "Orders of each month, ± at 95 %",
        "Twelve points with bars: about 4,000 orders in each month, each with a plus-minus of 180.",
        Axis(0.5, 12.5, range(1, 13), "month"),
        Axis(0, 5000, (0, 1000, 2000, 3000, 4000, 5000), "orders, at ε 0.5", label="{:,.0f}".format),
    )
    for month, orders, width in rows:
        chart.curve("a", [(month, orders - width), (month, orders + width)])
        chart.dot(month, orders)
    return chart.svg()


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        build(page, Path(folder))
        answers = asked(page, Path(folder))
    PICTURE.write_text(months(next(a for a in answers if names(a) == ["month", "orders"])), encoding="utf-8")
    PAGE.write_text(filled(page, [shown(a) for a in answers]), encoding="utf-8")
    print(f"wrote {PAGE} and {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
