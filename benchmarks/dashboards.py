"""Error of counts within one price: dpsql's batch and summary beside one by one, GROUP BYs, and others' mechanisms.

    python -m benchmarks.dashboards [--size short] [--json FILE]

`short` has Private-PGM, whose fit takes a minute, from 1,000 counts on.

Counts of one to three columns with =, ranges and IN, drawn once from a fixed seed, over real flights and a made-up
census. All contestants have the same price for all counts together, ρ = 0.005 or ε = 1, and a repeated count is free.

One by one and GROUP BYs at equal parts of the price: the exact deviations, GROUP BYs over the same classes of values as
the batch. Batch and summary (all marginals of three columns): dpsql's own design, samplers and least squares, without
the data, which their error does not depend on; beside them one run of the whole product. Private-PGM fits a graphical
model to the marginals of the batch, with the batch's noise. MWEM and PMW-Bypass: multiplicative_weights.py.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dpsql
from benchmarks.dashboard_sets import Array, Question, Table, census, flights
from benchmarks.frame import Figures, Settings, command, number, table, versions
from benchmarks.multiplicative_weights import Answers, Bypass, Price, mwem, pmw_bypass
from benchmarks.peers.environments import HERE, NotInstalled, environment, python_of
from dpsql.core.noise.mechanisms.mechanism import Mechanism
from dpsql.planner.batch.estimate import Measured
from dpsql.planner.batch.quantities import ROWS
from dpsql.planner.batch.workload import Marginal, Number
from dpsql.service.batches.batch import _grain, _noise
from dpsql.service.session import Session

TITLE = "Dashboards"
PRICES = {"ρ = 0.005": Price(0.005, True), "ε = 1": Price(1.0, False)}
OWN = ("batch", "summary")
CONTESTANTS = ("one by one", "GROUP BYs", "batch", "summary", "PMW-Bypass", "MWEM", "private-PGM")
_HEAD = ("", "price", "counts")
_PRODUCT = {
    "batch": "batch, error",
    "batch_predicted": "predicted",
    "batch_seconds": "all of it, s",
    "summary": "summary, error",
    "summary_seconds": "made, s",
    "summary_query_ms": "a count, ms",
}
_STEPS = (50, 3_000, 10_000)
"""Of the fit of Private-PGM, by the size."""
_ROUNDS = (10, 30)
"""Of MWEM."""
_CHUNK, _SEEN = 250, 500
"""Counts whose errors of batch and summary are drawn, so many at a time: the first ones, as all are drawn alike."""
_WHOLE = 50
"""Queries that are asked of a summary through the whole product."""


@dataclass(frozen=True, slots=True)
class Release:
    """What is measured once for all queries: by dpsql's design, without the data."""

    measured: Measured
    mechanisms: Mapping[Marginal, tuple[Mechanism, float]]
    numbers: Sequence[Number]

    def errors(self, draws: int) -> tuple[Array, Array]:
        """Of each draw the mean square error of all queries; of each query its predicted variance."""
        noise = {m: self.noise(m, draws) for m in self.mechanisms}
        variance = np.concatenate([np.full(n.shape[1], self.measured.noise[m].variance) for m, n in noise.items()])
        drawn, squares, predicted = np.concatenate(list(noise.values()), axis=1), np.zeros(draws), list[Array]()
        for start in range(0, len(self.numbers), _CHUNK):
            rows = [self.measured.coefficients(n) for n in self.numbers[start : start + _CHUNK]]
            weights = np.array([np.concatenate([row[m].ravel() for m in noise]) for row in rows])
            squares += ((weights @ drawn.T) ** 2).sum(axis=0)
            predicted.append((weights**2) @ variance)
        return squares / len(self.numbers), np.concatenate(predicted)

    def noise(self, marginal: Marginal, draws: int) -> Array:
        """By dpsql's own sampler: for each draw and cell."""
        mechanism, grain = self.mechanisms[marginal]
        size = math.prod(self.measured.sizes[c] for c in marginal)
        drawn = np.array(mechanism.add_noise([0] * (size * draws)), dtype=float)  # type: ignore[attr-defined]
        return drawn.reshape(draws, size) * grain


def amount(price: Price) -> dict[str, str]:
    """As `run` takes it."""
    return {"rho" if price.gaussian else "epsilon": str(price.amount)}


