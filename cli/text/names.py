"""Text about the unit that was identified: its names, the GPUs that have it, and how far the device was sampled."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.cli.options import say
from mmaprobe.smtmodel.base.wording import counted, some_of
from mmaprobe.smtmodel.tables.gpus import gpus_of


def say_names(names: Sequence[str], why: str) -> None:
    """Print the names of the identified unit, the reason why these units are equal, and the GPUs that have them."""
    also = f" (also: {some_of(names[1:])})" if names[1:] else ""
    say(f"the unit found is {names[0]}{also}, proved equal {why.removeprefix('proved ')}")
    say_gpus(names)


def sampled(validated: int) -> str:
    """A sentence on how far a device was sampled: nothing is proved about the device itself."""
    vectors = counted(validated, "vector")
    return f"the device was sampled: {vectors} of validation without a difference from the unit found"


def say_gpus(names: Sequence[str]) -> None:
    """Print the GPUs that have these units, a line for each architecture."""
    for arch in dict.fromkeys(name.partition("/")[0] for name in names):
        if gpus := gpus_of(arch):
            say(f"  {arch}: {some_of(gpus)}")
