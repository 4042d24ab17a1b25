"""Where a knob's value is in its range, from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import msgspec
from msgspec import Struct, structs
from msgspec.inspect import FloatType, IntType, StructType, Type, UnionType

from hotset.nouns.knobs import Knobs
from hotset.typed import type_info

_WIDE = 5.0
"""A range that is this much longer than its lower end (or 1) is measured by ratios."""

_TIMES = 16.0
"""Of a wide range, from the default divided by this to the default times this: no session should
try a window of ten tokens."""


class KnobRange(Struct, frozen=True):
    """What a knob may be."""

    low: float
    high: float
    default: float
    is_wide: bool
    """Measured by ratios."""
    is_whole: bool
    """A whole number."""

    @property
    def prior(self) -> float:
        """Where the default is."""
        return self.position(self.default)

    def position(self, value: float) -> float:
        """Where a value is, from 0 to 1."""
        low, high, here = (self._measure(each) for each in (self.low, self.high, value))
        return max(0.0, min(1.0, (here - low) / (high - low)))

    def value(self, position: float) -> float:
        """The value at a position."""
        low, high = self._measure(self.low), self._measure(self.high)
        here = low + max(0.0, min(1.0, position)) * (high - low)
        value = math.expm1(here) if self.is_wide else here
        value = max(self.low, min(self.high, value))
        return round(value) if self.is_whole else float(f"{value:.6g}")

    def _measure(self, value: float) -> float:
        return math.log1p(value) if self.is_wide else value


@cache
def knob_ranges() -> Mapping[str, KnobRange]:
    """Every numeric knob of the catalogue, by dotted name."""
    return MappingProxyType(dict(_ranges(type_info(Knobs), Knobs(), "")))


def _ranges(kind: Type, values: Struct, group: str) -> list[tuple[str, KnobRange]]:
    assert isinstance(kind, StructType)
    found: list[tuple[str, KnobRange]] = []
    given = structs.asdict(values)
    for field in kind.fields:
        value, name = given[field.name], f"{group}{field.name}"
        inner = _plain(field.type)
        if isinstance(inner, StructType):
            found += _ranges(inner, value, f"{name}.")
        elif isinstance(inner, (IntType, FloatType)) and inner.ge is not None:
            assert inner.le is not None
            found.append((name, _range(inner, float(value))))
    return found


def _plain(kind: Type) -> Type:
    while isinstance(kind, msgspec.inspect.Metadata):
        kind = kind.type
    return kind if not isinstance(kind, UnionType) else kind.types[0]


def _range(kind: IntType | FloatType, default: float) -> KnobRange:
    low, high = float(kind.ge or 0.0), float(kind.le or 0.0)
    is_wide = high - low > _WIDE * max(1.0, low)
    if is_wide and default > 0:
        low, high = max(low, default / _TIMES), min(high, default * _TIMES)
    return KnobRange(low, high, default, is_wide, isinstance(kind, IntType))