def batch_of(con: Session, asked: Sequence[Question], price: Price) -> tuple[Release, Figures, Mapping[int, int]]:
    """What a batch measures; what stored GROUP BYs over its classes would err by, squared; its columns."""
    batch = con.batch([f"SELECT COUNT(*) AS n FROM t WHERE {q.where}" for q in asked])
    plan, design = batch.plan(**amount(price)), batch.design
    numbers = [of.numbers[0][0] for of in design.tables.values()]
    made = dict(zip([m for _, m, _ in design.measured], plan.releases, strict=True))
    mechanisms = {m: (r.measured.measurements[0].mechanism, float(_grain(r))) for m, r in made.items()}
    release = Release(batch._measured(plan.releases)[ROWS], mechanisms, numbers[:_SEEN])
    sets = len({n.columns for n in numbers})
    grouped = statistics.fmean(float(n.weights.sum()) for n in numbers) * price.deviation(1 / sets) ** 2
    names = list(con.policy.tables["t"].columns)
    places = {uid: names.index(c.name) for uid, c in design.classes.items()}
    return release, {"grouped": math.sqrt(grouped), "classes": sum(design.sizes.values())}, places


def summary_of(con: Session, of: Table, asked: Sequence[Question], price: Price) -> Release:
    """What a summary of all columns measures."""
    begun = con.summary("board", "t", list(of.columns), k=3).begun(*_amounts(price))
    made = {m: plan.releases[0] for m, plan in begun.plans.items()}
    mechanisms = {m: (r.measured.measurements[0].mechanism, float(_grain(r))) for m, r in made.items()}
    measured = Measured({m: _noise(r) for m, r in made.items()}, begun.design.sizes)
    sizes = [begun.design.sizes[i] for i in range(len(of.columns))]  # after the listed values, a class of all others
    return Release(measured, mechanisms, [q.number(sizes) for q in asked[:_SEEN]])


def _amounts(price: Price) -> tuple[str | None, str | None]:
    given = amount(price)
    return given.get("epsilon"), given.get("rho")


def seen(release: Release, draws: int) -> Figures:
    """The error of a release, and how its variance differs from what it predicts."""
    squares, predicted = release.errors(draws)
    mean, told = float(squares.mean()), float(predicted.mean())
    spread = float(squares.std(ddof=1)) / math.sqrt(draws)
    return {"rms": math.sqrt(mean), "predicted": math.sqrt(told), "ratio": mean / told, "ratio_by": spread / told}


def compared(of: Table, count: int, price: Price, settings: Settings, folder: Path, without: Figures) -> Figures:
    """All contestants in one case."""
    asked = of.questions(count)
    truth = Answers(of, asked)(of.cells)
    draws = settings.pick(20, 200, 1_000)
    rng = np.random.default_rng()
    found: Figures = {"distinct": len(set(asked))}
    found["one by one"] = {"rms": price.deviation(1 / len(set(asked)))}
    place = folder / "policy.yaml"
    place.write_text(of.policy(price.gaussian), encoding="utf-8")
    with dpsql.connect(place, ledger=":memory:") as con:
        begun = time.process_time()
        release, figures, places = batch_of(con, asked, price)
        found["GROUP BYs"] = {"rms": figures["grouped"]}
        found["batch"] = {"seconds": time.process_time() - begun} | seen(release, draws)
        begun = time.process_time()
        summary = summary_of(con, of, asked, price)
        found["summary"] = {"seconds": time.process_time() - begun} | seen(summary, draws)
    if settings.size == "full" or (count <= 1_000 and price.gaussian):
        found["product"] = whole(place, of, asked, truth, price)
    begun = time.process_time()
    tries = [
        (rms(mwem(of, asked, truth, price, t, rng) - truth), {"rounds": t}) for t in _ROUNDS[: settings.pick(1, 2, 2)]
    ]
    best = min(tries, key=lambda each: each[0])
    found["MWEM"] = {"rms": best[0], **best[1], "seconds": (time.process_time() - begun) / len(tries)}
    begun, tries = time.process_time(), []
    for how in bypasses(len(set(asked)))[: settings.pick(1, 4, 16)]:
        answers, came = pmw_bypass(of, asked, truth, price, how, rng)
        tries.append(
            (
                rms(answers - truth),
                {"came": came, "share": how.share * len(set(asked)), "ready": how.ready, "rate": how.rate},
            )
        )
    best = min(tries, key=lambda each: each[0])
    asking = min((error for error, how in tries if how["came"]["histogram"]), default=None)
    found["PMW-Bypass"] = {
        "rms": best[0], **best[1], "asking": asking, "seconds": (time.process_time() - begun) / len(tries)
    }  # fmt: skip
    if settings.size == "short" and count < 1_000:  # a fit takes a minute
        return found
    try:
        begun = _of_children()
        errors = graphical(of, asked, truth, release, places, settings)
        found["private-PGM"] = {"rms": rms(errors), "seconds": (_of_children() - begun) / len(errors)}
        found["private-PGM"]["iterations"] = settings.pick(*_STEPS)
    except NotInstalled as reason:
        without["private-PGM"] = str(reason)
    return found


