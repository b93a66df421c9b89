"""Families: sets of candidate models of one signature, a union of grids over the functions of smtmodel/functions.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from hypotheses.retarget import without_idle
from smtmodel.accumulator import PARAMETERS, Accumulator, check_parameter, format_parameter, parse_parameter
from smtmodel.dot import Model
from smtmodel.errors import InputError, MmaprobeError, ParameterError, UnknownNameError
from smtmodel.formats import format_named
from smtmodel.functions import FUNCTIONS, FamilyFunction
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.reference import parse_reference, with_parameters
from smtmodel.wording import counted
from smtmodel.yamlfile import YamlFile, read_file, read_yaml, validate

MOST_VALUES, MOST_COMBINATIONS = 1000, 1_000_000  # of one parameter; of a family
SIGNATURE = ("length", "scale_format", "scale_block")
ADDENDS = {"fused": "t-fdpa", "after": "emulated-fp8"}  # what `parameters` may choose
NEW_SPELLING = "grids over other families stand under `candidates`, each with its `family` (docs/identify.md)"
_DEFAULTS = Accumulator(length=1, block=1)


#: the parameters that say in which order and in how many places a candidate adds, and what a sum keeps
STEPS = ("length", "block", "block_order", "operation", "grouping", "group", "partials", "addend", "fraction_bits",
         "align_rounding", "late_fraction_bits", "scale_format")  # fmt: skip


def steps_of(model: Model) -> tuple[Any, ...]:
    """What candidates of one family have in common that add in the same steps."""
    return tuple(getattr(model.accumulator, name) for name in STEPS)


def parameters_of(model: Model) -> Mapping[str, Any]:
    """The values of a candidate's parameters by name."""
    return vars(model.accumulator)


YamlPath = tuple[str | int, ...]


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
    parameters: dict[str, Any] | None = None  # one grid over T-FDPA, chained or with the addend after
    candidates: list[dict[str, Any]] | None = None  # grids, each with its `family`
    exclude: Any = Field(default=None, alias="except")  # of earlier versions


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
class Grid:
    """Every combination of some values of a function's parameters; `signature` holds what the formats fix."""

    function: FamilyFunction
    values: Mapping[str, tuple[Any, ...]]
    signature: Mapping[str, Any]

    def combinations(self) -> Iterator[dict[str, Any]]:
        names = [name for name in self.values if name not in self.signature]
        for row in product(*(self.values[name] for name in names)):
            yield dict(zip(names, row, strict=True)) | dict(self.signature)

    @property
    def size(self) -> int:
        return prod(len(values) for name, values in self.values.items() if name not in self.signature)

    def values_of(self, name: str) -> tuple[Any, ...]:
        """The values that a parameter takes in the grid."""
        given = self.function.fixed if name in self.function.fixed else self.signature
        return (given[name],) if name in given else self.values.get(name, (getattr(_DEFAULTS, name),))


@dataclass(frozen=True)
class Family:
    """Candidates for one unit: a union of grids. `file`: the one that errors name."""

    id: str
    base: Model
    grids: tuple[Grid, ...]
    about: str = ""
    file: YamlFile | None = field(default=None, compare=False, repr=False)

    @property
    def formats(self) -> tuple[str, ...]:
        """Of a, b, c and d; e8m13 travels as f32."""
        return _formats(self.base)

    @cached_property
    def values(self) -> dict[str, tuple[Any, ...]]:
        """What the candidates differ in, and what the family's file gives: parameter -> its values."""
        listed = {name for grid in self.grids for name in (*grid.values, *grid.signature)}
        chosen = {name: tuple(dict.fromkeys(value for grid in self.grids for value in grid.values_of(name)))
                  for name in PARAMETERS}  # fmt: skip
        return {name: values for name, values in chosen.items() if name in listed or len(values) > 1}

    def candidates(self) -> list[Model]:
        """The models of the family, each once: a parameter without effect in one keeps its default there.

        Raises InputError if there are none.
        """
        models, impossible = self._models
        if not models:
            raise self._error(f"no candidate is left for {self.base.reference}: {impossible.text()}")
        return list(models)

    @property
    def impossible(self) -> Impossible:
        """The combinations that are no candidates because no unit can have them."""
        return self._models[1]

    @cached_property
    def _models(self) -> tuple[list[Model], Impossible]:
        combinations = sum(grid.size for grid in self.grids)
        if combinations > MOST_COMBINATIONS:
            raise self._error(f"more than {MOST_COMBINATIONS:,} combinations: leave values out")
        found: dict[Accumulator, Model] = {}
        reasons: Counter[str] = Counter()
        for grid in self.grids:
            for values in grid.combinations():
                try:
                    accumulator = without_idle(grid.function.accumulator(values))
                except ParameterError as error:
                    reasons[str(error)] += 1
                    continue
                if accumulator not in found:
                    model = replace(self.base, reference=self._reference(accumulator), accumulator=accumulator)
                    found[accumulator] = model
        return list(found.values()), Impossible(combinations, dict(reasons.most_common()))

    def _error(self, message: str) -> InputError:
        if self.file is None:
            return InputError(message)
        return self.file.error(("parameters" if "parameters" in self.file.data else "candidates",), message)

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
        signature = {name: getattr(accumulator, name) for name in SIGNATURE}
        grids = []
        for grid in self.grids:
            outputs = tuple(name for name in grid.values["output"] if format_named(name).width == width)
            changed = {**grid.values, "output": outputs or (accumulator.output,)}
            if "block" in grid.values:
                changed["block"] = tuple(sorted({b for b in grid.values["block"] if length % b == 0} | {length}))
            grids.append(replace(grid, values=changed, signature=signature))
        base = replace(model, reference=model.reference.partition("@")[0])
        return replace(self, base=base, grids=tuple(grids))


