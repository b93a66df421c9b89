"""Families: sets of candidate models of one signature, a union of grids over the functions of smtmodel/families."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from math import prod
from typing import Any

from pydantic import Field, StrictInt

from mmaprobe.hypotheses.library import shipped_files
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, OutOfTimeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.files import names_file
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.base.yamlfile import Key, Strict, YamlFile, located, read_yaml_file, validate
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import held_as
from mmaprobe.smtmodel.families.member import FUNCTIONS, FamilyFunction, Member
from mmaprobe.smtmodel.families.parameters import FAMILY, PARAMETERS, check_parameter, parse_parameter
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import member_of, parse_reference, with_parameters

MOST_VALUES, MOST_COMBINATIONS = 1000, 1_000_000  # the most values of one parameter; of a family
PLAIN = "t-fdpa"  # the function of a grid that names no family
SEVERAL = "grids over other families are under `candidates`, each with its `family` (docs/identify.md)"

#: the parameters that fix the order of a candidate's sums, the number of sums, and the bits that a sum keeps
STEPS = ("length", "block", "block_order", "group", "partials", "fraction_bits", "align_rounding", "late_fraction_bits",
         "scale_format")  # fmt: skip


def steps_of(model: Model) -> tuple[Any, ...]:
    """The family of a candidate and its values of the parameters `STEPS`. Candidates for which these are equal add in
    the same steps."""
    member = member_of(model)
    return (member.family, *(member.values.get(name) for name in STEPS))


def parameters_of(model: Model) -> Mapping[str, Any]:
    """The values of a candidate's parameters by name, its family first."""
    member = member_of(model)
    return {FAMILY: member.family, **member.values}


class _Formats(Strict):
    a: str
    b: str
    c: str
    d: str


class _FamilyFile(Strict):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str = ""
    formats: _Formats
    length: StrictInt
    parameters: dict[str, Any] | None = None  # one grid over T-FDPA, or over each `family` of a list
    candidates: list[dict[str, Any]] | None = None  # grids, each with its `family`


@dataclass(frozen=True)
class Impossible:
    """The number of a family's combinations that no unit can have, by reason."""

    combinations: int  # possible ones included
    reasons: Mapping[str, int]

    @property
    def count(self) -> int:
        return sum(self.reasons.values())

    def text(self, most: int = 3) -> str:
        """The number of combinations left out, and the `most` frequent reasons, as text."""
        parts = [f"{count} x {reason}" for reason, count in list(self.reasons.items())[:most]]
        if len(self.reasons) > most:
            rest = len(self.reasons) - most
            parts.append(f"{sum(list(self.reasons.values())[most:])} for {counted(rest, 'other reason')}")
        return f"{self.count} of {counted(self.combinations, 'combination')} impossible: {'; '.join(parts)}"


@dataclass(frozen=True)
class Grid:
    """Every combination of some values of a function's parameters; `signature`: the values that the formats fix."""

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
        """The values that a parameter takes in the grid; none if the grid's family lacks the parameter."""
        if name == FAMILY:
            return (self.function.name,)
        for known in (self.signature, self.values, self.function.fixed, self.function.defaults):
            if name in known:
                return known[name] if known is self.values else (known[name],)
        return ()


def point_of(model: Model) -> Grid:
    """The grid whose only combination is a model. Values equal to the defaults of the family's function are not
    listed."""
    member = member_of(model)
    function = FUNCTIONS[member.family]
    own = {name: (value,) for name, value in member.values.items() if function.defaults.get(name, ...) != value}
    return Grid(function, own, {})