def _of_children() -> float:
    """Processor seconds of the processes that were started."""
    return os.times().children_user + os.times().children_system


def rms(errors: Array) -> float:
    """The root of the mean square."""
    return math.sqrt(float((errors**2).mean()))


def bypasses(distinct: int) -> list[Bypass]:
    """Settings of PMW-Bypass: what one count costs, from an equal part of the price on."""
    kinds = [(1, 100), (4, 10), (16, 10), (4, 2), (1, 10), (4, 100), (16, 2), (1, 2)]
    return [Bypass(min(1, part / distinct), rate, ready) for rate in (0.2, 0.05) for part, ready in kinds]


def whole(place: Path, of: Table, asked: Sequence[Question], truth: Array, price: Price) -> Figures:
    """One run of everything: policy, ledger, SQL, noise, answers."""
    texts = [f"SELECT COUNT(*) AS n FROM t WHERE {q.where}" for q in asked]
    with dpsql.connect(place, ledger=":memory:") as con:
        begun = time.process_time()
        answers = con.batch(texts).run(**amount(price))
        found: Figures = {"batch_seconds": time.process_time() - begun}
        found["batch"] = rms(np.array([a.rows[0][0] for a in answers], dtype=float) - truth)
        found["batch_predicted"] = answers.predicted_error
    with dpsql.connect(place, ledger=":memory:") as con:
        begun = time.process_time()
        con.summary("board", "t", list(of.columns), k=3).run(**amount(price))
        found["summary_seconds"] = time.process_time() - begun
        begun, told = time.process_time(), []
        for text in texts[:_WHOLE]:
            answer = con.sql(text).run(**dict.fromkeys(amount(price), "0.0000001"))
            assert any(note.startswith("from summary board") for note in answer.notes), answer.notes
            told.append(answer.rows[0][0])
        found["summary_query_ms"] = 1e3 * (time.process_time() - begun) / len(told)
        found["summary"] = rms(np.array(told, dtype=float) - truth[: len(told)])
    return found


def graphical(
    of: Table, asked: Sequence[Question], truth: Array, release: Release, places: Mapping[int, int], settings: Settings
) -> Array:
    """Errors of a graphical model of the batch's marginals, for each draw and query. Raises NotInstalled."""
    python = python_of("private_pgm", settings.folder / "peers")
    draws = settings.pick(1, 1, 5)
    given: dict[str, object] = {
        "sizes": np.array(of.sizes),
        "draws": draws,
        "iterations": settings.pick(*_STEPS),
    }
    for marginal, (mechanism, grain) in release.mechanisms.items():
        columns = tuple(sorted(places[uid] for uid in marginal))
        name = ",".join(map(str, columns))
        cells = of.marginal(columns)
        given[f"sigma {name}"] = math.sqrt(release.measured.noise[marginal].variance)
        for draw in range(draws):
            noise = mechanism.add_noise([0] * cells.size)  # type: ignore[attr-defined]
            given[f"noisy {draw} {name}"] = cells + np.array(noise, dtype=float).reshape(cells.shape) * grain
    sets = {q.columns for q in asked}
    given["wanted"] = np.array([",".join(map(str, columns)) for columns in sets])
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **given)  # type: ignore[arg-type]
        script = HERE / "private_pgm" / "dashboards.py"
        said = subprocess.run([python, script, source, target], capture_output=True, text=True, env=environment())
        if said.returncode:
            raise NotInstalled(f"failed: {(said.stderr.splitlines() or ['no reason given'])[-1]}")
        told = np.load(target)
        return np.array([
            [float((told[f"{draw} {','.join(map(str, q.columns))}"] * q.number(of.sizes).weights).sum()) for q in asked]
            for draw in range(draws)
        ]) - truth  # fmt: skip


