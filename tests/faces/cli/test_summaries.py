"""Summaries in the shell, in `dpsql query` and `dpsql explain`: made, listed, used, dropped, and what Tab offers."""

from __future__ import annotations

from dpsql.faces.editor.completion import complete
from dpsql.policy.load import load_policy
from tests.support.command_line import Call, Clinic

CREATE = "CREATE DP SUMMARY s ON patients (region, age) WITH (k = 1, epsilon = 0.5)"
COUNT = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


def test_the_shell_makes_lists_uses_and_drops_one(dpsql: Call, clinic: Clinic) -> None:
    script = (
        f"EXPLAIN {CREATE};",
        f"{CREATE};",
        "\\summaries",
        f"{COUNT};",
        "SHOW dpsql.summaries;",
        "DROP DP SUMMARY s;",
    )
    done = dpsql(
        "shell", clinic.policy, "--analyst", "ana", "--epsilon", "0.001", *[w for s in script for w in ("-c", s)]
    )
    assert done.status == 0, done.err
    assert "cost: ε 0.5" in done.out and "summary s is made: spent ε 0.5, of ε 0.5 in all" in done.out
    assert done.out.count("region, age") == 2 + done.out.count("CREATE DP SUMMARY s ON patients (region, age)")
    assert "spent nothing" in done.out + done.err and "from summary s of " in done.out + done.err
    assert "summary s is dropped" in done.out + done.err


def test_query_and_explain_take_the_statement(dpsql: Call, clinic: Clinic) -> None:
    looked = dpsql("explain", clinic.policy, CREATE)
    assert looked.status == 0 and looked.out.rstrip().endswith("cost: ε 0.5")
    elsewhere = dpsql("query", clinic.policy, f"EXPLAIN {CREATE}")
    assert elsewhere.codes == {"DP012"} and "leave EXPLAIN out:  dpsql explain POLICY SQL" in elsewhere.err
    made = dpsql("query", clinic.policy, CREATE, "--analyst", "ana")
    assert made.status == 0 and made.out == "summary s is made: spent ε 0.5, of ε 0.5 in all\n"
    again = dpsql("query", clinic.policy, CREATE, "--analyst", "ana")
    assert again.out == "summary s is made: spent nothing, of ε 0.5 in all\n"
    wrong = dpsql(
        "query", clinic.policy, "CREATE DP SUMMARY t ON patients (regio) WITH (epsilon = 1)", "--analyst", "ana"
    )
    assert wrong.status != 0 and wrong.codes == {"DP103"} and "^" in wrong.err
    dropped = dpsql("query", clinic.policy, "DROP DP SUMMARY s", "--analyst", "ana")
    assert dropped.status == 0 and "is dropped" in dropped.out


def test_tab_offers_the_statements(clinic: Clinic) -> None:
    found = [c.text for c in complete("CRE", 3, load_policy(clinic.policy))]
    assert found == ["CREATE DP SUMMARY", "CREATE DP COUNTER"]
