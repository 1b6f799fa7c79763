"""`dpsql shell` away from a terminal: flags, files, pipes, exit codes, and input that makes no sense."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from dpsql import Policy
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.shell.commands.run_statement import accept_schema
from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's own settings."""
    for name in [n for n in os.environ if n.startswith("DPSQL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["-c", COUNT], 0, None),
        (["-c", "\\d patients"], 0, None),
        (["-c", "\\nonsense"], 1, "DP903"),
        (["-c", "SELECT 1; INSERT INTO patients VALUES (1)"], 3, "DP012"),
        (["-c", "SELECT FROM WHERE"], 3, "DP010"),
        (["-c", "SELECT MAX(cost) FROM visits"], 4, "DP101"),
        (["-c", "\\copy patients to 'x.csv'"], 4, "DP906"),
        (["-c", "EXPLAIN ANALYZE SELECT 1"], 4, "DP906"),
        (["-c", COUNT, "--epsilon", "7"], 5, "DP404"),
        (["-c", COUNT, "--epsilon", "x"], 1, "DP406"),
        (["-f", "no-such-file.sql"], 1, "DP903"),
        (["-P", "format=x", "-c", COUNT], 1, "DP903"),
        (["-v", "a b=1", "-c", COUNT], 1, "DP903"),
        (["--ledger", "/dev/null/x", "-c", COUNT], 2, "DP407"),
        (["--dialect", "klingon", "-c", COUNT], 1, "DP903"),
        (["--no-such-flag"], 1, "DP903"),
    ],
)
def test_exit_codes(dpsql: Call, clinic: Clinic, arguments: list[str], status: int, code: str | None) -> None:
    done = dpsql("shell", clinic.policy, *arguments)
    assert done.status == status and done.codes == ({code} if code else set())


def test_a_policy_that_is_not_there(dpsql: Call, tmp_path: Path) -> None:
    for arguments in (["shell", str(tmp_path / "none.yaml")], [str(tmp_path / "none.yaml")]):
        assert (done := dpsql(*arguments)).status == 2 and done.codes == {"DP001"}
    assert dpsql("shell").codes == {"DP903"}


def test_the_policy_alone_is_enough(dpsql: Call, clinic: Clinic) -> None:
    assert dpsql(clinic.policy, stdin=f"{COUNT};".encode()).out.splitlines()[0].strip() == "n"


def test_commands_and_files_run_in_their_order(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("\\echo two\n\\ir b.sql\n")
    (tmp_path / "b.sql").write_text("\\echo three")
    done = dpsql(
        "shell", clinic.policy, "-c", "\\echo one", "-f", tmp_path / "a.sql", "-c", "\\echo four", "-f", "-",
        "-c", "\\q", "-c", "\\echo never", stdin=b"\\echo five",
    )  # fmt: skip
    assert done.out.split() == ["one", "two", "three", "four", "five"] and done.status == 0


def test_the_first_error_ends_a_pipe(dpsql: Call, clinic: Clinic) -> None:
    text = b"\\echo before\nSELECT nonsense FROM patients;\n\\echo after\n"
    done = dpsql("shell", clinic.policy, stdin=text)
    assert done.status == 4 and done.out == "before\n" and "<stdin>:2:8" in done.err
    done = dpsql("shell", clinic.policy, "-v", "ON_ERROR_STOP=off", stdin=text)
    assert done.status == 0 and done.out == "before\nafter\n" and done.codes == {"DP103"}


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{COUNT}".encode(),
        f"{COUNT};\r\n".encode(),
        f"-- π\n\n{COUNT}\n;\n-- done".encode(),
        b"SELECT 1 AS n \\g",
    ],
)
def test_files_of_any_kind(dpsql: Call, clinic: Clinic, text: bytes) -> None:
    done = dpsql("shell", clinic.policy, "--csv", "-q", stdin=text)
    assert done.status == 0 and done.out.splitlines()[0] == "n" and len(done.out.splitlines()) == 2 and not done.err


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"SELECT \xc3\x28;", b"SELECT 1\x00;"])
def test_what_is_no_text(dpsql: Call, clinic: Clinic, text: bytes) -> None:
    assert (done := dpsql("shell", clinic.policy, stdin=text)).status == 1 and done.codes == {"DP903"}


