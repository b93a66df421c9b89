"""Families: sets of candidate models of one signature, as the product of parameter values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from smtmodel.accumulator import PARAMETERS, Accumulator, check_parameter, format_parameter, parse_parameter
from smtmodel.dot import Model
from smtmodel.errors import InputError, MmaprobeError, ParameterError, UnknownNameError
from smtmodel.formats import FORMATS
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.reference import parse_reference, with_parameters
from smtmodel.wording import counted
from smtmodel.yamlfile import YamlFile, read_file, read_yaml, validate

#: the order in which parameters are chosen, and when one has an effect, given those chosen before
_EXACT = "exact"


def _fused(v: Mapping[str, Any]) -> bool:
    return bool(v["operation"] == "fused_dot")


def _cuts(v: Mapping[str, Any]) -> bool:
    return _fused(v) and v["fraction_bits"] != _EXACT


RELEVANT: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "grouping": lambda v: _fused(v) or v["operation"] == "add_mul",
    "group": lambda v: v["grouping"] in ("pairwise", "scale_blocks"),
    "fraction_bits": _fused,
    "align_rounding": _cuts,
    "carry_bits": _cuts,
    "exponent_floor": _cuts,
    "floor_applies_to": lambda v: v["exponent_floor"] is not None,
    "product": lambda v: v["operation"] in ("fused_dot", "exact_dot"),
    "product_rounding": lambda v: str(v["product"]).startswith("rounded_"),
    "product_overflow": lambda v: v["operation"] in ("fused_dot", "exact_dot"),
    "addend": lambda v: v["operation"] in ("fused_dot", "exact_dot"),
    "late_fraction_bits": lambda v: v["addend"] == "late",
    "late_sum_bits": lambda v: v["addend"] == "late",
    "late_rounding": lambda v: v["addend"] == "late",
    "late_small_addend": lambda v: v["addend"] == "late",
    "block_order": lambda v: v["operation"] in ("fused_dot", "exact_dot") and v["block"] < v["length"],
    "partials": lambda v: v["operation"] in ("fused_dot", "exact_dot"),
}
ORDER = (
    "length", "operation", "addend", "partials", "grouping", "group", "block", "fraction_bits", "align_rounding",
    "carry_bits", "output", "product", "exponent_floor",
)  # fmt: skip


MOST_VALUES, MOST_COMBINATIONS = 1000, 1_000_000  # of one parameter; of a family


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Formats(_Strict):
    a: str
    b: str
    c: str
    d: str


class _FamilyFile(_Strict):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str = ""
    formats: _Formats
    length: StrictInt
    parameters: dict[str, Any]
    exclude: list[dict[str, Any]] = Field(default=[], alias="except")


@dataclass(frozen=True)
class Impossible:
    """The combinations of a family that no unit can have, and how many there are of each reason."""

    combinations: int  # possible ones included
    reasons: Mapping[str, int]

    @property
    def count(self) -> int:
        return sum(self.reasons.values())

    def text(self, most: int = 3) -> str:
        """How many were left out and why: the `most` frequent reasons."""
        parts = [f"{count} x {reason}" for reason, count in list(self.reasons.items())[:most]]
        if len(self.reasons) > most:
            rest = len(self.reasons) - most
            parts.append(f"{sum(list(self.reasons.values())[most:])} for {counted(rest, 'other reason')}")
        return f"{self.count} of {counted(self.combinations, 'combination')} impossible: {'; '.join(parts)}"


@dataclass(frozen=True)
class Family:
    """Candidates for one unit: `values` of every parameter, less the combinations that match an exclusion. `file`: the
    one that errors name."""

    id: str
    base: Model
    values: dict[str, tuple[Any, ...]]
    excluded: tuple[dict[str, tuple[Any, ...]], ...] = ()
    about: str = ""
    file: YamlFile | None = field(default=None, compare=False, repr=False)

    @property
    def formats(self) -> tuple[str, ...]:
        """Of a, b, c and d; e8m13 travels as f32."""
        return _formats(self.base)

    def candidates(self) -> list[Model]:
        """The models of the family, each once: a parameter without effect in one keeps its default there.

        Raises InputError if there are none.
        """
        models, impossible = self._grid
        if not models:
            reason = impossible.text() if impossible.count else "every combination is excluded by `except`"
            raise self._error(f"no candidate is left for {self.base.reference}: {reason}")
        return list(models)

    @property
    def impossible(self) -> Impossible:
        """The combinations that are no candidates because no unit can have them."""
        return self._grid[1]

    @cached_property
    def _grid(self) -> tuple[list[Model], Impossible]:
        found: dict[Accumulator, Model] = {}
        reasons: Counter[str] = Counter()
        combinations = 0
        rest = [name for name in PARAMETERS if name not in ORDER]
        for values in self._combinations([*ORDER, *rest], {}):
            combinations += 1
            if combinations > MOST_COMBINATIONS:
                raise ParameterError("parameters", f"more than {MOST_COMBINATIONS:,} combinations: leave values out")
            if values is None:
                continue
            try:
                accumulator = Accumulator(**values)
            except ParameterError as error:
                reasons[str(error)] += 1
                continue
            if accumulator not in found:
                found[accumulator] = replace(self.base, reference=self._reference(accumulator), accumulator=accumulator)
        return list(found.values()), Impossible(combinations, dict(reasons.most_common()))

    def _error(self, message: str) -> InputError:
        key = ("parameters",)
        return InputError(message, key=key[0]) if self.file is None else self.file.error(key, message)

    def _combinations(self, names: list[str], chosen: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
        """Every combination; None for those that an exclusion leaves out together."""
        if not names:
            yield dict(chosen)
            return
        name, rest = names[0], names[1:]
        matters = name not in RELEVANT or RELEVANT[name](chosen)
        for value in self.values.get(name, (_default(name),)) if matters else (_default(name),):
            more = {**chosen, name: value}
            if self._excludes(more, name):
                yield None
            else:
                yield from self._combinations(rest, more)

    def _excludes(self, chosen: Mapping[str, Any], last: str) -> bool:
        """Whether an exclusion that mentions the last parameter holds, all of its parameters being chosen."""
        return any(
            last in rule and all(key in chosen and chosen[key] in values for key, values in rule.items())
            for rule in self.excluded
        )

    def _reference(self, accumulator: Accumulator) -> str:
        """The base's instruction with every parameter in which the candidate differs from it."""
        changes = [n for n in PARAMETERS if getattr(accumulator, n) != getattr(self._instruction, n)]
        name = self.base.reference.partition("@")[0]
        parts = [f"{n}={format_parameter(getattr(accumulator, n))}" for n in changes]
        return f"{name}@{','.join(parts)}" if parts else name

    @cached_property
    def _instruction(self) -> Accumulator:
        """What the base's name stands for, whatever was changed in the base itself."""
        return parse_reference(self.base.reference.partition("@")[0]).accumulator

    def retargeted(self, model: Model) -> Family:
        """The same parameters for the signature (formats, length, scale factors) of another model.

        Blocks that do not divide its length are dropped; one block of the whole length is always a candidate.
        """
        accumulator = model.accumulator
        length, width = accumulator.length, accumulator.output_format.width
        outputs = tuple(name for name in self.values["output"] if FORMATS[name].width == width)
        blocks = {block for block in self.values["block"] if length % block == 0} | {length}
        fixed = {name: (getattr(accumulator, name),) for name in ("length", "scale_format", "scale_block")}
        changed = {**fixed, "block": tuple(sorted(blocks)), "output": outputs or (accumulator.output,)}
        base = replace(model, reference=model.reference.partition("@")[0])
        return replace(self, base=base, values={**self.values, **changed})


