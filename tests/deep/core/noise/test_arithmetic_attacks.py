"""Items 1 and 10: every file of the package, and clips in every nesting."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from tests.support.checklist_clinic import Clinic

ROOT = Path(dpsql.__file__).parent
LOGINS = {"scram.py", "listen.py", "sessions.py", "entrance.py", "oidc.py"}
DRAWING = {"entropy.py", "hash_chain.py", "prepare.py", *LOGINS}
"""Noise; salts of ledgers and copies; salts, keys and tokens of logins."""


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    found = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    return found | {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}


def test_item_01_noise_comes_from_one_exact_source() -> None:
    """No module but the sampler draws random numbers, and no SQL function does."""
    for path in ROOT.rglob("*.py"):
        names = _imports(path)
        assert not names & {"random", "numpy.random", "opendp"}, path
        assert "np.random" not in path.read_text(), path
        if path.name not in DRAWING:
            assert not names & {"secrets"} and "urandom" not in path.read_text(), path


@pytest.mark.parametrize("values", ["(NULL)", "('NaN')", "('inf')", "(-0.0)", "(-1.0)", "(101.0)", "(50)"])
def test_item_10_clips_keep_null_and_hold_in_every_nesting(make: Callable[..., Clinic], values: str) -> None:
    clinic = make("DELETE FROM visits", f"INSERT INTO visits SELECT 1, * FROM (VALUES {values}, {values}) t(x)")
    held = {"(NULL)": 0, "('NaN')": 0, "('inf')": 0, "(-0.0)": 0, "(-1.0)": 0, "(101.0)": 200, "(50)": 100}[values]
    with clinic.connect() as con:
        for argument in ("amt", "CLIP(amt, 0, 100)", "LEAST(GREATEST(amt, 0), 100)", "GREATEST(LEAST(amt, 100), 0)"):
            ((total,),) = con.execute(f"SELECT SUM({argument}) FROM visits", epsilon=10**6).rows
            assert math.isclose(total, held, abs_tol=0.5), argument
        # A NULL is no lower bound: this would be 100 if LEAST and GREATEST were the engine's.
        ((total,),) = con.execute("SELECT SUM(CLIP(amt, 50, 100)) FROM visits", epsilon=10**6).rows
        floor = 0 if values in ("(NULL)", "('NaN')", "('inf')") else 100
        assert math.isclose(total, max(held, floor), abs_tol=0.5)


@pytest.mark.parametrize("poison", ["'NaN'", "'inf'", "'-inf'", "1e308", "-1e308", "NULL"])
def test_item_02_and_09_no_float_reaches_the_noise(make: Callable[..., Clinic], poison: str) -> None:
    """NaN and infinities are no values: they never reach the total, which stays a clipped integer."""
    with make(f"UPDATE patients SET income = {poison} WHERE pid = 2").connect() as con:
        ((total, mean, n),) = con.execute(
            "SELECT SUM(income), AVG(income), COUNT(income) FROM patients", epsilon=10**6
        ).rows
        held = poison in ("1e308", "-1e308")
        assert math.isclose(total, 180000 if poison == "1e308" else 80000, abs_tol=50)
        assert n == 2 + held and 0 <= mean <= 100000


def test_item_11_empty_input_gives_numbers_and_every_key(make: Callable[..., Clinic]) -> None:
    """Emptiness shows nowhere: the same keys, the same types, never NULL."""
    sql = "SELECT diag, COUNT(*) n, SUM(age) s, AVG(income) m, COUNT(DISTINCT age) d FROM patients GROUP BY diag"
    shapes = []
    for private in (True, False):
        with make(private=private).connect() as con:
            rows = con.execute(sql, epsilon=1).rows
            shapes.append([(row[0], *map(type, row[1:])) for row in rows])
            ((total,),) = con.execute("SELECT SUM(amt) FROM visits WHERE amt > 1000", epsilon=1).rows
            assert isinstance(total, float)
    assert shapes[0] == shapes[1] and len(shapes[0]) == 4