def _formats(row: Model) -> tuple[str, ...]:
    output = row.accumulator.output
    return row.a.name, row.b.name, row.c.name, "f32" if output == "e8m13" else output


def build_family(file: YamlFile) -> Family:
    """The family that a file describes. Raises InputError with file, line and key."""
    parsed = validate(file, _FamilyFile)
    for side, fmt in parsed.formats.model_dump().items():
        try:
            format_named(fmt)
        except MmaprobeError as error:
            raise file.error(("formats", side), str(error)) from None
    try:
        check_parameter("length", parsed.length)
    except ParameterError as error:
        raise file.error(("length",), str(error).removeprefix("length: ")) from None
    grids = _grids(file, parsed)
    base = _of_length(_base(file, parsed, any("scale_format" in grid.values for grid in grids)), parsed.length, grids)
    signature = {"length": parsed.length}
    plain = [replace(grid, signature=signature) for grid in grids]
    return Family(parsed.id, base, tuple(plain), parsed.about, file)


def _grids(file: YamlFile, parsed: _FamilyFile) -> list[Grid]:
    if parsed.exclude is not None:
        raise file.error(("except",), f"leave them out of the grids: `candidates` is their union; {NEW_SPELLING}")
    if (parsed.parameters is None) == (parsed.candidates is None):
        raise file.error((), "a family has either `candidates`, a list of grids, or `parameters`, one grid over t-fdpa")
    if parsed.candidates is not None:
        if not parsed.candidates:
            raise file.error(("candidates",), "no grids")
        return [_grid_of(file, parsed, number, dict(grid)) for number, grid in enumerate(parsed.candidates)]
    assert parsed.parameters is not None
    given = dict(parsed.parameters)
    addends = given.pop("addend", "fused")
    found = []
    for addend in addends if isinstance(addends, list) else [addends]:
        if addend not in ADDENDS:
            raise file.error(("parameters", "addend"), f"{addend}: it takes {', '.join(ADDENDS)}; {NEW_SPELLING}")
        found.append(_grid(file, parsed, ("parameters",), ADDENDS[addend], given))
    if not found:
        raise file.error(("parameters", "addend"), "no values")
    return found


def _grid_of(file: YamlFile, parsed: _FamilyFile, number: int, given: dict[str, Any]) -> Grid:
    path = ("candidates", number)
    name = given.pop("family", None)
    if name is None:
        raise file.error(path, f"a grid names its family: {', '.join(FUNCTIONS)}")
    if name not in FUNCTIONS:
        raise file.error((*path, "family"), str(UnknownNameError("family", str(name), FUNCTIONS)))
    return _grid(file, parsed, path, name, given)


def _grid(file: YamlFile, parsed: _FamilyFile, path: YamlPath, name: str, given: Mapping[str, Any]) -> Grid:
    function = FUNCTIONS[name]
    values = {key: _values(file, (*path, key), function, value) for key, value in given.items()}
    if "block" in function.takes:
        values.setdefault("block", (parsed.length,))
    outputs = ("f32", "e8m13") if parsed.formats.d == "f32" else (parsed.formats.d,)
    chosen = values.setdefault("output", (parsed.formats.d,))
    if not set(chosen) <= set(outputs):
        raise file.error((*path, "output"), f"formats.d is {parsed.formats.d}: it takes {', '.join(outputs)}")
    return Grid(function, values, {})


def _base(file: YamlFile, parsed: _FamilyFile, scaled: bool) -> Model:
    """An instruction of the table with the family's formats, which names its vectors."""
    wanted = tuple(parsed.formats.model_dump().values())
    best = None
    for reference, row in INSTRUCTIONS.items():
        if _formats(parse_reference(reference)) != wanted or (row.accumulator.scale_format is not None) != scaled:
            continue
        if best is None or row.accumulator.length == parsed.length:
            best = reference
            if row.accumulator.length == parsed.length:
                break
    if best is None:
        raise file.error(("formats",), f"no instruction of the table takes {' '.join(wanted)}")
    return parse_reference(best)


def _of_length(base: Model, length: int, grids: Sequence[Grid]) -> Model:
    """The base with the family's length; where the table has none of it, as one plain step."""
    if base.length == length:
        return base
    sizes = [size for grid in grids for size in grid.values_of("scale_block") if length % size == 0]
    plain = {"operation": "fused_dot", "block_order": "contiguous", "grouping": "none", "addend": "fused",
             "scale_block": next(iter(sizes), 1)}  # fmt: skip
    changes = {name: value for name, value in plain.items() if getattr(base.accumulator, name) != value}
    return with_parameters(base, {"length": length, "block": length, **changes})


def _values(file: YamlFile, path: YamlPath, function: FamilyFunction, given: Any) -> tuple[Any, ...]:
    name = str(path[-1])
    if name not in PARAMETERS:
        raise file.error(path, str(UnknownNameError("parameter", name, function.takes)))
    if name not in function.takes or name == "length":
        refusal = "it stands beside `formats`" if name == "length" else function.refusal(name)
        raise file.error(path, f"{refusal}; {NEW_SPELLING}" if path[0] == "parameters" else refusal)
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
