"""Quantiles beside other systems' quantiles: errors in rows and in values; and the time they take.

    python -m benchmarks.quantiles [--size short] [--folder DIR] [--json FILE]

p50, p90 and p99 at ε of 0.1 and 1, of flight delays, incomes with a heavy tail (made up: there are no real ones that
anybody may have), TPC-H's prices, and timestamps; the unit is a row. Each contestant has all of ε for one quantile.

dpsql             its own plan, histogram and sampler, drawn again and again; a few whole queries show that both agree
OpenDP 101        its quantile with 101 candidates at equal steps, as its documentation has it
OpenDP 65,536     the same with as many candidates as dpsql has cells at most
Google's tree     the quantile tree of its differential privacy library, by PyDP
SmartNoise Core   its exponential mechanism with 101 candidates; deprecated. SmartNoise SQL has no quantile

The error in rows is how many lie between the answer and the quantile, and 0 for any value that is one; the error in
values is the distance to the nearest such value. Values are clipped to the bounds first; where they are integers,
everybody's answers are rounded. A contestant is ahead where its errors are smaller than can be chance (rank-sum test,
4 standard deviations).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.frame import Figures, Settings, command, number, table, times
from benchmarks.peers.contest import Failed, started
from benchmarks.peers.environments import QUANTILES, NotInstalled, python_of
from benchmarks.quantile_pace import many_cells, paces
from benchmarks.quantile_sets import SETS, Column, Values, opened

TITLE = "Quantiles"
PS = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
EPSILONS = (Fraction(1, 10), Fraction(1))
CANDIDATES = {"OpenDP 101": 101, "OpenDP 65,536": 65_536}
OWN = "dpsql"
SURE = 4
"""Standard deviations from which on a difference is one."""
FEWEST = 10
"""Answers below which nothing is judged."""
FEW = 1_000
"""Rows below which no quantile is an answer."""
Errors = NDArray[np.float64]


def run(settings: Settings) -> Figures:
    """All sets and contestants, and the times."""
    draws, patience = settings.pick(20, 1_000, 4_000), settings.pick(1, 5, 60)
    scale, people = settings.pick("0.01", "0.1", "1"), settings.people or settings.pick(300, 1_000_000, 4_000_000)
    sets = settings.pick(SETS[:3], SETS, SETS)
    columns = [opened(one, settings.folder, scale) for one in sets]
    found: Figures = {"draws": draws, "scale": scale, "sets": {}, "versions": {}, "without": {}}
    others = [(name, s) for name in QUANTILES for s in (CANDIDATES if name == "opendp" else (QUANTILES[name],))]
    try:
        for name in settings.pick((), tuple(QUANTILES), tuple(QUANTILES)):
            with suppress(NotInstalled):
                python_of(name, settings.folder / "peers")
        with ThreadPoolExecutor() as pool:  # each is a process of its own, and their times are not compared
            asked = [
                pool.submit(theirs, *other, columns, draws, patience, settings.folder)
                for other in settings.pick([], others, others)
            ]
            for column in columns:
                found["sets"][column.set.name] = own(column, draws, settings.pick(2, 10, 40))
            for each in asked:
                add(found, *each.result())
    finally:
        for column in columns:
            column.connection.close()
    judge(found)
    return found | {
        "paces": paces(settings.folder, people, settings.turns(1, 9, 15)),
        "many": many_cells(*settings.pick((10, 10), (1_000, 1_000), (1_000, 1_000)), settings.turns(1, 3, 5)),
    }


def own(column: Column, draws: int, whole: int) -> Figures:
    """Errors of dpsql, and how whole queries agree."""
    found: Figures = {"rows": len(column.sorted), "errors": {}, "whole": {}}
    whole = whole if len(column.sorted) <= 10**6 else min(whole, 3)
    for p in PS:
        for epsilon in EPSILONS:
            drawn, cells = column.drawn(p, epsilon, draws)
            case = f"{float(p)}|{float(epsilon)}"
            found["errors"][case] = {OWN: errors(column.sorted, p, drawn)}
            found["cells"] = len(cells)
            asked = errors(column.sorted, p, column.asked(p, epsilon, whole))
            found["whole"][case] = ahead(asked["rank"], found["errors"][case][OWN]["rank"])
    found["asked"] = whole
    return found


Answers = dict[tuple[str, str], dict[str, Errors]]


def theirs(
    name: str, shown: str, columns: Sequence[Column], draws: int, patience: float, folder: Path
) -> tuple[str, Answers, dict[str, str], str]:
    """Another system: its name, (set, quantile|ε) → errors, its versions, and why it has no answers."""
    found: Answers = {}
    task = {
        "sets": [column.task() for column in columns],
        "quantiles": [float(p) for p in PS],
        "epsilons": [float(e) for e in EPSILONS],
        "draws": draws,
        "seconds": patience,
        "candidates": CANDIDATES.get(shown, 0),
    }
    try:
        with started(name, folder, task, 60 * patience + 900, "quantiles") as peer:
            refused = {reason for reason in peer.ready.values() if reason}
            if refused:
                return shown, {}, peer.versions, "; ".join(sorted(refused))
            for column, p, epsilon in product(columns, PS, EPSILONS):
                case = f"{float(p)}|{float(epsilon)}"
                ((_, answers),) = peer.answer(f"{column.set.name}|{case}").items()
                found[column.set.name, case] = errors(column.sorted, p, np.array(answers))
            return shown, found, peer.versions, ""
    except (NotInstalled, Failed) as reason:
        return shown, found, {}, str(reason)[:300]


def add(found: Figures, shown: str, answers: Answers, versions: dict[str, str], without: str) -> None:
    """Puts another system beside dpsql."""
    for (name, case), of_case in answers.items():
        found["sets"][name]["errors"][case][shown] = of_case
    found["versions"] |= versions
    if without:
        found["without"][shown] = without


def errors(values: Values, p: Fraction, answers: Values) -> dict[str, Errors]:
    """How far answers are from the quantile of sorted values, in rows and in values."""
    n = len(values)
    rank = float(p * n)
    below, up_to = np.searchsorted(values, answers, side="left"), np.searchsorted(values, answers, side="right")
    least, most = values[math.ceil(p * n) - 1], values[min(math.floor(p * n), n - 1)]
    rows = np.maximum(np.maximum(below - rank, rank - up_to), 0.0)
    return {"rank": rows, "value": np.maximum(np.maximum(least - answers, answers - most), 0.0)}


def ahead(mine: Errors, other: Errors) -> float:
    """Standard deviations by which `mine` are smaller than chance explains (rank-sum test); below 0: larger.

    Of few answers nothing is said.
    """
    m, n = len(mine), len(other)
    if min(m, n) < FEWEST:
        return 0.0
    theirs = np.sort(other)
    above = n - np.searchsorted(theirs, mine, side="right")
    same = np.searchsorted(theirs, mine, side="right") - np.searchsorted(theirs, mine, side="left")
    u = float(np.sum(above + same / 2))
    _, tied = np.unique(np.concatenate([mine, other]), return_counts=True)
    variance = m * n / 12 * (m + n + 1 - float(np.sum(tied.astype(float) ** 3 - tied)) / ((m + n) * (m + n - 1)))
    return (u - m * n / 2) / math.sqrt(variance) if variance > 0 else 0.0


def judge(found: Figures) -> None:
    """Replaces errors by what is told of them: median, 95 %, mean, and how far dpsql is ahead."""
    for of_set in found["sets"].values():
        for of_case in of_set["errors"].values():
            mine = of_case[OWN]
            for name, theirs in of_case.items():
                of_case[name] = {"draws": len(theirs["rank"])} | {
                    kind: [float(np.median(e)), float(np.quantile(e, 0.95)), float(np.mean(e)), ahead(mine[kind], e)]
                    for kind, e in theirs.items()
                }


def cases(figures: Figures) -> Iterator[tuple[str, str, Figures]]:
    """Set, quantile|ε, contestant → what is told of it."""
    for name, of_set in figures["sets"].items():
        for case, of_case in of_set["errors"].items():
            yield name, case, of_case


def verdicts(figures: Figures, kind: str, least: int = FEW) -> dict[str, dict[str, list[str]]]:
    """Contestant → where dpsql is ahead, level, behind, over sets of so many rows and more."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, case, of_case in cases(figures):
        if figures["sets"][name]["rows"] >= least:
            for other in of_case.keys() - {OWN}:
                by = of_case[other][kind][3]
                where = "ahead" if by > SURE else "behind" if by < -SURE else "level"
                p, epsilon = case.split("|")
                said = found.setdefault(other, {"ahead": [], "level": [], "behind": []})
                said[where].append(f"{name}, {_named(p)}, ε {epsilon}")
    return found


