"""Policy files: any bytes load, and then can be shown, audited and queried, or are refused with a code and a place."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.planner.computed import understood
from dpsql.planner.plan import Plan
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from dpsql.policy.tools.assumptions import promises, protection
from dpsql.policy.tools.show import show_policy
from dpsql.service.checks.check import static_plan
from tests.deep.fuzz.target import Target, damaged, rearranged
from tests.policy.policies import GOOD, SAMPLES

CODES = {"DP001", "DP002", "DP003", "DP105"}
"""What is wrong with a policy file is said with one of these."""

PIECES = [
    text.encode()
    for text in (
        "null", "{}", "[]", "-1", "1e999", "'", '"', ":", "- ", "\n", "\t", "&a", "*a", "!!str ", "|", ">", "%", "0x1f",
        ".nan", ".inf", "\u2028", "\ufeff", "{a: b}", "[[]]", "read_csv('x')", "visits(visit_id)", "2024-02-30", "true",
        "<<: *a", "\x00", "😀", "9" * 30, "1e-400", "0.1", "? ", "---\n", "...", "# ", "!!python/tuple ", "=", "~",
    )
]  # fmt: skip
VALUES = ("", "null", "true", "0", "-1", "1.5", ".nan", "1e400", "x", "'x'", "[]", "[1, 2]", "{}", "{a: 1}", "[[1]]",
          "2024-01-01", "*a", "&a 1", "id", "people(id)", "bigint", "decimal(5,2)", "!!binary x", '"\\ud800"', '"\\0"',
          "9" * 5000, "12:30:00", "0o17", "1_000", "[null]", "{table: towns, column: code}",
          "'2024-01-01 00:00:00'", "lower(id)", "id + 1", "'CASE WHEN id > 0 THEN 1 END'", "SUM(id)",
          "'x -- '")  # fmt: skip
KEYED = re.compile(rb"(\w+): *([^\s,{}\[\]#]+|\[[^\[\]{}\n]*\]|\{[^{}\n]*\})")
VALUE = re.compile(rb"(?<=: )[^,}\]\n]+|(?<=\[)[^\],]+")


def one(data: bytes) -> str:
    """Load a file that holds `data`: `loaded`, or the code it is refused with."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.yaml"
        file.write_bytes(data)
        try:
            policy = understood(load_policy(file))
        except CannotOpen as error:
            assert error.diagnostics and str(error)
            for d in error.diagnostics:
                assert d.code in CODES and d.message, d
                if d.span is not None and d.source is not None:
                    assert 0 <= d.span.start <= d.span.end <= len(d.source.text) + 1, (
                        d
                    )  # the end of the text is a place
                    assert d.source.position(d.span.start)[0] >= 1
            return error.diagnostics[0].code
        finally:
            assert [p.name for p in Path(folder).iterdir()] == ["policy.yaml"], "loading makes files"
            assert file.read_bytes() == data
    assert show_policy(policy) and protection(policy) is not None and promises(policy) is not None
    assert Policy.model_validate(policy.document).hash == policy.hash
    for table in list(policy.tables)[:5]:
        name = '"' + table.replace('"', '""') + '"'
        try:
            assert isinstance(static_plan(Source(f"SELECT COUNT(*) AS n FROM {name}"), policy), Plan)
        except Rejected as refusal:
            assert refusal.diagnostics and str(refusal)
    return "loaded"


def mutate(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """One to three changes: of bytes, of lines and their indents, or of a value."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        match rng.randrange(9):
            case 6 | 7 | 8:  # what is said under the same key elsewhere
                pairs = list(KEYED.finditer(data))
                if pairs and others:
                    here = rng.choice(pairs)
                    there = [m[2] for m in KEYED.finditer(rng.choice(others)) if m[1] == here[1]]
                    data = data[: here.start(2)] + rng.choice(there or [b"1"]) + data[here.end(2) :]
            case 0:
                data = damaged(data, rng, others, PIECES)
            case 1:
                data = rearranged(data, rng, others, _line)
            case _:
                values = [m.span() for m in VALUE.finditer(data)]
                if values:
                    start, end = rng.choice(values)
                    data = data[:start] + rng.choice(VALUES).encode() + data[end:]
    return data


def _line(rng: Random) -> bytes:
    keys = ("version", "name", "units", "tables", "columns", "type", "bounds", "domain", "unit", "path", "rows", "x",
            "budgets", "total", "analysts", "epsilon", "delta", "rho", "privacy", "accountant", "public", "unique",
            "foreign_keys", "defaults", "ledger", "max_rows_per_unit", "assume", "source", "database")  # fmt: skip
    return b" " * rng.choice((0, 2, 4, 6)) + f"{rng.choice(keys)}: {rng.choice(VALUES)}".encode()


def seeds() -> Sequence[bytes]:
    """Good policies."""
    return [GOOD.encode(), *(path.read_bytes() for path in sorted(SAMPLES.glob("*.yaml")))]


TARGET = Target("policy", one, mutate, seeds)
