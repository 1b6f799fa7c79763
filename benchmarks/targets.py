"""What dpsql sets out to reach, beside what was measured. Quick figures are not judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.dashboards import CONTESTANTS, OWN
from benchmarks.frame import Figures, number, table
from benchmarks.limits import MIDDLE
from benchmarks.planning import MOST_JOINS
from benchmarks.quantiles import verdicts

MILLION = 10**6


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found, in words, and whether it is what was wanted."""

    text: str
    met: bool


Found = Callable[[Mapping[str, Figures]], Iterator[Measured]]


def at_most(what: str, value: float, limit: float, unit: str = "") -> Measured:
    """A value that should not exceed its limit."""
    return Measured(f"{what} {number(value)}{unit}", value <= limit)


def at_least(what: str, value: float, limit: float, unit: str = "") -> Measured:
    """A value that should reach its limit."""
    return Measured(f"{what} {number(value)}{unit}", value >= limit)


def planning(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """From text to plan, and what `dpsql check` takes and loads."""
    plans, check = results["planning"]["plans"], results["planning"]["check"]
    yield at_most("five tables", plans["five tables"]["cpu_ms"], 3, " ms")
    yield at_most("a COUNT", plans["Q1"]["cpu_ms"], 0.8, " ms")
    yield Measured(f"{MOST_JOINS} joins {number(plans[f'joins {MOST_JOINS}']['ms'][0])} ms", True)
    yield at_most(f"{check['files']:,} files", check["seconds"][0], 3, " s")
    loaded = sorted({package for packages in check["loads"].values() for package in packages})
    yield Measured(f"loads {', '.join(loaded) or 'no engine'}", "duckdb" not in loaded)


def first_query(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """Q1 beside plain DuckDB."""
    for contest in at_one_million(results, "Q1"):
        yield at_most("plain +", contest["dpsql"]["ms"][0] - contest["plain"]["ms"][0], 8, " ms at 1 M")
    yield from at_fifty_million(results, "Q1", 1.3)


def second_query(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """Q2 beside plain DuckDB."""
    for contest in at_one_million(results, "Q2"):
        yield at_most("plain +", contest["dpsql"]["ms"][0] - contest["plain"]["ms"][0], 10, " ms at 1 M")
    yield from at_fifty_million(results, "Q2", 1.5)


def at_one_million(results: Mapping[str, Figures], *queries: str) -> Iterator[Figures]:
    """Contests of these queries, if they are of the size that the targets speak of."""
    measured = results["queries"]
    for query in queries if measured["rows"]["people"] == MILLION else ():
        yield {"query": query} | measured["queries"][query]


def at_fifty_million(results: Mapping[str, Figures], query: str, limit: float) -> Iterator[Measured]:
    """A query beside plain DuckDB over 50 M rows, in each layout that was measured."""
    for row in results["growth"]["rows"]:
        if row["query"] == query and row["rows"] == 50 * MILLION:
            yield at_most(f"50 M {row['layout']}", row["times"]["dpsql"]["over"]["plain"][0], limit, " ×")


def floors(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """Q3 and Q5 beside the per-person floor."""
    for contest in at_one_million(results, "Q3", "Q5"):
        yield at_most(contest["query"], contest["dpsql"]["over"]["floor"][0], 1.2, " ×")


def fourth_query(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """Q4 beside its floor, and sampling beside it."""
    for contest in at_one_million(results, "Q4"):
        yield at_most("floor", contest["dpsql"]["over"]["floor"][0], 1.8, " ×")
        yield at_least("sampling is", contest["sampling"]["over"]["dpsql"][0], 3, " × slower")


def prepared(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """Queries about people over prepared tables beside plain DuckDB."""
    figures = results["prepared"]
    for size in figures["persons"]:
        for name, row in size["queries"].items():
            if size["people"] == MILLION:
                more = row["prepared"]["ms"][0] - row["plain"]["ms"][0]
                yield Measured(f"{name}: plain {more:+.1f} ms at 5 M", more <= 8)
            else:
                yield at_most(
                    f"{name}, {size['orders'] / MILLION:.0f} M", row["prepared"]["over"]["plain"][0], 1.1, " ×"
                )
    for name, row in figures["tpch"]["queries"].items() if figures["tpch"]["scale"] == "1" else ():
        yield at_most(f"TPC-H {name}", row["prepared"]["over"]["plain"][0], 2.5 if name == "q01" else 1.5, " ×")


def peers(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """The fastest answer of another system, and how many take ten times as long as ours."""
    ratios = [
        answer["over"]["dpsql"][0]
        for peer in results["peers"]["peers"].values()
        for answer in peer["queries"].values()
        if "over" in answer
    ]
    if ratios and results["peers"]["rows"]["people"] >= MILLION / 10:
        yield at_least(f"{len(ratios)} answers of peers, the fastest", min(ratios), 1, " ×")
        share = sum(ratio >= 10 for ratio in ratios)
        yield Measured(f"{share} of them at least 10 ×", 2 * share > len(ratios))


def noise(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """The slowest rate of each family."""
    for family, wanted in (("laplace", 3), ("gaussian", 1)):
        rates = [row["per_second"] / MILLION for row in results["samplers"]["rows"] if row["family"] == family]
        yield at_least(f"{family} at least", min(rates), wanted, " M/s")


def many_groups(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """What a million groups take beyond the engine."""
    for row in results["growth"]["groups"]["sizes"]:
        if row["groups"] == MILLION:
            beyond = row["times"]["dpsql"]["ms"][0] - row["times"]["engine"]["ms"][0]
            yield at_most("1 M groups:", beyond / 1e3, 0.8, " s beyond the engine")


def ledger(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """Charges of eight processes, and what a race admits."""
    for name, row in results["ledger"]["charges"].items():
        if name.startswith("8 "):
            yield at_least(f"{name}:", row["per_second"], 500, " charges a second")
        if name.startswith("race"):
            yield Measured(f"race for 1,000: {row['admitted']:,} admitted", row["admitted"] == 1000)


def memory(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """What is added to plain DuckDB as data grow, and the most that is taken."""
    peaks = results["memory"]["peaks"]
    for query, unit in (("Q2", "rows"), ("Q3", "persons"), ("groups", "groups")):
        of_query: Sequence[Figures] = [row for row in peaks if row["query"] == query]
        if len(of_query) > 1:
            least, most = of_query[0]["added_mb"], of_query[-1]["added_mb"]
            text = f"{of_query[0]['size']:,} → {of_query[-1]['size']:,} {unit}: +{least:,.0f} → +{most:,.0f} MB"
            yield Measured(text, query == "groups" or most - least <= 64)

    largest = max((row for row in peaks if row["query"] == "Q2"), key=lambda row: row["size"])
    yield Measured(f"Parquet of {largest['size']:,} rows: {largest['dpsql_mb']:,.0f} MB in all", True)


def undeclared(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """The worst of the rows whose limit is found, by what each should reach, and the made-up sets."""
    figures = results["limits"]
    rows = {r["row"]: r["ways"] for r in figures["tpch"] if r["epsilon"] == MIDDLE}
    for names, limit in ((("Q3", "Q10", "Q18", "Q12"), 0.01), (("Q11", "Q20"), 0.03)):
        error, name = max((rows[name]["dpsql"]["p50"], name) for name in names)
        yield at_most(f"{name}", error, limit, " %")
    ratio, name = max((ways["dpsql"]["p99.5"] / ways["oracle"]["p90"], name) for name, ways in rows.items())
    yield at_most(f"p99.5 / the oracle's p90 ({name})", ratio, 10)
    (over,) = (r["over_oracle"]["dpsql"] for r in figures["made_up"] if r["epsilon"] == MIDDLE)
    yield at_most("made-up sets", over, 5, " × the oracle")


def paces(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """A query with a search beside the same one whose limit is declared."""
    for name, limit in (("ungrouped", 1.3), ("grouped", 1.6)):
        yield at_most(name, results["limits"]["paces"][name]["search"]["over"]["declared"][0], limit, " ×")


def quantiles(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """Where another system's quantiles are better in rows, and what one takes beside a COUNT."""
    figures = results["quantiles"]
    for other, said in sorted(verdicts(figures, "rank").items()):
        yield Measured(f"behind {other} in {len(said['behind'])} of {sum(map(len, said.values()))}", not said["behind"])
    for name, each in figures["paces"]["times"].items():
        yield at_most(name, each["median"]["over"]["count"][0], 1.8, " × COUNT")
    yield at_most(f"{figures['many']['cells']:,} cells", figures["many"]["seconds"], 5, " s")


def dashboards(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """The least error of other ways beside batch and summary, and how true their own ± is."""
    cases = results["dashboards"]["cases"]
    for case in (case for case in cases if case["queries"] >= 1_000):
        least, name = min((case[name]["rms"], name) for name in CONTESTANTS if name not in OWN and name in case)
        worst = max(case[own]["rms"] for own in OWN)
        if least <= worst:
            where = f"{case['set']}, {case['queries']:,} at {case['price']}"
            yield Measured(f"{where}: {name} {number(least)} rows, ours {number(worst)}", False)
    apart = max(abs(case[own]["ratio"] - 1) for case in cases for own in OWN)
    yield at_most("variance seen / predicted off by", 100 * apart, 5, " %")


def growth(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """The fitted exponents of time over rows, and planning over rows."""
    for fitted in results["growth"]["fits"]:
        if fitted["contestant"] == "dpsql" and fitted["exponent"] is not None:
            name = f"{fitted['query']} {fitted['layout']}: rows to the power of"
            yield at_most(name, fitted["exponent"], 1.1)
    for query in ("Q1", "Q2"):
        plans = [r["plan_ms"] for r in results["growth"]["rows"] if r["query"] == query and r["layout"] == "native"]
        yield at_most(f"planning {query}, most rows / fewest", plans[-1] / plans[0], 1.5, " ×")


def server(results: Mapping[str, Figures]) -> Iterator[Measured]:
    """A server beside the same in process, and what its times tell."""
    figures = results["server"]
    yield at_most("stored", figures["stored"]["over TLS"]["over"]["in process"][0], 1.3, " × in process")
    yield at_least("two workers", figures["fresh"]["over"][0][0], 0.75 * min(figures["cores"], 2), " × one")
    for count, each in figures["memory"].items():
        yield at_most(f"{count} open", each, 300, " KiB each")
    apart = [kind for kind, own in figures["times"].items() if own["different"]]
    yield Measured(f"told apart: {', '.join(apart) or 'none'}", not apart)
    missed = [kind for kind, own in figures["broken"].items() if "stored answer," in kind or "reads" in kind]
    yield Measured("broken servers are found", all(figures["broken"][kind]["different"] for kind in missed))


TARGETS: tuple[tuple[str, str, tuple[str, ...], Found], ...] = (
    (
        "from text to plan, warm",
        "processor time: five tables ≤ 3 ms, a COUNT ≤ 0.8 ms; `dpsql check` on 1,000 files ≤ 3 s; no engine imported",
        ("planning",),
        planning,
    ),
    ("Q1 / plain DuckDB", "≤ plain + 8 ms at 1 M rows, ≤ 1.3 × at 50 M", ("queries", "growth"), first_query),
    ("Q2 / plain DuckDB", "≤ plain + 10 ms at 1 M rows, ≤ 1.5 × at 50 M", ("queries", "growth"), second_query),
    ("Q3, Q5 / per-person floor", "≤ 1.2 ×", ("queries",), floors),
    ("Q4", "≤ 1.8 × the two-level floor; ROW_NUMBER sampling ≥ 3 × slower", ("queries",), fourth_query),
    (
        "prepared tables / plain DuckDB",
        "≤ plain + 8 ms at 5 M rows, ≤ 1.1 × at 50 M; TPC-H at scale 1 ≤ 1.5 ×, Q1 ≤ 2.5 ×",
        ("prepared",),
        prepared,
    ),
    ("other systems", "faster on every query, ≥ 10 × on most", ("peers",), peers),
    ("noise", "≥ 3 M discrete Laplace, ≥ 1 M discrete Gaussian a second, to scale 2⁵⁰", ("samplers",), noise),
    ("many groups", "1 M groups in ≤ 0.8 s beyond the engine", ("growth",), many_groups),
    ("ledger", "≥ 500 durable charges a second from 8 processes, never one too many", ("ledger",), ledger),
    (
        "memory",
        "grows with groups, not with rows; Parquet of 100 M rows within DuckDB's default limits",
        ("memory",),
        memory,
    ),
    (
        "error without a declared limit, ε = 0.8",
        "TPC-H ≤ 0.01 % on Q3, Q10, Q18, Q12, ≤ 0.03 % on Q11, Q20; p99.5 ≤ 10 × the oracle's p90; made-up sets ≤ 5 ×",
        ("limits",),
        undeclared,
    ),
    ("search and release / declared limit", "≤ 1.3 × ungrouped, ≤ 1.6 × grouped", ("limits",), paces),
    (
        "quantiles, from 1,000 rows on",
        "in rows never worse than another system's; a median ≤ 1.8 × COUNT per person; a million cells ≤ 5 s",
        ("quantiles",),
        quantiles,
    ),
    (
        "counts of a dashboard",
        "batch and summary ahead of every other way at 1,000 and 10,000; variances within 5 % of the predicted",
        ("dashboards",),
        dashboards,
    ),
    (
        "a server under TLS",
        "stored answers ≤ 1.3 × in process; fresh ones scale with workers to the cores; ≤ 300 KiB a connection; times "
        "tell of no private rows and of no other's run",
        ("server",),
        server,
    ),
    ("growth", "linear in rows; planning independent of rows", ("growth",), growth),
)
"""What, the target, the benchmarks it needs, and how it is read from their figures."""


def markdown(results: Mapping[str, Figures]) -> str:
    """The table: each target with what was measured. results: benchmark → its report."""
    figures = {name: report["figures"] for name, report in results.items() if report["size"] != "quick"}
    rows = []
    for what, wanted, needed, found in TARGETS:
        measured = list(found(figures)) if set(needed) <= figures.keys() else []
        cells = "; ".join(m.text if m.met else f"**{m.text}**" for m in measured) or "not measured"
        verdict = ("met" if all(m.met for m in measured) else "**missed**") if measured else "–"
        rows.append((what, wanted, cells, verdict))
    return table(("", "target", "measured", ""), rows, left=4)
