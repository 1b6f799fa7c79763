"""A head that is torn at any byte falls back to the point before."""

from __future__ import annotations

from pathlib import Path

from dpsql.core.ledger.chain.hash_chain import Point
from dpsql.core.ledger.chain.head import Head

# The head's two slots -------------------------------------------------------------------------------------------------


def test_a_torn_head_falls_back_to_the_point_before(tmp_path: Path) -> None:
    head = Head(tmp_path / "head", 1)
    points = [Point(i, f"{i:064x}") for i in range(1, 5)]
    for point in points:
        head.advance(point.sequence, lambda point=point: point)  # type: ignore[misc]
        assert head.read() == point
    intact = head.path.read_bytes()
    for at in range(1024):
        torn = bytearray(intact)
        torn[at] ^= 1
        head.path.write_bytes(bytes(torn))
        assert head.read() in points[2:]
    head.path.write_bytes(intact[:700])
    assert head.read() in points[2:]
    head.advance(5, lambda: Point(5, "f" * 64))
    assert head.read() == Point(5, "f" * 64)
