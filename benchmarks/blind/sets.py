"""Every blind set, by its name."""

from __future__ import annotations

from benchmarks.blind.eighth import EIGHTH
from benchmarks.blind.fifth import FIFTH
from benchmarks.blind.first import FIRST
from benchmarks.blind.fourth import FOURTH
from benchmarks.blind.ninth import NINTH
from benchmarks.blind.second import SECOND
from benchmarks.blind.seventh import SEVENTH
from benchmarks.blind.sixth import SIXTH
from benchmarks.blind.tenth import TENTH
from benchmarks.blind.third import THIRD

SETS = {
    "first": FIRST,
    "second": SECOND,
    "third": THIRD,
    "fourth": FOURTH,
    "fifth": FIFTH,
    "sixth": SIXTH,
    "seventh": SEVENTH,
    "eighth": EIGHTH,
    "ninth": NINTH,
    "tenth": TENTH,
}
UNITS = {name: unit for some in SETS.values() for name, unit in some.units.items()}