def _formats(row: Model) -> tuple[str, ...]:
    output = row.accumulator.output
    return row.a.name, row.b.name, row.c.name, "f32" if output == "e8m13" else output


def _default(name: str) -> Any:
    defaults = {"operation": "fused_dot", "fraction_bits": _EXACT, "output_rounding": "toward_zero"}
    return defaults.get(name, Accumulator.__dataclass_fields__[name].default)


def build_family(file: YamlFile) -> Family:
    """The family that a file describes. Raises InputError with file, line and key."""
    parsed = validate(file, _FamilyFile)
    for side, fmt in parsed.formats.model_dump().items():
        if fmt not in FORMATS:
            raise file.error(("formats", side), str(UnknownNameError("format", fmt, FORMATS)))
    try:
        check_parameter("length", parsed.length)
    except ParameterError as error:
        raise file.error(("length",), str(error).removeprefix("length: ")) from None
    base = _base(file, parsed)
    values = {name: _values(file, ("parameters", name), name, given) for name, given in parsed.parameters.items()}
    values.setdefault("block", (parsed.length,))
    outputs = ("f32", "e8m13") if parsed.formats.d == "f32" else (parsed.formats.d,)
    chosen = values.setdefault("output", (parsed.formats.d,))
    if not set(chosen) <= set(outputs):
        raise file.error(("parameters", "output"), f"formats.d is {parsed.formats.d}: it takes {', '.join(outputs)}")
    values["length"] = (parsed.length,)
    for name in ("scale_format", "scale_block"):
        values.setdefault(name, (getattr(base.accumulator, name),))
    excluded = tuple(
        {name: _values(file, ("except", index, name), name, given) for name, given in rule.items()}
        for index, rule in enumerate(parsed.exclude)
    )
    return Family(parsed.id, _of_length(base, values), values, excluded, parsed.about, file)


