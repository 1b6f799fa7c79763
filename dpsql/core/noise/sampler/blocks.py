"""Exact draws of integer noise with P(Z = z) ∝ e^(-rate·|z|^power) on all integers, for power 1 and 2.

Construction. The sizes 0, 1, 2, … are cut into blocks of 2^N. One proposal is

    a block k ≥ 0, with probability proportional to the weight of the block's first size, e^(-rate·(k·2^N)^power),
    a place j in the block, uniform on [0, 2^N), and a fair sign,

and is accepted with probability e^-x, x = rate·((k·2^N + j)^power - (k·2^N)^power): the weight of the size proposed
relative to the weight of its block's first. Minus zero is refused, or zero would come twice. Otherwise one more
proposal is made.

Proof. A size s = k·2^N + j arises from one (k, j) only. It is proposed with either sign and accepted with probability
½·2^-N·e^(-rate·(k·2^N)^power)/S·e^-x = e^(-rate·s^power)/(S·2^(N+1)), S the sum over all blocks: proportional to the
weight wanted, with one factor for all s. The first accepted of independent proposals has the distribution of an
accepted one. Nothing is truncated: k has no largest value, and so has no noise. (Proposing in blocks and correcting by
rejection is the idea of Karney, Sampling exactly from the normal distribution, 2016; the blocks being powers of two,
no division and no rejection is needed for a uniform place. Any N is right; N decides the speed alone.)

Decisions. k and "accepted" compare a uniform real, given by its binary digits, with numbers known by enclosures. Both
look at a few digits in bulk and decide only where every continuation of the digits has the same outcome; where not,
more digits are drawn and more digits of the exact numbers computed, as often as it takes. No floating-point number
occurs. The number of proposals is independent of the value that is accepted.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.sampler.entropy import BitSource, Words
from dpsql.core.noise.sampler.exponential_function import LIMIT, ONE, POINT, SHORT, exp_below, exp_bounds, exp_digits

BATCH = 1 << 14
"""Draws at a time, so that the arrays stay in the cache."""
_OPEN = 255  # in the table of blocks: these digits alone do not decide
_RATE_BITS = 36
_SLACK = 16
_GUARD_BITS = 32  # of the blocks' sums, beyond the digits asked for


class Blocks:
    """The noise of one rate and power: its tables and the way to draw from them. Immutable but for a cache.

    rate > 0; power: 1 (Laplace) or 2 (Gaussian).
    low_digits: N, at most 54. By default the largest with rate·(2^N)^power ≤ (1/4)^power/power (but at least 0): a
    block is an eighth to a quarter of the scale wide, about nine in ten proposals are accepted, and below a scale of 8
    no uniform place and no acceptance has to be drawn.
    block_bits, accept_bits (≤ 32), more_bits: how many digits are drawn for a block, for an acceptance, and for either
    where the digits so far do not decide. They have no influence on the distribution.
    """

    def __init__(
        self,
        rate: Fraction,
        power: Literal[1, 2],
        low_digits: int | None = None,
        block_bits: int = 16,
        accept_bits: int = 32,
        more_bits: int = 48,
    ) -> None:
        self.rate, self.power = rate, power
        self.low_digits = _low_digits(rate, power) if low_digits is None else low_digits
        self.block_bits, self.accept_bits, self.more_bits = block_bits, accept_bits, more_bits
        self.step = rate * (1 << self.low_digits) ** power
        """a: a block's first size weighs e^(-a·k^power)."""
        self._sums: dict[int, tuple[list[int], list[int]]] = {}
        below, above = self.sums(block_bits)
        self.table = self._table(below, above)
        self._reach = self._farthest()
        self._rate_fixed = np.uint64(int(self.step * (1 << _RATE_BITS)) if self._reach >= 0 else 0)

    def _farthest(self) -> int:
        """The largest block whose acceptance may be decided in bulk; -1 for none. See `_exponent`."""
        if self.power == 1:
            return 1 << 60 if self.step <= LIMIT else -1
        return min(2047, int((LIMIT / self.step - 1) / 2)) if self.step <= 2 else -1

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent draws. Raises ValueError for a negative count."""
        if count < 0:
            raise ValueError("n must be ≥ 0")
        drawn = np.zeros(count, np.int64)
        for start in range(0, count, BATCH):
            missing = np.arange(start, min(start + BATCH, count))
            while missing.size:
                value, accepted = self.propose(missing.size, source)
                if value.dtype != drawn.dtype:
                    drawn = drawn.astype(object)
                drawn[missing[accepted]] = value[accepted]
                missing = missing[~accepted]
        return Integers(drawn)

    def propose(self, count: int, source: BitSource) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Proposals, and which of them are accepted."""
        block = self.blocks(count, source)
        place_and_sign = source.words(count, self.low_digits + 1)
        minus = (place_and_sign & 1).astype(np.bool_)
        if self.low_digits == 0:
            size = block
            accepted = ~(minus & (size == 0))
        else:
            place = (place_and_sign >> 1).astype(np.uint64)
            if int(block.max()) >> (62 - self.low_digits):  # beyond 64 bits: unheard of, but possible
                size = block.astype(object) * (1 << self.low_digits) + place.astype(object)
            else:
                size = (block << self.low_digits) + place.view(np.int64)
            accepted = self.accept(block, place, source) & ~(minus & (size == 0))
        return np.where(minus, -size, size), accepted

    # --- the block ---------------------------------------------------------------------------------------------------

    def blocks(self, count: int, source: BitSource) -> NDArray[np.int64]:
        """Independent k ≥ 0 with P(k) = e^(-a·k^power)/S: the k with F(k-1) ≤ U < F(k), U uniform, F(k) = P(≤ k)."""
        words = source.words(count, self.block_bits)
        block = self.table[words].astype(np.int64)
        tied = np.flatnonzero(block == _OPEN)
        if tied.size:
            more = source.words(tied.size, self.more_bits).tolist()
            for i, word, digits in zip(tied.tolist(), words[tied].tolist(), more, strict=True):
                block[i] = self._settle_block(word << self.more_bits | digits, source)
        return block

    def _settle_block(self, word: int, source: BitSource) -> int:
        bits = self.block_bits + self.more_bits
        while True:
            below, above = self.sums(bits)
            least, most = bisect_right(above, word), bisect_right(below, word)
            if least == most < len(below):
                return least
            word = word << self.more_bits | int(source.words(1, self.more_bits)[0])
            bits += self.more_bits

    def _table(self, below: list[int], above: list[int]) -> Words:
        """For all words of block_bits bits the block they decide on, or _OPEN. below, above: `sums` of block_bits."""
        table = np.full(1 << self.block_bits, _OPEN, np.uint8)
        start = 0
        for k, (least, most) in enumerate(zip(below, above, strict=True)):
            if k < _OPEN:
                table[start : max(start, least)] = k
            start = most
        return table

    def sums(self, bits: int) -> tuple[list[int], list[int]]:
        """Integers below[k] ≤ 2^bits·F(k) ≤ above[k] for k = 0, 1, … while the rest matters.

        The terms come from t(k+1) = t(k)·r(k), r(k+1) = r(k)·e^(-2a) for power 2 and = r(k) for power 1, each rounded
        outwards. After the last term t(K) all further ones add up to at most t(K)·(r + r² + …), r = e^-a ≥ every later
        ratio, and r/(1-r) = 1/(e^a - 1) ≤ 1/a.
        """
        if bits in self._sums:
            return self._sums[bits]
        unit = bits + _GUARD_BITS
        one = 1 << unit
        ratio_lo, ratio_hi = exp_bounds(self.step, unit)
        bend_lo, bend_hi = exp_bounds(2 * self.step, unit) if self.power == 2 else (one, one)
        term_lo = term_hi = one
        total_lo, total_hi = [one], [one]
        negligible = 16 + int(2 / self.step)  # terms rounded up stop falling at 1/(1-r) ≤ 1 + 1/a units
        while term_hi > negligible:
            term_lo, term_hi = term_lo * ratio_lo >> unit, -(-term_hi * ratio_hi >> unit)
            ratio_lo, ratio_hi = ratio_lo * bend_lo >> unit, -(-ratio_hi * bend_hi >> unit)
            total_lo.append(total_lo[-1] + term_lo)
            total_hi.append(total_hi[-1] + term_hi)
        whole_lo, whole_hi = total_lo[-1], total_hi[-1] + int(term_hi / self.step) + 1
        below = [(t << bits) // whole_hi for t in total_lo]
        above = [min(1 << bits, -(-(t << bits) // whole_lo)) for t in total_hi]
        self._sums[bits] = below, above
        return below, above

    # --- the acceptance ----------------------------------------------------------------------------------------------

    def accept(self, block: NDArray[np.int64], place: Words, source: BitSource) -> NDArray[np.bool_]:
        """Entry i is True with probability e^-x, x the exponent of (block[i], place[i]).

        With p = e^-x and P from `exp_below`, 2^ONE·p < P + SHORT because the fixed-point exponent is at most x, and
        2^ONE·p ≥ P·e^(-_SLACK/2^POINT) ≥ P - _SLACK·2^(ONE-POINT) because it falls short of x by at most _SLACK units.
        The uniform number begins with `word`; it lies in [word, word + 1)·2^-accept_bits. One in a million is open.
        """
        word = source.words(block.size, self.accept_bits)
        width = np.uint64(1 << (ONE - self.accept_bits))
        start = word.astype(np.uint64) * width
        bound = exp_below(self._exponent(block, place))
        near = block <= self._reach
        # Written without a subtraction, which could fall below zero.
        accepted: NDArray[np.bool_] = near & (start + width + np.uint64(_SLACK << (ONE - POINT)) <= bound)
        refused = near & (start >= bound + np.uint64(SHORT))
        for i in np.flatnonzero(~(accepted | refused)).tolist():
            accepted[i] = self._settle_accept(int(block[i]), int(place[i]), int(word[i]), source)
        return accepted

    def _exponent(self, block: NDArray[np.int64], place: Words) -> Words:
        """Fixed-point X with X ≤ 2^POINT·x ≤ X + _SLACK, for blocks up to `_reach`; for others some number in range.

        Let y = j/2^N, G = 2^POINT, Y = ⌊G·y⌋. x = a·v with v = y (power 1) or v = y·(y + 2k) (power 2), and V = Y or
        V = ⌊Y·(Y + 2kG)/G⌋ has V ≤ G·v < V + 2 + (2k + 1): the floor takes less than 1, and y - Y/G < 1/G takes less
        than (2y + 2k)/G ≤ (2k + 2)/G. With A = ⌊a·2^36⌋, X = ⌊V·A/2^36⌋ is short by less than a·(2k + 3) from V, by
        less than G·v/2^36 from A, by less than 1 from the floor. As a ≤ 2, x < 8 and k < 2048 that is less than
        (8 + 2·2) + 1 + 1 < 16; for power 1, a·1 + 1 + 1 ≤ 10. V·A ≤ x·2^60 < 2^63 and Y·(Y + 2kG) < 2^60: no overflow.
        """
        shift = self.low_digits - POINT
        y = place >> np.uint64(shift) if shift >= 0 else place << np.uint64(-shift)
        if self.power == 2:
            k = np.clip(block, 0, max(0, self._reach)).view(np.uint64)
            y = y * (y + (k << np.uint64(POINT + 1))) >> np.uint64(POINT)
        exponent: Words = y * self._rate_fixed >> np.uint64(_RATE_BITS)
        return exponent

    def _settle_accept(self, block: int, place: int, word: int, source: BitSource) -> bool:
        """The same decision for one proposal by the exact digits of e^-x, and more digits of the uniform number."""
        first = block << self.low_digits
        x = self.rate * ((first + place) ** self.power - first**self.power)
        if x == 0:
            return True
        bits = self.accept_bits
        while True:
            digits = exp_digits(x, bits)
            if word != digits:
                return word < digits
            word = word << self.more_bits | int(source.words(1, self.more_bits)[0])
            bits += self.more_bits


def _low_digits(rate: Fraction, power: int) -> int:
    """The largest N ≥ 0 with rate·(2^N)^power ≤ (1/4)^power/power, or 0: 2^N ≤ a quarter of the scale."""
    room = int(1 / (4**power * power * rate))  # (2^N)^power ≤ room
    return max(0, (room.bit_length() - 1) // power)
