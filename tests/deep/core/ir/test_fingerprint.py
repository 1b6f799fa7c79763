"""Fingerprints of plans are the same in every process."""

from __future__ import annotations

from tests.core.ir.test_fingerprint import DIFFERENT, POLICY, SAME
from tests.support.planning import planned, printed_by_processes


def test_it_is_the_same_in_every_process() -> None:
    """No part of it depends on Python's salted hashes or on addresses."""
    code = (
        "from tests.core.ir.test_fingerprint import *\n"
        "print([planned(sql, POLICY).hash for sql in [*DIFFERENT, *SAME[0], *SAME[1]]])"
    )
    here = [planned(sql, POLICY).hash for sql in [*DIFFERENT, *SAME[0], *SAME[1]]]
    assert printed_by_processes(code) == {f"{here}\n"}