@dataclass(frozen=True)
class Family:
    """Candidates for one unit: a union of grids. `file`: the file that errors name."""

    id: str
    base: Model
    grids: tuple[Grid, ...]
    about: str = ""
    file: YamlFile | None = field(default=None, compare=False, repr=False)

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of a, b, c and d in vectors."""
        return formats_of(self.base)

    @cached_property
    def values(self) -> dict[str, tuple[Any, ...]]:
        """The values of each parameter in which candidates differ or that the family's file lists."""
        listed = {name for grid in self.grids for name in (*grid.values, *grid.signature)}
        chosen = {name: tuple(dict.fromkeys(value for grid in self.grids for value in grid.values_of(name)))
                  for name in PARAMETERS}  # fmt: skip
        return {name: values for name, values in chosen.items() if values and (name in listed or len(values) > 1)}

    @cached_property
    def varied(self) -> frozenset[str]:
        """The parameters with more than one value: the only parameters that the answers of a device decide."""
        return frozenset(name for name, values in self.values.items() if len(values) > 1)

    def candidates(self, deadline: float | None = None) -> list[Model]:
        """The models of the family, each once: a parameter without effect in a model has its default.

        Raises InputError if there are none, OutOfTimeError after the `deadline` (of time.monotonic).
        """
        models, impossible = self._enumerate(deadline)
        if not models:
            raise self._error(f"no candidate is left for {self.base.reference}: {impossible.text()}")
        return list(models)

    @property
    def impossible(self) -> Impossible:
        """The combinations that are not candidates because no unit can have them."""
        return self._enumerate(None)[1]

    def _enumerate(self, deadline: float | None) -> tuple[list[Model], Impossible]:
        """The candidates by their keys, and the impossible combinations. A call continues where an earlier call ran out
        of time. Raises OutOfTimeError after the `deadline`."""
        models, reasons, rest = self._enumeration
        while deadline is None or time.monotonic() < deadline:
            try:
                grid, values = next(rest)
                member = grid.function(**values).without_idle()
            except StopIteration:
                return list(models.values()), Impossible(self.combinations, dict(reasons.most_common()))
            except ParameterError as error:
                reasons[str(error)] += 1
                continue
            if member.key not in models:
                models[member.key] = self._model(member)
        raise OutOfTimeError(
            f"time ran out when {counted(len(models), 'candidate')} of {self.id} were made, "
            f"of {counted(self.combinations, 'combination')}"
        )

    @property
    def combinations(self) -> int:
        """How many combinations of values the grids have, impossible ones included."""
        return sum(grid.size for grid in self.grids)

    @cached_property
    def _enumeration(self) -> tuple[dict[tuple[Any, ...], Model], Counter[str], Iterator[tuple[Grid, dict[str, Any]]]]:
        """The candidates so far, the reasons of the impossible combinations so far, and the combinations left."""
        if self.combinations > MOST_COMBINATIONS:
            raise self._error(f"more than {MOST_COMBINATIONS:,} combinations: leave values out")
        return {}, Counter(), ((grid, values) for grid in self.grids for values in grid.combinations())

    def _model(self, member: Member) -> Model:
        """The model of a candidate. Its reference is the base's instruction with each parameter that differs."""
        name, base = self.base.instruction, self.base
        kept = self._kept[member.family]
        changes = [each for each in PARAMETERS if each in kept and kept[each] != member.values[each]]
        if member.family != self._instruction.family:
            changes = [FAMILY, *changes]
        parts = [f"{each}={member.text(each)}" for each in changes]
        return Model.deferred(f"{name}@{','.join(parts)}" if parts else name, base.a, base.b, base.c, member)

    def _error(self, message: str) -> InputError:
        if self.file is None:
            return InputError(message)
        return self.file.error(("parameters" if "parameters" in self.file.data else "candidates",), message)

    @cached_property
    def _instruction(self) -> Member:
        """The unit of the instruction that the base names, without the base's changes to it."""
        return member_of(parse_reference(self.base.instruction))

    @cached_property
    def _kept(self) -> Mapping[str, Mapping[str, Any]]:
        """By family, the values of parameters that its candidates share with the base's instruction."""
        return {grid.function.name: self._instruction.kept(grid.function.name) for grid in self.grids}

    def retargeted(self, model: Model) -> Family:
        """The family with the same parameters for the signature (formats, length, scale factors) of another model.

        Blocks that do not divide the length are dropped; one block of the whole length is always a candidate.
        """
        length, width = model.length, model.d.width
        scales = {} if model.scale is None else {"scale_format": model.scale.name, "scale_block": model.scale_block}
        grids = []
        for grid in self.grids:
            signature = {"length": length, **scales}
            if model.scale is None and "scale_format" in grid.values:
                signature["scale_format"] = None
            outputs = tuple(name for name in grid.values["output"] if format_named(name).width == width)
            changed = {**grid.values, "output": outputs or (model.d.name,)}
            if "block" in grid.values:
                changed["block"] = tuple(sorted({b for b in grid.values["block"] if length % b == 0} | {length}))
            grids.append(replace(grid, values=changed, signature=signature))
        base = Model.of(model.instruction, model.a, model.b, model.c, member_of(model))
        return replace(self, base=base, grids=tuple(grids))


def formats_of(model: Model) -> tuple[str, ...]:
    """The formats of a, b, c and d in vectors of a model, which hold a result of e8m13 as a pattern of f32."""
    return model.a.name, model.b.name, model.c.name, held_as(model.d).name


def build_family(file: YamlFile) -> Family:
    """The family that a file describes. Raises InputError with file, line and key."""
    parsed = validate(file, _FamilyFile)
    for side, fmt in parsed.formats.model_dump().items():
        with located(file, ("formats", side)):
            format_named(fmt)
    try:
        check_parameter("length", parsed.length)
    except ParameterError as error:
        raise file.error(("length",), error.message) from None
    grids = _grids(file, parsed)
    base = _with_length(_base(file, parsed, any("scale_format" in grid.values for grid in grids)), parsed.length, grids)
    signature = {"length": parsed.length}
    plain = [replace(grid, signature=signature) for grid in grids]
    return Family(parsed.id, base, tuple(plain), parsed.about, file)


