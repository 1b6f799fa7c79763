"""What is asked is a ceiling unless a flag lifts it; the refusal names the flag."""

from __future__ import annotations

import json

from tests.faces.cli.test_fresh import COUNT
from tests.support.command_line import Call, Clinic


def test_what_is_asked_is_a_ceiling_unless_a_flag_lifts_it(dpsql: Call, clinic: Clinic) -> None:
    """EXPLAIN prints what the query charges, with the flag and without it."""
    first = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.4", "--analyst", "ana", "--format", "csv")
    asked = (clinic.policy, COUNT, "--epsilon", "0.1")
    dearer = "cost: ε 0.4 of each patient (asked: ε 0.1 of each patient)"
    for flag, line, spent in (("--allow-dearer", dearer, "0.4"), ("--no-allow-dearer", "cost: nothing", "nothing")):
        explained = dpsql("explain", *asked, flag)
        assert line in explained.out and explained.status == 0
        told = json.loads(dpsql("explain", *asked, flag, "--format", "json").out)
        assert told["asked"]["patient"]["epsilon"] == 0.1
        done = dpsql("query", *asked, flag, "--format", "csv")
        assert done.out == first.out and f"spent {'ε ' if spent != 'nothing' else ''}{spent}" in done.err


def test_the_refusal_of_an_exhausted_total_names_the_flag(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("total: {epsilon: 10, delta: 1e-6}", "total: {epsilon: 0.4, delta: 1e-6}")
    first = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.4", "--analyst", "ana", "--format", "csv")
    refused = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1")
    assert refused.status == 5 and refused.codes == {"DP403"}
    assert (
        "stored answers would do, for ε 0.4 of this account:  run(allow_dearer=True)  or  --allow-dearer" in refused.err
    )
    done = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1", "--allow-dearer", "--format", "csv")
    assert done.out == first.out
