"""Addresses are the same in every process."""

from __future__ import annotations

from tests.support.planning import printed_by_processes


def test_the_same_address_in_every_process() -> None:
    """Hash seeds and processes have no influence, or a stored answer would be lost."""
    code = (
        "from tests.answers.stored.test_address import addresses\n"
        "print([sorted(a) for s in ('SELECT kind, AVG(y) FROM t GROUP BY kind', 'SELECT word FROM t GROUP BY word')"
        " for a in addresses(s)])"
    )
    assert len(printed_by_processes(code)) == 1