def run(settings: Settings) -> Figures:
    """Measure."""
    found: Figures = {"versions": versions(("dpsql", "duckdb", "numpy")), "sets": {}, "cases": [], "without": {}}
    with tempfile.TemporaryDirectory() as folder:
        for of in (flights(settings.folder), census(settings.folder)):
            found["sets"][of.name] = {"rows": int(of.cells.sum()), "cells": of.cells.size}
            for count in settings.pick((100,), (100, 1_000, 10_000), (100, 1_000, 10_000)):
                for named, price in PRICES.items():
                    case = compared(of, count, price, settings, Path(folder), found["without"])
                    found["cases"].append({"set": of.name, "queries": count, "price": named, **case})
    return found


def markdown(figures: Figures) -> str:
    """The tables."""
    cases = figures["cases"]
    sets = "; ".join(f"{name} {s['rows']:,} rows, {s['cells']:,} cells" for name, s in figures["sets"].items())
    timed, whole_run = ("batch", "summary", *CONTESTANTS[4:]), [case for case in cases if "product" in case]
    parts = [
        f"Root of the mean square error of a count, in rows; all counts of a line share the price. {sets}; the census "
        "is made up. Bold: the least.",
        table(_HEAD + CONTESTANTS, [_line(case) for case in cases], left=2),
        "MWEM and PMW-Bypass are shown with the best of several settings, and take the number of rows as known. MWEM's "
        "error is bias for the most part: cells that no query corrected stay as they were guessed. "
        + _of_histograms(cases),
        "Private-PGM is fitted to the same noisy marginals as the batch, and lets no cell be less than nothing. That "
        "helps where most cells are empty, as in the census, and takes a minute; its answers are biased, and none has "
        "a ± of its own. Where it was not run there is a dash. More steps of its fit may leave less error; it had "
        + ", ".join(f"{c['private-PGM']['iterations']:,} ({c['set']})" for c in cases if "private-PGM" in c)
        + ".",
        *(f"{name} is missing: {reason}." for name, reason in figures["without"].items()),
        "The variance that was seen over the variance that was predicted, ± two standard errors, and processor "
        "seconds: of batch and summary to design what is measured, for all counts; of the others one run.",
        table(
            (*_HEAD, "batch", "summary", *(f"{name}, s" for name in timed)),
            [
                _key(case)
                + [_ratio(case["batch"]), _ratio(case["summary"])]
                + [number(case.get(name, {}).get("seconds")) for name in timed]
                for case in cases
            ],
            left=2,
        ),
        f"One run of the whole product; of the summary its first {_WHOLE} counts:",
        table(
            (*_HEAD, *_PRODUCT.values()),
            [_key(case) + [number(case["product"][name]) for name in _PRODUCT] for case in whole_run],
            left=2,
        ),
    ]
    return "\n\n".join(parts)


def _key(case: Figures) -> list[str]:
    return [case["set"], case["price"], f"{case['queries']:,}"]


def _line(case: Figures) -> list[str]:
    errors = [case[name]["rms"] if name in case else None for name in CONTESTANTS]
    least = min(e for e in errors if e is not None)
    shown = ["–" if e is None else f"**{e:,.0f}**" if e == least else f"{e:,.0f}" for e in errors]
    return _key(case) + shown


def _of_histograms(cases: Sequence[Figures]) -> str:
    bypassed = sum(not case["PMW-Bypass"]["came"]["histogram"] for case in cases)
    asking = [case["PMW-Bypass"]["asking"] for case in cases if case["PMW-Bypass"].get("asking")]
    told = (
        f"In {bypassed} of {len(cases)} lines the best setting of PMW-Bypass never takes an answer from its histogram"
    )
    if asking:
        told += f"; the settings that do err by {min(asking):,.0f} to {max(asking):,.0f} rows"
    return told + "."


def _ratio(of: Figures) -> str:
    return f"{of['ratio']:.3f} ± {2 * of['ratio_by']:.3f}"


if __name__ == "__main__":
    command(__doc__, "dashboards", run, markdown)
