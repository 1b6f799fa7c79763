"""`dpsql demo`: a small clinic's database and policy in a folder of its own, and five queries on it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from dpsql.api.connection import Connection, connect
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.render import render_text
from dpsql.faces.cli.answer_text import footer_of, print_answer
from dpsql.faces.cli.commands.budgets.budget import print_budget, read_accounts
from dpsql.faces.cli.commands.queries.query import left_after
from dpsql.faces.cli.exits import wants_color
from dpsql.faces.cli.options import Format
from dpsql.service.accounts.ledgers import place_of

POLICY, DATABASE, SCRIPT = "clinic.yaml", "clinic.duckdb", "clinic.sql"
LEDGER, HEAD = "clinic.ledger.sqlite", "clinic.ledger.head"
MADE_HERE = frozenset(
    {POLICY, DATABASE, f"{DATABASE}.wal", LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", f"{LEDGER}-journal"}
    | {HEAD, f"{HEAD}.new", f"{HEAD}.lock", f"{LEDGER}.answers"}
    | {f"{LEDGER}.answers{end}" for end in ("-wal", "-shm", "-journal")}
    | {"users.yaml", "audit.jsonl"}  # of `make serve`
)
ANALYST = "ana"


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One stop of the walk: what is asked and why it is interesting."""

    title: str
    remark: str
    sql: str
    explain: bool = False
    refused: bool = False


COSTS = """SELECT region, COUNT(*) AS visits, AVG(cost) AS mean_cost
FROM visits JOIN patients USING (patient_id) JOIN icd10 USING (code)
WHERE chapter = 'lungs'
GROUP BY region
ORDER BY region"""

STEPS = (
    DemoStep(
        "A count",
        "Noise hides whether any one patient is in the table; ± says how much of it there is.",
        "SELECT COUNT(*) AS patients FROM patients WHERE age >= 65",
    ),
    DemoStep(
        "Averages by group, over joins",
        "One patient has many visits, so all of them together are hidden: at most 12 are counted. The regions are a\n"
        "public list, so each of them is shown.",
        COSTS,
    ),
    DemoStep(
        "Groups that are private themselves",
        "No list of towns is public. A town shows only if its noisy number of patients is large enough, which costs\n"
        "δ; one place with three patients stays hidden.",
        "SELECT town, COUNT(*) AS patients FROM patients GROUP BY town ORDER BY patients DESC",
    ),
    DemoStep(
        "A query that is refused",
        "One patient decides what the largest cost is, and no noise hides who. Nothing runs, nothing is spent.",
        "SELECT ward, MAX(cost) AS largest\nFROM visits\nGROUP BY ward",
        refused=True,
    ),
    DemoStep(
        "How the second query was answered",
        "EXPLAIN shows for each step how far one patient can move its rows, and the noise that follows. It is free.",
        COSTS,
        explain=True,
    ),
)


def run(directory: str) -> int:
    """Raises dpsql.Error."""
    folder = Path(directory)
    prepare(folder)
    policy = folder / POLICY
    print(f"Made {folder / DATABASE} (20,000 patients and their visits, all invented) and {policy}.")
    with connect(policy, analyst=ANALYST) as connection:
        for number, step in enumerate(STEPS, 1):
            walk(connection, number, step)
        _heading("What has been spent")
        loaded = connection.policy
        accounts, entries = read_accounts(loaded, connection.ledger, None)
        print_budget(loaded, accounts, None, place_of(loaded), len(entries))
    _next_steps(policy)
    return 0


def walk(connection: Connection, number: int, step: DemoStep) -> None:
    """Print one step with its result. Raises dpsql.Error if it does not go as it should."""
    _heading(f"{number}. {step.title}")
    print(f"{step.remark}\n")
    prefix = "EXPLAIN " if step.explain else ""
    print("\n".join(f"    {line}" for line in f"{prefix}{step.sql};".split("\n")) + "\n")
    query = connection.sql(step.sql)
    if step.explain:
        print(query.explain())
        return
    try:
        release = query.run()
    except Rejected as refusal:
        if not step.refused:
            raise
        print(render_text(refusal.diagnostics, color=wants_color(sys.stdout)))
        return
    print_answer(release, Format.TABLE, footer_of(release, left_after(connection, release)), sys.stdout)


def prepare(folder: Path) -> None:
    """Write policy and database into an empty folder, or into that of an earlier demo, which is made anew.

    Raises Rejected DP903 for any other folder; CannotOpen DP006.
    """
    from dpsql.engines.open import make_database

    text = _resource(POLICY)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        present = set(os.listdir(folder))
        if present:
            _require_demo(folder, present, text)
        for name in sorted(present):
            (folder / name).unlink()
        (folder / POLICY).write_text(text, encoding="utf-8")
        make_database(folder / DATABASE, _resource(SCRIPT))
        return
    except (FileExistsError, NotADirectoryError):
        reason = "it is not a folder"
    except OSError as error:
        reason = (error.strerror or "it cannot be written").lower()
    except ValueError:  # a NUL in it
        reason = "its name is not valid"
    raise reject("DP903", f"the demo cannot be made in {str(folder)!r}: {reason}", help=["dpsql demo another-folder"])


def _require_demo(folder: Path, present: set[str], policy: str) -> None:
    strange = sorted(present - MADE_HERE)
    if strange or POLICY not in present:
        shown = ", ".join((strange or sorted(present))[:3]) + (", …" if len(strange or present) > 3 else "")
        raise reject(
            "DP903", f"{str(folder)!r} is not empty, and not an earlier demo's: it holds {shown}",
            help=["name an empty or new folder:  dpsql demo another-folder"],
        )  # fmt: skip
    if (folder / POLICY).read_bytes() != policy.encode("utf-8"):
        raise reject(
            "DP903", f"the policy of the demo in {str(folder)!r} was changed, and a new demo would overwrite it",
            help=["name another folder, or remove this one first"],
        )  # fmt: skip


def _resource(name: str) -> str:
    return (resources.files("dpsql.faces.cli") / "demo_files" / name).read_text(encoding="utf-8")


def _heading(text: str) -> None:
    bold, plain = ("\x1b[1m", "\x1b[0m") if wants_color(sys.stdout) else ("", "")
    print(f"\n{bold}{text}\n{'─' * len(text)}{plain}")


def _next_steps(policy: Path) -> None:
    _heading("Next")
    file = _quoted(str(policy))
    print(
        f'ask a question:       dpsql query {file} "SELECT smoker, AVG(age) AS age FROM patients GROUP BY smoker"'
        f" --epsilon 0.2 --analyst {ANALYST}\n"
        f'repair the refusal:   dpsql query {file} "SELECT QUANTILE_DISC(cost, 0.99) AS q FROM visits"'
        f" --epsilon 0.2 --analyst {ANALYST}\n"
        f"see the budget:       dpsql budget {file} --history\n"
        f"what a code means:    dpsql rule DP101\n"
        f"read the policy:      {policy}\n"
        f"draft one for yours:  dpsql policy init your.duckdb -o policy.yaml\n"
        f"\nThis demo can be run again, or removed with its folder."
    )


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
