"""`make proofs`: compiles the proofs, and compares what the planner claims with what Coq derives.

1. All files compile, and what the heads of the core cite rests on nothing else (`Print Assumptions`).
2. Plans of every operator give the rows that DuckDB gives, and weights what the emitted SQL does (evaluated.py).
3. Each claim of the fixtures' plans, of random plans, and of what the rules' tests derive (recorded.py) is covered by
   what `derive` finds: equal or less. Those that are not stand in refused.txt, each with its reason.
4. No fewer claims, operators or rules are printed than printed.txt says: a printer of nothing would find no mistake.

--update rewrites both files; a reason that is missing is written as `?`, which the quick test refuses.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic

from dpsql.diagnostics.errors import Rejected
from tests.fixtures.cases import files, outcome_of, policy
from tests.proofs import compiled, evaluated
from tests.proofs.heads import cited, heads
from tests.proofs.printed import Claim, Numbers, Printed, Printer
from tests.proofs.recorded import of_tests
from tests.support.operator_databases import operator_world
from tests.support.operator_oracle import Bench, Seen, Store
from tests.support.random_plans import Plans

REFUSED = compiled.FOLDER / "refused.txt"
COUNTS = compiled.FOLDER / "printed.txt"
WORLDS, PLANS_PER_WORLD = 30, 25
MISSING = f"make proofs: no coqc {compiled.VERSION} (on Debian 12: apt-get install --no-install-recommends coq)"


def of_fixtures() -> Printed:
    """What the plans of tests/fixtures claim."""
    found = Printed()
    for file in files():
        for case in file.cases:
            plan = outcome_of(case)
            if not isinstance(plan, tuple):
                found.add_releases(plan.tree, policy(case.settings["policy"]), plan.basis.public)
    return found


def of_random_plans(
    worlds: Iterable[int] = range(WORLDS), replaced: bool | None = False, printer: type[Printer] | None = None
) -> Printed:
    """What random plans claim, those of the rules' own attack: tests/deep/core/analysis/test_operators.py."""
    found, store, seen = Printed(printer), Store(), Seen()
    for seed in worlds:
        rng = random.Random(seed)
        databases = operator_world(rng, replaced)
        bench, plans = Bench(store, databases), Plans(rng, databases)
        for _ in range(PLANS_PER_WORLD):
            plans.look_at()
            try:
                tree = bench.relation(plans.tree(rng.randint(1, 4), lambda n: bench.accepts(n, seen)))  # noqa: B023
            except Rejected:
                continue
            found.add(tree, databases.world.policy, measured(bench))
    store.close()
    return found


def measured(bench: Bench) -> Numbers:
    """What was counted in public tables so far."""
    return bench.compiled(lambda ctx: dict(ctx.public.numbers))  # type: ignore[no-any-return]


# --- files -----------------------------------------------------------------------------------------------------------


def read_refused(text: str) -> list[tuple[str, str]]:
    """(reason, claim) of each line."""
    return [(reason, claim) for line in text.splitlines() if line for reason, _, claim in [line.partition(": (")]]


def read_counts(text: str) -> Counter[str]:
    """`name: number` lines."""
    return Counter({name: int(number) for name, _, number in (line.rpartition(": ") for line in text.splitlines())})


def counted(parts: Sequence[tuple[str, Printed]]) -> Counter[str]:
    """How much was printed: claims, operators, rules, tables."""
    found: Counter[str] = Counter()
    for name, printed in parts:
        found[f"{name}, claims"] = len(printed.claims)
        found.update({f"{name}, {what}": number for what, number in printed.counts.items()})
        found.update(f"{name}, rule {claim.rule}" for claim in printed.claims)
    return found


def refused_claims(claims: Sequence[Claim], folder: Path = compiled.BUILT) -> list[Claim]:
    """Those that Coq does not derive, each once."""
    different = list({claim.text: claim for claim in claims}.values())
    return [different[i] for i in compiled.refused([claim.text for claim in different], folder)]


# --- the whole -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all is as it should be, or Coq is not there and nobody requires it."""
    parser = argparse.ArgumentParser(prog="make proofs")
    parser.add_argument("--update", action="store_true", help="rewrite refused.txt and printed.txt")
    options = parser.parse_args(arguments)
    if not compiled.coq():
        print(MISSING, file=sys.stderr)
        return int(os.environ.get("DPSQL_PROOFS") == "required")
    try:
        return _run(options.update)
    except compiled.ProofError as error:
        print(f"make proofs: {error}", file=sys.stderr)
        return 1


def _run(update: bool) -> int:
    problems, begun = [], monotonic()
    done = compiled.compile_all()
    print(f"{len(compiled.FILES)} files, {len(done)} of them compiled anew: {monotonic() - begun:.0f} s", flush=True)

    lemmas = sorted({lemma for head in heads().values() for lemma in cited(head)})
    resting = compiled.assumptions(lemmas)
    problems += [f"what is cited rests on {resting}"] if resting else []
    print(f"{len(lemmas)} lemmas cited: {resting or compiled.CLOSED} ({monotonic() - begun:.0f} s)", flush=True)

    begun, plans, weights = monotonic(), evaluated.cases(), evaluated.weights()
    other = evaluated.different(plans), evaluated.other_weights(weights)
    problems += [f"Coq and DuckDB give other rows: {name}" for name in other[0]]
    problems += [f"Coq and the emitted SQL weigh otherwise: {formula}" for formula in other[1][:10]]
    print(
        f"{len(plans)} plans and {len(weights)} weights compared with DuckDB: {monotonic() - begun:.0f} s", flush=True
    )
    if not evaluated.twin():
        problems.append("that NULL equals NULL changes no plan's rows")

    begun = monotonic()
    parts = [("fixtures", of_fixtures()), ("random plans", of_random_plans()), ("tests of the rules", of_tests())]
    print(f"plans made and printed: {monotonic() - begun:.0f} s", flush=True)
    begun, not_derived = monotonic(), []
    for name, printed in parts:
        found = refused_claims(printed.claims)
        not_derived += found
        different = len({claim.text for claim in printed.claims})
        print(f"{name}: {len(printed.claims)} claims, {different} different, {len(found)} refused", flush=True)
        for why, number in printed.left_out.most_common():
            print(f"  not printed: {number}, {why}")
    print(f"checked: {monotonic() - begun:.0f} s", flush=True)

    known = {claim: reason for reason, claim in read_refused(REFUSED.read_text(encoding="utf-8"))}
    now = {claim.text.removeprefix("("): claim.rule for claim in not_derived}
    counts = counted(parts)
    if update:
        lines = [f"{known.get(text, f'? {rule}')}: ({text}" for text, rule in now.items()]
        REFUSED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        COUNTS.write_text("".join(f"{name}: {counts[name]}\n" for name in sorted(counts)), encoding="utf-8")
        return 0
    problems += [f"claimed, and not proved, by {rule}: ({text}" for text, rule in now.items() if text not in known]
    problems += [f"refused.txt lists what is proved now, or gone: ({text}" for text in known if text not in now]
    for name, least in read_counts(COUNTS.read_text(encoding="utf-8")).items():
        if counts[name] < least:
            problems.append(f"{name}: {counts[name]} are printed, {least} were (--update, if that is meant)")
    for problem in problems:
        print(f"make proofs: {problem}", file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
