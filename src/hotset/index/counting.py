"""How many of some bits are set, for 64 rows at once: a bit of each row in a word, and a sum has an
array for each of its bits.

Where a word is a row numpy counts its bits in half the time; but here bits that nobody asks for are
not even read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 64
_WORD_BYTES = 8
Bits = NDArray[np.uint64]
"""A bit a row, 64 in a word, the first one lowest."""


def pack_bits(rows: NDArray[np.bool_]) -> Bits:
    """Up to the end of the last word there are no rows."""
    bits = np.packbits(rows, bitorder="little")
    return np.pad(bits, (0, -len(bits) % _WORD_BYTES)).view(np.dtype("<u8"))


def unpack_bits(bits: Bits) -> NDArray[np.intp]:
    """Where rows are set."""
    return (
        np.unpackbits(bits.view(np.uint8), bitorder="little").view(np.bool_).nonzero()[0]
    )  # 8 times as fast as of bytes


def clear_bits(bits: Bits, rows: NDArray[np.intp]) -> Bits:
    left = bits.copy()
    np.bitwise_and.at(
        left, rows // WORD_BITS, ~(np.uint64(1) << (rows % WORD_BITS).astype(np.uint64))
    )
    return left


def bit_sums(bits: Bits) -> list[Bits]:
    """How many of each column are set, lowest bit first. `bits` are used up, and one fewer than a
    power of two.

    As hardware adds: of three bits the sum stays and the carry goes to the next bit. Of so many
    none is left over.
    """
    every: list[Bits] = []
    while len(bits):
        carries = np.empty((len(bits) // 2, bits.shape[1]), np.uint64)
        differing = np.empty((len(bits) // 3, bits.shape[1]), np.uint64)
        made = 0
        while (third := len(bits) // 3) > 0:
            first, second, last = bits[:third], bits[third : 2 * third], bits[2 * third : 3 * third]
            differ, carry = differing[:third], carries[made : made + third]
            np.bitwise_xor(first, second, out=differ)
            np.bitwise_and(first, second, out=carry)
            np.bitwise_and(differ, last, out=first)
            np.bitwise_or(carry, first, out=carry)
            np.bitwise_xor(differ, last, out=last)  # beside those that are left, for the next round
            bits, made = bits[2 * third :], made + third
        every.append(bits[0])
        bits = carries
    return every


def least_sums(sums: Sequence[Bits], among: Bits, many: int) -> Bits:
    """Those rows whose sums are least: as many as are wanted, or more where the last ones have the
    same sum."""
    surely, perhaps, found = np.zeros_like(among), among, 0
    for bit in reversed(sums):
        high = perhaps & bit
        low = perhaps ^ high
        lower = int(np.add.reduce(np.bitwise_count(low), dtype=np.uint32))
        if found + lower >= many:
            perhaps = low
        else:
            surely |= low
            perhaps, found = high, found + lower
    return np.asarray(surely | perhaps)
