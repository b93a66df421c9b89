"""Restrictions on inputs as users write them on one line: `finite,nonzero`, `exponents=-3..4`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from mmaprobe.smtmodel.inputs.admitted import Inputs

RESTRICTIONS = ("finite", "nonnegative", "nonzero", "normal", "products_below_two", "special")
WINDOW = "exponents=LOW..HIGH"


def parse_inputs(restrictions: str) -> Inputs:
    """The restrictions of a comma-separated list, which may be empty. Raises UnknownNameError, and ParameterError for
    an empty word, an impossible or second window, or restrictions that exclude each other."""
    from pydantic import ValidationError

    from mmaprobe.smtmodel.inputs.admitted import Inputs

    chosen: dict[str, Any] = {}
    for word in (part.strip() for part in restrictions.split(",") if restrictions):
        window = re.fullmatch(r"exponents=(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})", word)
        if window:
            if "exponents" in chosen:
                raise ParameterError("inputs", f"{word}: there is another window before it")
            low, high = map(int, window.groups())
            if low > high:
                raise ParameterError("inputs", f"{word}: {low} is above {high}, no number is admitted")
            chosen["exponents"] = {"min": low, "max": high}
        elif word in RESTRICTIONS:
            chosen[word] = True
        elif not word:
            known = ", ".join((*RESTRICTIONS, WINDOW))
            raise ParameterError("inputs", f"{restrictions!r}: a word is missing; known: {known}")
        else:
            raise UnknownNameError("restriction of inputs", word, (*RESTRICTIONS, WINDOW))
    try:
        return Inputs.model_validate(chosen)
    except ValidationError as problem:
        raise ParameterError("inputs", problem.errors()[0]["msg"].removeprefix("Value error, ")) from None
