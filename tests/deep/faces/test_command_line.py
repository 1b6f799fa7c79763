"""The same list through the command line: refusals by code and exit status, answers, failures, races, spending.

The keys of the tables are the items' numbers; what an item means is in the other files.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.engine import RawTable
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.faces.cli import exits
from tests.support.checklist_clinic import CANARY, MARKER, POLICY, Call, Clinic

Command = Callable[..., Call]
COUNT = "SELECT COUNT(*) AS n FROM patients"
SPEND = ("--epsilon", "1000", "--delta", "1e-12", "--format", "csv")

REFUSED: dict[int, tuple[str, str]] = {
    3: ("SELECT kahan_sum(income) FROM patients", "DP105"),
    5: ("SELECT sum_no_overflow(big) FROM patients", "DP105"),
    6: ("SELECT SUM(big * big) FROM patients", "DP201"),
    9: ("SELECT income, COUNT(*) FROM patients GROUP BY income", "DP301"),
    13: ("SELECT SUM(age / (age - 40)) FROM patients", "DP202"),
    14: ("SELECT COUNT(*) FROM patients WHERE zip > 5", "DP106"),
    15: ("SELECT COUNT(*) FROM patients WHERE zip::JSON IS NULL", "DP106"),
    16: ("SELECT SUM(CASE WHEN name = 'bob' THEN error('bob has ' || diag) ELSE 1 END) FROM patients", "DP105"),
    17: ("SELECT COUNT(*) FROM patients WHERE factorial(age) > 1", "DP105"),
    18: ("SELECT COUNT(*) FROM patients WHERE name LIKE zip", "DP115"),
    20: ("SELECT COUNT(*) FROM patients WHERE list_extract([1, 2], age) = 1", "DP105"),
    21: ("SELECT COUNT(*) FROM patients WHERE age = (SELECT age FROM patients)", "DP111"),
    23: ("SELECT COUNT(*) FROM patients WHERE length(repeat('x', age)) > 0", "DP105"),
    24: ("SELECT COUNT(*) FROM patients WHERE levenshtein(name, zip) > 1", "DP105"),
    26: ("SELECT COUNT(*) FROM (SELECT * FROM patients ORDER BY age LIMIT 2)", "DP112"),
    27: ("SELECT any_value(name) FROM patients", "DP101"),
    28: ("SELECT COUNT(*) FROM patients USING SAMPLE 10%", "DP101"),
    29: ("SELECT COUNT(*) FROM patients WHERE random() < 0.5", "DP114"),
    31: ("SELECT COUNT(*) FROM read_text('/etc/passwd')", "DP101"),
    32: ("SELECT COUNT(*) FROM hidden", "DP102"),
    33: ("SELECT * FROM duckdb_tables", "DP102"),
    34: ("SELECT COUNT(*) FROM patients WHERE getenv('HOME') = name", "DP105"),
    35: ("SELECT COUNT(*) FROM query('SELECT 1')", "DP101"),
    36: ("WITH patients AS (SELECT diag FROM pub) SELECT COUNT(*) FROM patients", "DP107"),
    37: ("SELECT 1; SELECT COUNT(*) FROM patients", "DP011"),
    38: ("SELECT COUNT(*) FROM patients FOR UPDATE", "DP101"),
    39: ('SELECT "NAME" FROM "PaTiEnTs"', "DP110"),
    40: ("SELECT SUM(age) FROM patients p(age, pid, c, d, e, f, g, h, i)", "DP201"),
    41: ("SELECT COUNT(*) FROM patients WHERE EXISTS (SELECT 1 FROM patients WHERE name = 'bob')", "DP230"),
    42: ("SELECT COUNT(*) FROM patients WHERE diag NOT IN (SELECT diag FROM patients WHERE name = 'bob')", "DP230"),
    43: ("SELECT diag, COUNT(*) FROM patients GROUP BY diag HAVING MAX(name) = 'bob'", "DP101"),
    44: ("SELECT pid, COUNT(*) FROM patients GROUP BY pid", "DP301"),
    45: ("PIVOT patients ON diag USING COUNT(*)", "DP101"),
    48: ("SELECT COUNT(*) FROM pub LEFT JOIN patients ON pub.diag = patients.diag", "DP220"),
    49: ("SELECT COUNT(*) FROM (SELECT pid, age FROM patients UNION SELECT age, pid FROM patients)", "DP220"),
    50: ("SELECT COUNT(*) FROM (SELECT COUNT(*) OVER () AS w FROM patients) WHERE w > 1", "DP113"),
    51: ("SELECT COUNT(*) FROM patients, LATERAL (SELECT unnest(range(age)))", "DP101"),
    52: (
        "WITH RECURSIVE r AS (SELECT pid FROM patients UNION ALL SELECT pid FROM r) SELECT COUNT(*) FROM r",
        "DP101",
    ),
    53: ("SELECT COUNT(*) FROM patients JOIN pub ON patients.age = pub.diag", "DP117"),
    54: ("SELECT COUNT(*) FROM patients WHERE name COLLATE nocase = 'BOB'", "DP105"),
    55: ("SELECT COUNT(*) FROM patients WHERE CAST(zip AS TIMESTAMPTZ) IS NULL", "DP106"),
    56: ("SELECT COUNT(*) FROM visits v JOIN patients p ON v.pid = p.pid + 1", "DP230"),
    58: ("SELECT entropy(age) FROM patients", "DP105"),
    59: ("SELECT SUM(CLIP(big, 0, (SELECT MAX(big) FROM patients))) FROM patients", "DP115"),
}

ANSWERED: dict[int, tuple[str, list[list[str]]]] = {
    2: ("SELECT COUNT(*) FROM patients WHERE CAST(income AS VARCHAR) = 'nan'", [["0"]]),
    4: ("SELECT COUNT(*) FROM patients WHERE CAST(income / 20000 AS INTEGER) = 2", [["2"]]),  # 2.5 and 1.5
    10: ("SELECT COUNT(CLIP(age, 50, 100)) FROM patients", [["3"]]),
    11: ("SELECT diag, COUNT(*) FROM patients WHERE age > 1000 GROUP BY diag",
         [["flu", "0"], ["HIV", "0"], ["rare", "0"], ["", "0"]]),
    12: ("SELECT COUNT(*) FROM patients WHERE 1 // (age - 30) IS NOT NULL", [["2"]]),
    19: ("SELECT COUNT(*) FROM patients WHERE day + 1 IS NOT NULL", [["3"]]),
    22: ("SELECT COUNT(*) FROM patients WHERE zip <> 'abc' AND CAST(zip AS INTEGER) > 0", [["1"]]),
    46: ("SELECT COUNT(*) FILTER (WHERE age > 35), COUNT(*) FILTER (WHERE age > 45) FROM patients", [["2", "1"]]),
    57: ("SELECT COUNT(DISTINCT pid) FROM visits", [["3"]]),
    61: ("SELECT diag, COUNT(*) AS n FROM patients GROUP BY diag ORDER BY n DESC, diag LIMIT 1", [["flu", "2"]]),
}  # fmt: skip


def rows(call: Call) -> list[list[str]]:
    assert call.status == exits.OK, call.err
    return list(csv.reader(io.StringIO(call.out)))[1:]


def spent(command: Command, clinic: Clinic) -> object:
    call = command("budget", clinic.policy, "--format", "json")
    assert call.status == exits.OK, call.err
    return json.loads(call.out)


@pytest.mark.parametrize("item", REFUSED)
def test_probe_command_line_refuses(dpsql_command: Command, clinic: Clinic, tmp_path: Path, item: int) -> None:
    """One code, a caret, the exit status of that code, nothing on standard output, nothing charged; and the same
    words from `dpsql check`, which has only the text and the policy."""
    sql, code = REFUSED[item]
    before = spent(dpsql_command, clinic)
    call = dpsql_command("query", clinic.policy, sql, *SPEND)
    assert call.status == (exits.STATEMENT if code.startswith("DP01") else exits.REFUSED), call.err
    assert re.search(rf"^error\[{code}\]: ", call.err, re.MULTILINE), call.err
    assert re.search(r"^ *\|.*\^", call.err, re.MULTILINE), call.err
    assert call.out == ""
    assert spent(dpsql_command, clinic) == before
    explained = dpsql_command("explain", clinic.policy, sql)
    assert explained.status == call.status and f"error[{code}]" in explained.err and explained.out == ""
    if code != "DP011":  # two statements are two checks
        (tmp_path / "q.sql").write_text(sql)
        checked = dpsql_command("check", tmp_path / "q.sql", "--policy", clinic.policy)
        assert checked.status == exits.CHECK_FINDINGS and f"error[{code}]" in checked.out


@pytest.mark.parametrize("item", ANSWERED)
def test_probe_command_line_answers(dpsql_command: Command, clinic: Clinic, item: int) -> None:
    sql, expected = ANSWERED[item]
    assert rows(dpsql_command("query", clinic.policy, sql, *SPEND, "--fresh")) == expected


def test_item_01_and_60_printed_sums_lie_on_the_public_grid(dpsql_command: Command, clinic: Clinic) -> None:
    """What is printed in full is a whole number of grid units, however the noise fell."""
    sql = "SELECT SUM(income) FROM patients"
    seen = [
        rows(dpsql_command("query", clinic.policy, sql, "--epsilon", "1", "--format", "csv", "--fresh"))[0][0]
        for _ in range(5)
    ]
    with clinic.connect() as con:
        (measured,) = con.sql(sql).plan(epsilon=1).releases[0].measured.measurements
    assert len(set(seen)) > 1 and all((Fraction(float(x)) / measured.unit).denominator == 1 for x in seen)


def test_item_07_noise_beyond_the_limit_is_refused(dpsql_command: Command, clinic: Clinic) -> None:
    call = dpsql_command("query", clinic.policy, COUNT, "--epsilon", "1e-30")
    assert call.status == exits.REFUSED and "DP410" in call.err and call.out == ""


@pytest.mark.parametrize("option", ["--epsilon", "--rho", "--delta", "--max-error", "--weight", "--confidence"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1/0", "1e-999999999", "", "n=0", "n=nan", "n=-1"])
def test_item_08_no_parameter_turns_the_noise_off(
    dpsql_command: Command, clinic: Clinic, option: str, value: str
) -> None:
    """Zero, negative, endless and not a number: a message and a status, and nothing spent."""
    before = spent(dpsql_command, clinic)
    more = () if option in ("--epsilon", "--rho", "--max-error") else ("--epsilon", "1")
    more += ("--max-error", "n=5") if option == "--confidence" else ()
    sql = "SELECT name, COUNT(*) AS n FROM patients GROUP BY name"
    call = dpsql_command("query", clinic.policy, sql, f"{option}={value}", *(more or ("--delta", "1e-12")))
    assert call.status in (exits.USAGE, exits.REFUSED) and "error[DP" in call.err and call.out == "", call
    assert spent(dpsql_command, clinic) == before


class Failing:
    """Ways for the engine to fail once the answer has been paid for."""

    @staticmethod
    def engine(self: DuckDBEngine, sql: str) -> RawTable:
        raise RuntimeError(f"could not convert {CANARY} of {MARKER}")

    @staticmethod
    def memory(self: DuckDBEngine, sql: str) -> RawTable:
        raise MemoryError(CANARY)

    @staticmethod
    def odd(self: DuckDBEngine, sql: str) -> RawTable:
        return RawTable(("m0",), ([f"{CANARY} is no number"],))


def test_item_25_every_failure_looks_alike_and_is_paid_for(
    dpsql_command: Command, make: Callable[..., Clinic], monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic = make()
    fetch, shown = DuckDBEngine.fetch, []
    for n, failure in enumerate((Failing.engine, Failing.memory, Failing.odd), 1):

        def broken(self: DuckDBEngine, sql: str, failure: Callable[..., RawTable] = failure) -> RawTable:
            return failure(self, sql) if "patients" in sql else fetch(self, sql)

        monkeypatch.setattr(DuckDBEngine, "fetch", broken)
        shown.append(dpsql_command("query", clinic.policy, COUNT, "--epsilon", "1"))
        monkeypatch.setattr(DuckDBEngine, "fetch", fetch)
        with clinic.connect() as con:
            assert con.budget["unit"].total_spent.epsilon == n
    assert shown[0] == shown[1] == shown[2] and shown[0].status == exits.USAGE and shown[0].out == ""
    assert "DP901" in shown[0].err


def test_item_24_and_60_nothing_measured_is_printed(dpsql_command: Command, make: Callable[..., Clinic]) -> None:
    """No time taken, no number of rows read, no size: with and without data the tables differ in noisy digits only."""
    sql = "SELECT diag, COUNT(*) AS n FROM patients GROUP BY diag"
    shown = []
    for private in (True, False):
        clinic = make(private=private)
        call = dpsql_command("query", clinic.policy, sql, "--epsilon", "1", "--fresh")
        assert call.status == 0
        text = re.sub(r"-?\d+", "#", call.out + call.err).replace(str(clinic.folder), "")
        shown.append(re.sub(r"[ -]+", " ", text))
    assert shown[0] == shown[1]
    assert not re.search(r"\b(ms|seconds|elapsed|rows read|scanned)\b", shown[0])


@pytest.mark.processes
def test_item_62_racing_processes_never_overspend(make: Callable[..., Clinic], tmp_path: Path) -> None:
    """Six processes at once, a budget for two answers."""
    clinic = make(policy=POLICY.replace("epsilon: 1000000000", "epsilon: 2"))
    command = [sys.executable, "-m", "dpsql", "query", str(clinic.policy), COUNT, "--epsilon", "1", "--fresh"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        for _ in range(6)
    ]
    ended = [(p.communicate(timeout=600), p.returncode) for p in running]
    assert sorted(status for _, status in ended) == [exits.OK] * 2 + [exits.BUDGET] * 4
    assert all((b"DP404" in err or b"DP4" in err) and not out for (out, err), status in ended if status)


def test_item_64_and_66_tenths_of_all_analysts_are_one_budget(
    dpsql_command: Command, make: Callable[..., Clinic]
) -> None:
    clinic = make(policy=POLICY.replace("epsilon: 1000000000", "epsilon: 1"))
    for at in range(10):
        table, who = ("patients", "ana") if at % 2 else ("visits", "eve")
        sql = f"SELECT COUNT(*) FROM {table}"
        call = dpsql_command(
            "query", clinic.policy, sql, "--epsilon", "0.1", "--fresh", "--analyst", who, "--format", "csv"
        )
        assert call.status == exits.OK, call.err
    for who in ("ana", "eve", "somebody new"):
        call = dpsql_command("query", clinic.policy, COUNT, "--epsilon", "1e-9", "--fresh", "--analyst", who)
        assert call.status == exits.BUDGET and call.out == ""


def test_item_65_an_older_ledger_is_refused(dpsql_command: Command, make: Callable[..., Clinic]) -> None:
    clinic = make()
    ledger = clinic.folder / "spent.sqlite"
    assert dpsql_command("query", clinic.policy, COUNT, "--epsilon", "1").status == exits.OK
    shutil.copy(ledger, clinic.folder / "old")
    assert dpsql_command("query", clinic.policy, COUNT, "--epsilon", "2").status == exits.OK
    for rest in clinic.folder.glob("spent.sqlite-*"):
        rest.unlink()
    shutil.copy(clinic.folder / "old", ledger)
    for arguments in (("query", clinic.policy, COUNT, "--epsilon", "1"), ("budget", clinic.policy)):
        call = dpsql_command(*arguments)
        assert call.status == exits.CANNOT_OPEN and "DP407" in call.err and call.out == ""


@pytest.mark.parametrize("option", ["--seed", "--random-state", "--no-noise", "--scale", "--sensitivity", "--unit"])
def test_item_67_no_option_repeats_or_removes_noise(dpsql_command: Command, clinic: Clinic, option: str) -> None:
    call = dpsql_command("query", clinic.policy, COUNT, "--epsilon", "1", option, "1")
    assert call.status == exits.USAGE and "no such option" in call.err.lower() and call.out == ""
    for command in ("query", "explain"):
        assert option not in dpsql_command(command, "--help").out


def test_item_67_again_is_the_same_number_and_fresh_is_charged(
    dpsql_command: Command, make: Callable[..., Clinic]
) -> None:
    clinic = make()
    sql = "SELECT SUM(income) FROM patients"
    first, again, fresh = (
        rows(dpsql_command("query", clinic.policy, sql, "--epsilon", "1", "--format", "csv", *more))
        for more in ((), (), ("--fresh",))
    )
    assert first == again != fresh
    with clinic.connect() as con:
        assert con.budget["unit"].total_spent.epsilon == 2


@pytest.mark.processes
def test_item_68_two_processes_draw_different_noise(make: Callable[..., Clinic]) -> None:
    clinic = make()
    command = [sys.executable, "-m", "dpsql", "query", str(clinic.policy), "SELECT SUM(income) FROM patients",
               "--epsilon", "1", "--fresh", "--format", "csv"]  # fmt: skip
    seen = {subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout for _ in (1, 2)}
    assert len(seen) == 2


def test_item_70_check_explain_and_refusals_are_the_same_bytes(
    dpsql_command: Command, make: Callable[..., Clinic], tmp_path: Path
) -> None:
    """Empty, full, and full of other rows: `check`, `explain` in every format and a refused `query` say the same."""
    sqls = [sql for sql, _ in (*REFUSED.values(), *ANSWERED.values())]
    (tmp_path / "all.sql").write_text(";\n".join(sqls))
    shown = []
    for clinic in (
        make(private=False),
        make(),
        make("INSERT INTO patients (pid, name, diag) SELECT i, 'x' || i, 'new' || i FROM range(10, 900) r(i)"),
    ):
        calls = [
            dpsql_command("check", tmp_path / "all.sql", "--policy", clinic.policy, "--output-format", form)
            for form in ("full", "concise", "json")
        ]
        for sql, _ in ANSWERED.values():
            calls += [
                dpsql_command("explain", clinic.policy, sql, "--epsilon", "1", "--format", form)
                for form in ("text", "json")
            ]
        calls += [dpsql_command("query", clinic.policy, sql, *SPEND) for sql, _ in list(REFUSED.values())[::4]]
        calls += [
            dpsql_command("policy", *arguments)
            for arguments in (("show", clinic.policy), ("audit", clinic.policy), ("check", clinic.policy))
        ]
        shown.append(repr(calls).replace(str(clinic.folder), "FOLDER"))
    assert shown[0] == shown[1] == shown[2]
    assert shown[0].count("error[DP") > 40