def _grids(file: YamlFile, parsed: _FamilyFile) -> list[Grid]:
    if (parsed.parameters is None) == (parsed.candidates is None):
        raise file.error((), "a family has either `candidates`, a list of grids, or `parameters`, one grid over t-fdpa")
    if parsed.candidates is not None:
        if not parsed.candidates:
            raise file.error(("candidates",), "no grids")
        return [_grid_of(file, parsed, number, dict(grid)) for number, grid in enumerate(parsed.candidates)]
    assert parsed.parameters is not None
    given = dict(parsed.parameters)
    names = given.pop(FAMILY, PLAIN)
    if names == []:
        raise file.error(("parameters", FAMILY), "no values")
    names = names if isinstance(names, list) else [names]
    return [_grid(file, parsed, ("parameters",), name, given) for name in names]


def _grid_of(file: YamlFile, parsed: _FamilyFile, number: int, given: dict[str, Any]) -> Grid:
    path = ("candidates", number)
    name = given.pop(FAMILY, None)
    if name is None:
        raise file.error(path, f"a grid names its family: {', '.join(FUNCTIONS)}")
    return _grid(file, parsed, path, name, given)


def _grid(file: YamlFile, parsed: _FamilyFile, path: Key, name: Any, given: Mapping[str, Any]) -> Grid:
    if not isinstance(name, str) or name not in FUNCTIONS:
        raise file.error((*path, FAMILY), str(UnknownNameError("family", str(name), FUNCTIONS)))
    function = FUNCTIONS[name]
    values = {key: _values(file, (*path, key), function, value) for key, value in given.items()}
    if "block" in function.defaults:
        values.setdefault("block", (parsed.length,))
    outputs = ("f32", "e8m13") if parsed.formats.d == "f32" else (parsed.formats.d,)
    chosen = values.setdefault("output", (parsed.formats.d,))
    if not set(chosen) <= set(outputs):
        raise file.error((*path, "output"), f"formats.d is {parsed.formats.d}: it takes {', '.join(outputs)}")
    return Grid(function, values, {})


def _base(file: YamlFile, parsed: _FamilyFile, scaled: bool) -> Model:
    """An instruction of the table with the family's formats; without one, a chain of fused multiply-adds. Vectors of
    the family name this model."""
    wanted = tuple(parsed.formats.model_dump().values())
    best = None
    for reference, row in INSTRUCTIONS.items():
        if (row.a, row.b, row.c, held_as(row.d).name) != wanted or (row.scale is not None) != scaled:
            continue
        if best is None or row.length == parsed.length:
            best = reference
            if row.length == parsed.length:
                break
    if best is None and scaled:
        raise file.error(("formats",), f"no instruction of the table takes {' '.join(wanted)} and scale factors")
    a, b, c, d = wanted
    return parse_reference(best or f"ieee/fma/{d}.{a}.{b}.{c}")


def _with_length(base: Model, length: int, grids: Sequence[Grid]) -> Model:
    """The base at the family's length. A base of another length then adds all products in one step."""
    if base.length == length:
        return base
    sizes = [size for grid in grids for size in grid.values_of("scale_block") if length % size == 0]
    scaled = {"scale_block": next(iter(sizes), 1)} if base.scale is not None else {}
    plain = {FAMILY: "st-fdpa" if scaled else PLAIN, "block_order": "contiguous", **scaled}
    known = parameters_of(base)
    changes = {name: value for name, value in plain.items() if known.get(name) != value}
    return with_parameters(base, {"length": length, "block": length, **changes})


def _values(file: YamlFile, path: Key, function: FamilyFunction, given: Any) -> tuple[Any, ...]:
    name = str(path[-1])
    if name == "length":
        raise file.error(path, "it belongs beside `formats`")
    try:
        function.check_takes(name)
    except ParameterError as error:
        refusal = error.message
        raise file.error(path, f"{refusal}; {SEVERAL}" if path[0] == "parameters" else refusal) from None
    except UnknownNameError as error:
        raise file.error(path, str(error)) from None
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
    values = []
    for index, value in enumerate(given):
        try:
            parsed = parse_parameter(name, value)
            check_parameter(name, parsed)
        except MmaprobeError as error:
            raise file.error((*path, index), str(error).removeprefix(f"{name}: ")) from None
        values.append(parsed)
    return tuple(dict.fromkeys(values))


@cache
def families() -> dict[str, Family]:
    """Every shipped family by id."""
    return {family.id: family for family in map(build_family, shipped_files("families"))}


def family_named(name: str) -> Family:
    """A family by id, or from a file by its path. Raises UnknownNameError or InputError."""
    if name in families():
        return families()[name]
    if names_file(name):
        return build_family(read_yaml_file(name))
    raise UnknownNameError(
        "family", name, families(), hint=" (`mmaprobe list families` shows all; or name a GPU of `mmaprobe list gpus`)"
    )
