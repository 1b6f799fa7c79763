"""Rows of an answer as they come from a worker: compressed pieces, of which one at a time is unpacked.

*Claim.* An answer takes of the front the bytes of its pieces, which are counted, and the rows of one piece; clients
hold no more than MOST_OF_ALL and one answer for each worker, which comes before it is counted. *Why.* A worker makes
pieces of bounded size and gives no answer above a number of bytes; places, slices and turned-round slices are ranges of
numbers; what is counted is let go of with the pieces; an answer that comes when there is no room is let go of.
*When it would be false.* If somebody made a list of the rows. *Tested by* tests/faces/server/test_packed_rows.py,
tests/faces/server/test_gateway.py.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar, Final, overload
from weakref import WeakSet

from dpsql.faces.server.packed_values import pack, unpack
from dpsql.faces.server.statements import Value

PIECE: Final = 64 * 1024
"""Bytes of a piece before it is compressed; a row may have more."""
FEW: Final = 64
"""So many rows travel and stay as they are, if they are no more than a piece."""
MOST_BYTES: Final = 16_000_000
"""Of an answer, before it is compressed."""


MOST_OF_ACCOUNT: Final = 24_000_000
MOST_OF_ALL: Final = 96_000_000
"""Compressed bytes of the answers that the front holds: who holds more gets no further one."""


class TooManyBytes(Exception):
    """An answer has more bytes than a server gives."""


def pieces_of(rows: Iterable[Sequence[Value]]) -> Iterator[tuple[int, bytes]]:
    """Rows in compressed pieces, each with their number. Raises TooManyBytes."""
    texts, size, whole = list[str](), 0, 0
    for row in rows:
        text = json.dumps([pack(value) for value in row], ensure_ascii=True, separators=(",", ":"))
        texts.append(text)
        size, whole = size + len(text), whole + len(text)
        if whole > MOST_BYTES:
            raise TooManyBytes
        if size >= PIECE:
            yield len(texts), _compressed(texts)
            texts, size = [], 0
    if texts:
        yield len(texts), _compressed(texts)


def _compressed(texts: list[str]) -> bytes:
    return zlib.compress(f"[{','.join(texts)}]".encode("ascii"), 1)


class Pieces:
    """Pieces in order. account: who has asked for them. held: their bytes."""

    alive: ClassVar[WeakSet[Pieces]] = WeakSet()
    """All that this process holds."""

    def __init__(self, pieces: Sequence[tuple[int, bytes]], account: str = "") -> None:
        self._data = [data for _, data in pieces]
        self._ends = list(accumulate(count for count, _ in pieces))
        self._unpacked: tuple[int, list[tuple[Value, ...]]] = (-1, [])
        self.account, self.held = account, sum(map(len, self._data))
        Pieces.alive.add(self)

    @classmethod
    def crowded_for(cls, account: str) -> bool:
        """Whether there is no room for an answer more of this account's."""
        own = whole = 0
        for pieces in list(cls.alive):
            whole += pieces.held
            own += pieces.held if pieces.account == account else 0
        return own > MOST_OF_ACCOUNT or whole > MOST_OF_ALL

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def row(self, number: int) -> tuple[Value, ...]:
        """One of them; its piece is unpacked unless it is the one that was last."""
        piece, unpacked = bisect_right(self._ends, number), self._unpacked
        if unpacked[0] != piece:
            found: list[list[Any]] = json.loads(zlib.decompress(self._data[piece]))
            self._unpacked = unpacked = piece, [tuple(map(unpack, row)) for row in found]
        return unpacked[1][number - (self._ends[piece - 1] if piece else 0)]

    def written(self) -> list[tuple[int, bytes]]:
        """As they were given."""
        starts = [0, *self._ends]
        return [(end - start, data) for start, end, data in zip(starts, self._ends, self._data, strict=False)]


class PackedRows(Sequence[tuple[Value, ...]]):
    """Rows in pieces, or some of them in some order."""

    def __init__(self, pieces: Pieces, places: range | None = None) -> None:
        self.pieces = pieces
        self._places = range(len(pieces)) if places is None else places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> tuple[Value, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> PackedRows: ...
    def __getitem__(self, place: int | slice) -> tuple[Value, ...] | PackedRows:
        if isinstance(place, slice):
            return PackedRows(self.pieces, self._places[place])
        return self.pieces.row(self._places[place])

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return map(self.pieces.row, self._places)


def held_by(rows: Sequence[tuple[Value, ...]]) -> int:
    """About how many bytes of this process rows take."""
    return rows.pieces.held if isinstance(rows, PackedRows) else 64 * sum(map(len, rows))


def packed(rows: Sequence[tuple[Value, ...]]) -> Sequence[tuple[Value, ...]]:
    """Rows in pieces, unless they are few. Raises TooManyBytes."""
    found = list(pieces_of(rows))
    is_small = len(rows) <= FEW and len(found) <= 1 and all(_unpacked_size(data) <= PIECE for _, data in found)
    return rows if is_small else PackedRows(Pieces(found))


def _unpacked_size(data: bytes) -> int:
    """Of a piece, as far as it is no more than PIECE."""
    return len(zlib.decompressobj().decompress(data, PIECE + 1))