def test_places_in_files(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("\\echo\n\n  SELECT COUNT(*)\n  FROM patients\n  WHERE nonsense = 1;\n")
    done = dpsql("shell", clinic.policy, "-f", tmp_path / "q.sql")
    assert "q.sql:5:9" in done.err and re.search(r"\| +WHERE nonsense = 1\n.*\| {9}\^{8}\n", done.err)


def test_what_is_set_is_what_is_spent(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("shell", clinic.policy, "--analyst", "ana", "--epsilon", "0.2", "-c", f"SET epsilon TO 0.05; {COUNT}")
    assert "spent ε 0.05, left ε 2.95" in done.out
    assert "2.95" in dpsql("shell", clinic.policy, "--analyst", "ana", "-c", "\\budget").out


def test_variables(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql(
        "shell", clinic.policy, "--csv", "-q", "-v", "r=o'x", "-c", "\\set r 'north' ", "-c", "\\echo :r :'r' :\"r\"",
        "-c", "SELECT region AS :\"r\", ':r' AS t FROM patients WHERE region = :'r' GROUP BY region",
    )  # fmt: skip
    assert done.out == "north 'north' \"north\"\nnorth,t\nnorth,:r\n"


def test_variables_of_what_is_explained(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("shell", clinic.policy, stdin=f"\\set x 50\nEXPLAIN {COUNT} WHERE age < :x;".encode())
    assert done.status == 0 and "filter age < 50" in done.out


def test_looking_spends_nothing_and_makes_no_ledger(dpsql: Call, clinic: Clinic) -> None:
    looks = [
        "\\d",
        '\\d "visits";',
        "\\dt",
        "\\l",
        "\\conninfo",
        "\\policy",
        "\\budget",
        "\\df",
        "\\h clip",
        "\\h",
        "\\?",
        "\\pset",
    ]
    done = dpsql("shell", clinic.policy, *(a for look in looks for a in ("-c", look)), "-c", f"\\explain {COUNT}")
    assert done.status == 0 and not done.err and not clinic.ledger.exists()
    assert "would cost ε 0.5" in dpsql("shell", clinic.policy, "-c", f"\\cost {COUNT}").out


def test_notes_of_the_last_answer(dpsql: Call, clinic: Clinic) -> None:
    """Three stand below it; \\notes has all of them."""
    sql = "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM patients JOIN visits USING (patient_id) GROUP BY region"
    done = dpsql("shell", clinic.policy, "-c", "\\notes", "-c", sql, "-c", "\\notes", "--ledger", ":memory:")
    assert done.status == 0 and done.err == "there are no notes: no answer has any yet\n"
    footer, *notes = done.out[done.out.index("(4 rows)") :].splitlines()
    assert footer.endswith("; 1 more note: \\notes"), done.out
    assert [line.strip() for line in notes[:3]] == notes[3:6] and len(notes) == 7


def test_what_is_known_of_a_limit_before_it_is_found(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("{rows: 12, nobody_has_more: true}", "40")
    asked = "SELECT COUNT(*) AS n, SUM(surcharge) AS s, AVG(cost) AS a FROM visits"
    n, s, a, *notes = dpsql("shell", clinic.policy, "-c", f"\\cost {asked}").out.splitlines()[1:]
    assert re.fullmatch(r"  n  ± [0-9.,]+ at least, [0-9.,]+ at most", n), n
    assert re.fullmatch(r"  s  ± [0-9.e-]+ at least", s) and a == "  a  ± depends on the data"
    assert sum("is found when the query runs" in note for note in notes) == 2 and "find the limits" in notes[-1]


def test_a_ledger_that_was_removed_is_noticed_at_the_start(dpsql: Call, clinic: Clinic) -> None:
    assert dpsql("shell", clinic.policy, "-c", COUNT).status == 0
    clinic.ledger.unlink()
    done = dpsql("shell", clinic.policy, "-c", "\\echo never")
    assert done.status == 2 and done.codes == {"DP407"} and done.out == ""


def test_nothing_is_kept_of_what_pipes_say(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    dpsql("shell", clinic.policy, stdin=f"{COUNT};".encode())
    assert not list(tmp_path.rglob("history"))
    assert dpsql("shell", clinic.policy, "-c", "\\history").codes == {"DP903"}


def test_a_batch_of_a_file_shows_its_price_first(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    """It is refused at its place, or goes on without what is refused; explained, it costs nothing; again it is free."""
    board = tmp_path / "board.sql"
    board.write_text(
        f"{COUNT};\nSELECT region, AVG(age) AS m FROM patients\n GROUP BY region;\nSELECT MAX(age) FROM patients"
    )
    refused = dpsql("shell", clinic.policy, "-c", f"\\batch {board}")
    assert refused.status == 4 and refused.codes == {"DP101"} and f"{board}:4:8" in refused.err
    shown = dpsql("shell", clinic.policy, "-c", "\\epsilon 0.1", "-c", f"\\batch {board} skip explain")
    assert shown.status == 0 and "cost: ε 0.1" in shown.out and "query 3: refused" in shown.out
    done = dpsql("shell", clinic.policy, "-c", "\\epsilon 0.1", "-c", f"\\batch {board} skip")
    lines = done.out.splitlines()
    assert (
        lines[0] == "2 queries, together: would cost ε 0.1" and done.out.count(" ± ") == 7 and done.codes == {"DP101"}
    )
    assert "age is clipped to [0, 110]" in done.out and "CLIP" not in done.out
    again = dpsql("shell", clinic.policy, "-c", "\\epsilon 0.1", "-c", f"\\batch {board} skip")
    assert again.out.startswith("2 queries, together: would cost nothing") and "spent ε 0" in again.out
    for wrong in ("\\batch", f"\\batch {board} now", f"\\batch {tmp_path}/none.sql"):
        assert dpsql("shell", clinic.policy, "-c", wrong).codes == {"DP903"}


BATCH = f"DP BATCH ({COUNT};\n  SELECT region, COUNT(*) AS n FROM patients GROUP BY region)"


def test_a_batch_is_one_statement_of_the_shell(dpsql: Call, clinic: Clinic) -> None:
    """Its semicolons end nothing; looked at it is free, its price is said first, and again it costs nothing."""
    text = f"\\epsilon 0.1\nEXPLAIN -- it\n{BATCH};\n\\cost {BATCH.replace(chr(10), '')}\n{BATCH};{BATCH};\n{COUNT};"
    done = dpsql("shell", clinic.policy, stdin=text.encode())
    assert done.status == 0 and not done.err
    lines = [line for line in done.out.splitlines() if "together" in line or "spent" in line or line.startswith("cost")]
    assert lines[:3] == ["cost: ε 0.1"] + 2 * ["2 queries, together: would cost ε 0.1"]
    assert lines[3].startswith("(2 answers)  spent ε 0.1;")
    assert lines[4] == "2 queries, together: would cost nothing" and lines[5].startswith("(2 answers)  spent ε 0;")
    assert lines[6].startswith("(1 row)  spent ε 0.1")  # a query by itself is another one


@pytest.mark.parametrize("first", ["EXPLAIN (COST)", "EXPLAIN ANALYZE", "PREPARE q AS"])
def test_a_batch_is_cut_nowhere_whatever_stands_before_it(dpsql: Call, clinic: Clinic, first: str) -> None:
    """Of three queries the second would be one of its own, and paid for by who only looks."""
    text = f"\\epsilon 0.1\n{first} DP BATCH ({COUNT}; {COUNT}; {COUNT});"
    done = dpsql("shell", clinic.policy, "-v", "ON_ERROR_STOP=0", stdin=text.encode())
    assert done.err.count("error[") == 1 and "spent ε" not in done.out and not clinic.ledger.exists()


@pytest.mark.parametrize(
    ("text", "price"),
    [
        (f"-- dpsql: epsilon=0.01\n{BATCH};", "would cost ε 0.01"),
        (f"EXPLAIN /* dpsql: epsilon=0.01 */ {BATCH};", "cost: ε 0.01"),
        (f"{BATCH} -- dpsql: epsilon=0.01\n;", ""),
        (BATCH.replace("BATCH", "/* dpsql: epsilon=0.01 */ BATCH") + ";", ""),
        (f"{COUNT} -- dpsql: epsilon=0.01", ""),
        (f"{COUNT} /* dpsql: epsilon=0.01 */; {COUNT};", ""),
    ],
)
def test_what_a_comment_says_holds_or_is_refused(dpsql: Call, clinic: Clinic, text: str, price: str) -> None:
    done = dpsql("shell", clinic.policy, stdin=f"\\epsilon 0.1\n{text}".encode())
    assert price in done.out if price else (done.codes == {"DP902"} and not clinic.ledger.exists())


def test_what_is_refused_of_a_batch_has_its_place_in_the_input(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    """Also of one that goes on without it; of a batch without its end all that follows."""
    file = tmp_path / "board.sql"
    wrong = BATCH.replace("region, COUNT(*) AS n", "MAX(age)").replace(" GROUP BY region", "")
    file.write_text(
        f"{COUNT};\n {wrong};\n  {wrong.replace('BATCH', 'BATCH SKIP REFUSED')};\nDP BATCH ({COUNT};\n{COUNT};"
    )
    done = dpsql("shell", clinic.policy, "-f", str(file), "-v", "ON_ERROR_STOP=0")
    assert [line.split(":", 1)[1] for line in done.err.splitlines() if "-->" in line] == ["3:10", "5:10", "6:1"]
    assert done.out.count("spent") == 2 and "(1 answer)" in done.out


# What psql's and DuckDB's users type ----------------------------------------------------------------------------------

BOTH = "SELECT region, smoker, COUNT(*) AS n FROM patients GROUP BY ALL"


def test_an_answer_goes_to_a_new_file(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    text = f"{COUNT} \\g '{tmp_path}/an answer.txt'\n{COUNT};\n".encode()
    done = dpsql("shell", clinic.policy, stdin=text)
    assert done.status == 0 and done.out.count("(1 row)") == 1
    kept = (tmp_path / "an answer.txt").read_text(encoding="utf-8")
    assert kept.splitlines()[2] == done.out.splitlines()[2]  # the same stored answer


@pytest.mark.parametrize(
    ("behind", "code"),
    [("| cat", "DP906"), ("|cat", "DP906"), ("a b", "DP903"), ("nowhere/x", "DP903"), ("POLICY", "DP903"),
     ("LEDGER", "DP903")],
)  # fmt: skip
def test_where_no_answer_goes(dpsql: Call, clinic: Clinic, behind: str, code: str) -> None:
    behind = behind.replace("POLICY", clinic.policy).replace("LEDGER", str(clinic.ledger))
    done = dpsql("shell", clinic.policy, stdin=f"{COUNT} \\g {behind}\n".encode())
    assert done.codes == {code} and not clinic.ledger.exists()  # nothing was paid for


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        (".tables", "\\dt"), (".schema visits", "\\d visits"), (".help", "\\?"), ("  .TABLES", "\\dt"),
        (".print a", "\\echo a"), (".schema", "\\d"),
    ],
)  # fmt: skip
def test_commands_of_other_shells(dpsql: Call, clinic: Clinic, typed: str, same: str) -> None:
    done = dpsql("shell", clinic.policy, stdin=f"{typed}\n".encode())
    assert done.status == 0 and done.out == dpsql("shell", clinic.policy, stdin=f"{same}\n".encode()).out != ""
    assert dpsql("shell", clinic.policy, stdin=b".quit\n\\echo never\n").out == ""


def test_unknown_commands_of_other_shells_are_refused_by_name(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("shell", clinic.policy, stdin=b".mode csv\n")
    assert done.codes == {"DP903"} and "there is no .mode here" in done.err and ".tables (\\dt)" in done.err
    # A number that begins with its point, on a line of its own within a statement, is none.
    assert dpsql("shell", clinic.policy, "--csv", "-q", stdin=b"SELECT 1 +\n.5 AS n;\n").out == "n\n1.5\n"


@pytest.mark.parametrize(
    "path", ["public", "main", '"$user", public', "'public'", "DEFAULT", "clinic", "PUBLIC , main"]
)
def test_a_search_path_that_changes_nothing(dpsql: Call, clinic: Clinic, path: str) -> None:
    done = dpsql(
        "shell", clinic.policy, stdin=f"SET search_path TO {path};\nSHOW search_path;\nRESET search_path;".encode()
    )
    assert done.status == 0 and done.out == "public, main\n", done.err


def test_a_search_path_of_other_schemas_is_refused(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("shell", clinic.policy, "-c", "SET search_path = sales")
    assert done.codes == {"DP903"} and "no schema 'sales'" in done.err
    tables = {"ref.codes": {"public": True}, "plain": {"public": True}}
    policy = Policy.from_dict({"version": 1, "name": "p", "tables": tables})
    with pytest.raises(Rejected) as refusal:
        accept_schema(policy, "ref")
    assert refusal.value.diagnostics[0].help == ("write  `ref.codes`",)
    accept_schema(policy, "public")


def test_more_about_a_table(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("shell", clinic.policy, "--analyst", "ana", "-c", "\\d+ patients", "-c", "\\d+ visits", "-c", "\\d+")
    assert done.status == 0 and not clinic.ledger.exists()
    asked = {line.split("|")[0].strip(): line.split("|")[-1].strip() for line in done.out.splitlines() if "|" in line}
    assert asked["cost"] == asked["surcharge"] == "SUM, AVG, MEDIAN; COUNT(DISTINCT)"
    assert asked["town"] == "GROUP BY above a threshold, for δ; COUNT(DISTINCT)" and "MODE; GROUP BY" in asked["region"]
    assert "SUM" not in asked["patient_id"] and "SUM" not in asked["visit_id"]
    assert "one query: at most ε 1" in done.out and "left for you, of each patient: ε 3" in done.out
    assert "at most 12 rows per unit [enforced]" in asked["visits"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("median", "quantile_cont(x, 0.5)"), ("group by", "GROUP BY ROLLUP"), ("LEFT JOIN", "on the privacy unit"),
        ("row_number", "row's number"), ("percentile_cont", "WITHIN GROUP"), ("exists", "EXISTS"), ("mean", "avg(x"),
        ("interval", "INTERVAL 3 DAY"), ("count()", "Number of rows"), ("qualify", "released values only"),
    ],
)  # fmt: skip
def test_help_on_functions_and_clauses(dpsql: Call, clinic: Clinic, words: str, said: str) -> None:
    done = dpsql("shell", clinic.policy, "-c", f"\\h {words}")
    assert done.status == 0 and said in done.out, done.out


def test_help_on_a_misspelt_name(dpsql: Call, clinic: Clinic) -> None:
    assert "did you mean  \\h median" in dpsql("shell", clinic.policy, "-c", "\\h medain").err
    assert dpsql("shell", clinic.policy, "-c", "\\? some").codes == {"DP903"}
    whole = dpsql("shell", clinic.policy, "-c", "\\? all").out
    assert "\\conninfo" in whole and "\\conninfo" not in dpsql("shell", clinic.policy, "-c", "\\?").out