def _base(file: YamlFile, parsed: _FamilyFile) -> Model:
    """An instruction of the table with the family's formats, which names its vectors."""
    wanted = tuple(parsed.formats.model_dump().values())
    best = None
    for reference, row in INSTRUCTIONS.items():
        scaled = "scale_format" in parsed.parameters
        if _formats(parse_reference(reference)) != wanted or (row.accumulator.scale_format is not None) != scaled:
            continue
        if best is None or row.accumulator.length == parsed.length:
            best = reference
            if row.accumulator.length == parsed.length:
                break
    if best is None:
        raise file.error(("formats",), f"no instruction of the table takes {' '.join(wanted)}")
    return parse_reference(best)


def _of_length(base: Model, values: Mapping[str, tuple[Any, ...]]) -> Model:
    """The base with the family's length; where the table has none of it, as one plain step."""
    [length] = values["length"]
    if base.length == length:
        return base
    plain = {"operation": "fused_dot", "block_order": "contiguous", "grouping": "none", "addend": "fused",
             "scale_block": next((size for size in values["scale_block"] if length % size == 0), 1)}  # fmt: skip
    changes = {name: value for name, value in plain.items() if getattr(base.accumulator, name) != value}
    return with_parameters(base, {"length": length, "block": length, **changes})


def _values(file: YamlFile, path: tuple[str | int, ...], name: str, given: Any) -> tuple[Any, ...]:
    if name not in PARAMETERS:
        raise file.error(path, str(UnknownNameError("parameter", name, PARAMETERS)))
    if isinstance(given, dict):
        if set(given) != {"from", "to"} or not all(type(edge) is int for edge in given.values()):
            raise file.error(path, "a range is written {from: LOW, to: HIGH}")
        if given["to"] - given["from"] >= MOST_VALUES:
            raise file.error(path, f"a range of more than {MOST_VALUES:,} values")
        given = list(range(given["from"], given["to"] + 1))
    if not isinstance(given, list):
        given = [given]
    if not given:
        raise file.error(path, "no values")
    found = []
    for index, value in enumerate(given):
        try:
            parsed = parse_parameter(name, value)
            check_parameter(name, parsed)
        except MmaprobeError as error:
            raise file.error((*path, index), str(error).removeprefix(f"{name}: ")) from None
        found.append(parsed)
    return tuple(dict.fromkeys(found))


@cache
def families() -> dict[str, Family]:
    """Every shipped family by id."""
    found = {}
    for entry in sorted((files("hypotheses") / "families").iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".yaml"):
            family = build_family(read_yaml(entry.read_text(encoding="utf-8"), str(entry)))
            found[family.id] = family
    return found


def family_named(name: str) -> Family:
    """A family by id, or from a file by its path. Raises UnknownNameError or InputError."""
    if name in families():
        return families()[name]
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return build_family(read_yaml(read_file(Path(name)), name))
    raise UnknownNameError("family", name, families(), hint=" (`mmaprobe list families` shows all)")