def markdown(figures: Figures) -> str:
    """The tables."""
    contestants = list(dict.fromkeys(name for _, _, of_case in cases(figures) for name in of_case))
    versions = ", ".join(f"{package} {version}" for package, version in figures["versions"].items())
    whole = [by for of_set in figures["sets"].values() for by in of_set["whole"].values()]
    asked = max((of_set["asked"] for of_set in figures["sets"].values()), default=0)
    sets = "; ".join(f"{name} {s['rows']:,} rows, {s['cells']:,} cells" for name, s in figures["sets"].items())
    fewest = min((way["draws"] for _, _, of_case in cases(figures) for way in of_case.values()), default=0)
    parts = [
        f"{figures['draws']:,} draws each, where they take long at least {fewest}. {versions}. {sets}. "
        f"{asked} whole queries of each row differ from the draws by at most {max(map(abs, whole), default=0):.1f} "
        "standard deviations of a rank-sum test.",
        "Error in rows: the median, and what 95 in 100 do not exceed. Bold: dpsql is ahead; *italic*: it is behind.",
        _errors(figures, contestants),
        "Errors in values (minutes, money, seconds) are in benchmarks/results/published.json, and counted here:",
        f"Over sets of {FEW:,} rows and more, dpsql is, in rows and in values,",
        table(("", "ahead", "level", "behind", "ahead", "level", "behind"), _counted(figures)),
    ]
    behind = [
        f"- behind {other} in values: {'; '.join(said['behind'])}"
        for other, said in sorted(verdicts(figures, "value").items())
        if said["behind"]
    ]
    parts += ["\n".join(behind)] if behind else []
    parts += [f"- {name}: {reason}" for name, reason in figures["without"].items()]
    pace, many = figures["paces"], figures["many"]
    parts += [
        f"A median per person over {pace['rows']:,} orders, over the COUNT of the same query, end to end:",
        table(
            ("", "COUNT, ms", "MEDIAN, ms", "× COUNT", "× COUNT, processor time"),
            (
                [
                    name,
                    number(each["count"]["ms"][0]),
                    number(each["median"]["ms"][0]),
                    times(each["median"]["over"]["count"]),
                    number(each["median"]["cpu_over"]["count"]),
                ]
                for name, each in pace["times"].items()
            ),
        ),
        f"{many['cells']:,} non-empty cells of {many['groups']:,} groups: {number(many['seconds'])} s of one core "
        "for all choices.",
    ]
    return "\n\n".join(parts)


def _errors(figures: Figures, contestants: Sequence[str]) -> str:
    def cell(of_case: Figures, name: str) -> str:
        if name not in of_case:
            return "–"
        median, most, _, by = of_case[name]["rank"]
        text = f"{_amount(median)} / {_amount(most)}"
        return f"**{text}**" if by > SURE else f"*{text}*" if by < -SURE else text

    rows, above = [], ""
    for name, case, of_case in cases(figures):
        p, epsilon = case.split("|")
        rows.append(["" if name == above else name, _named(p), epsilon, *(cell(of_case, o) for o in contestants)])
        above = name
    return table(("", "", "ε", *contestants), rows, left=2)


def _counted(figures: Figures) -> Iterator[list[object]]:
    rank, value = verdicts(figures, "rank"), verdicts(figures, "value")
    for other in sorted(rank):
        yield [other, *(len(said[other][where]) for said in (rank, value) for where in ("ahead", "level", "behind"))]


def _named(p: str) -> str:
    return f"p{round(100 * float(p))}"


def _amount(x: float) -> str:
    return f"{x:,.0f}" if x >= 99.5 or x == round(x) else f"{x:.3g}"


if __name__ == "__main__":
    command(__doc__, "quantiles", run, markdown)
