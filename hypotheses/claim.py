"""Claims about algorithms: their files, and the shipped library of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from hypotheses.library import is_file, yaml_files
from hypotheses.yamlfile import YamlFile, read_file, read_yaml, validate
from smtmodel.algorithms import parse_reduction, reference_of
from smtmodel.algorithms.exact import Window
from smtmodel.algorithms.parts import Part
from smtmodel.algorithms.predicate import parse_predicate
from smtmodel.algorithms.reductions import Reduction
from smtmodel.algorithms.scene import Shape
from smtmodel.dot import Model
from smtmodel.errors import ParameterError, UnknownNameError
from smtmodel.formats import format_named
from smtmodel.operands import Layout
from smtmodel.reference import parse_reference

Quantifier = Literal["all", "exists"]
Exponents = tuple[StrictInt, StrictInt]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Inputs(_Strict):
    """Zeros and normal numbers: of a and b in `format`, of c in the parts' format, with exponents from the first to the
    second. `where`: predicates that every input meets."""

    format: str = "f32"
    a: Exponents
    b: Exponents
    c: Exponents | Literal["zero"]
    where: list[str] = []


class _Maximise(_Strict):
    """`quantity` in multiples of `unit`, over the inputs that also meet `where`."""

    quantity: str
    unit: str = "1"
    where: list[str] = []


class _ClaimFile(_Strict):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str
    source: str
    says: Literal["holds", "refuted", "nothing"]
    expect: Literal["holds", "refuted"]
    quantifier: Quantifier = "all"
    cases: dict[str, list[StrictInt | str]] = {}
    terms: StrictInt | str
    inputs: _Inputs
    parts: dict[str, str]
    claim: str
    maximise: _Maximise | None = None
    note: str = ""


class _BoundFile(_Strict):
    """`error_bound`: of every finite input of `model`, a sum of L products and c with F fraction bits, u = 2^(largest
    exponent - F): loose, (L + 1)u + ulp(d); or tight, (L - 1)u + max(u, ulp(d))."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str
    source: str
    says: Literal["holds", "refuted", "nothing"]
    expect: Literal["holds"]
    cases: dict[str, list[StrictInt | str]] = {}
    model: str
    error_bound: Literal["loose", "tight"]
    note: str = ""


class _OverflowFile(_Strict):
    """`overflow: smallest`: so many f32 numbers from 0 to below 1 can make a sum infinite, and no fewer; `never`: so
    many cannot, nor can fewer."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str
    source: str
    says: Literal["holds", "refuted", "nothing"]
    expect: Literal["holds", "refuted"]
    cases: dict[str, list[StrictInt | str]] = {}
    reduction: str
    numbers: StrictInt = Field(gt=0, le=1 << 20)
    overflow: Literal["smallest", "never"]
    note: str = ""


@dataclass(frozen=True)
class OverflowClaim:
    """A claim about the overflow of a sum of numbers."""

    id: str
    about: str
    source: str
    says: str
    expect: Literal["holds", "refuted"]
    reduction: Reduction
    numbers: int
    overflow: Literal["smallest", "never"]
    file: YamlFile
    case: dict[str, Any] = field(default_factory=dict)
    quantifier: Quantifier = "all"
    maximise: None = None

    @property
    def text(self) -> str:
        wanted = {"smallest": "can overflow, fewer cannot", "never": "cannot overflow"}
        return f"{self.numbers} numbers from 0 to below 1 {wanted[self.overflow]}"

    @property
    def part_texts(self) -> dict[str, str]:
        return {"d": reference_of(self.reduction)}


BOUNDS = {"loose": "error <= (L + 1) * u + ulp(d)", "tight": "error <= (L - 1) * u + max(u, ulp(d))"}


@dataclass(frozen=True)
class BoundClaim:
    """A bound on the error of a model over all finite inputs."""

    id: str
    about: str
    source: str
    says: str
    expect: Literal["holds", "refuted"]
    model: Model
    bound: Literal["loose", "tight"]
    file: YamlFile
    note: str = ""
    case: dict[str, Any] = field(default_factory=dict)
    quantifier: Quantifier = "all"
    maximise: None = None

    @property
    def text(self) -> str:
        return BOUNDS[self.bound]

    @property
    def part_texts(self) -> dict[str, str]:
        return {"d": self.model.reference}


@dataclass(frozen=True)
class Largest:
    """A quantity in multiples of a unit, to be made as large as it gets where all conditions hold."""

    quantity: ast.expr
    unit: ast.expr
    where: tuple[ast.expr, ...]


@dataclass(frozen=True)
class Claim:
    """One case of a claim: `predicate` for all (or some) admitted inputs of `terms` products that meet `where`."""

    id: str
    about: str
    source: str
    says: str
    expect: Literal["holds", "refuted"]
    quantifier: Quantifier
    terms: int
    shape: Shape
    zero_addend: bool
    where: tuple[ast.expr, ...]
    predicate: ast.expr
    text: str
    file: YamlFile
    maximise: Largest | None = None
    note: str = ""
    case: dict[str, Any] = field(default_factory=dict)

    @property
    def part_texts(self) -> dict[str, str]:
        """What the parts are."""
        return {name: part.text for name, part in self.shape.parts.items()}

    @cached_property
    def layout(self) -> Layout:
        """The order of an input's patterns."""
        factors, count = self.shape.factors, self.terms
        names = (*(f"{side}{k}" for side in "ab" for k in range(count)), "c")
        return Layout(count, 0, (factors,) * (2 * count) + (self.shape.addend,), names)


AnyClaim = Claim | BoundClaim | OverflowClaim


def _filled(value: Any, case: dict[str, Any]) -> Any:
    """A value of a file with {name} replaced by what the case says."""
    if isinstance(value, str):
        for name, chosen in case.items():
            value = value.replace("{" + name + "}", str(chosen))
        return value
    if isinstance(value, dict):
        return {key: _filled(part, case) for key, part in value.items()}
    return [_filled(part, case) for part in value] if isinstance(value, list) else value


def build_claims(file: YamlFile) -> list[AnyClaim]:
    """The cases of a claim file, each a claim. Raises InputError with file, line and key."""
    if isinstance(file.data, dict) and "error_bound" in file.data:
        bound = validate(file, _BoundFile)
        return [_bound_case(*case) for case in _cases(file, bound.cases)]
    if isinstance(file.data, dict) and "overflow" in file.data:
        return [_overflow_case(*case) for case in _cases(file, validate(file, _OverflowFile).cases)]
    parsed = validate(file, _ClaimFile)
    if not parsed.parts:
        raise file.error(("parts",), "a claim needs at least one part")
    for name in parsed.parts:
        if not name.isidentifier() or name in ("a", "b", "c"):
            raise file.error(("parts", name), "a part's name is a word other than a, b and c")
    return [_case(*case) for case in _cases(file, parsed.cases)]


def _cases(file: YamlFile, values: dict[str, list[Any]]) -> Iterator[tuple[YamlFile, dict[str, Any]]]:
    """Every choice of values, and the file as it is with them."""
    for chosen in product(*values.values()):
        case = dict(zip(values, chosen, strict=True))
        yield YamlFile(file.name, _filled(file.data, case), file.lines), case


def _named(plain: str, case: dict[str, Any]) -> str:
    return plain + ("@" + ",".join(f"{key}={value}" for key, value in case.items()) if case else "")


def _overflow_case(plain: YamlFile, case: dict[str, Any]) -> OverflowClaim:
    parsed = validate(plain, _OverflowFile)
    with located(plain, ("reduction",)):
        reduction = parse_reduction(parsed.reduction)
    return OverflowClaim(_named(parsed.id, case), parsed.about, parsed.source, parsed.says, parsed.expect, reduction,
                         parsed.numbers, parsed.overflow, plain, case)  # fmt: skip


def _bound_case(plain: YamlFile, case: dict[str, Any]) -> BoundClaim:
    parsed = validate(plain, _BoundFile)
    with located(plain, ("model",)):
        model = parse_reference(parsed.model)
    return BoundClaim(_named(parsed.id, case), parsed.about, parsed.source, parsed.says, parsed.expect, model,
                      parsed.error_bound, plain, parsed.note, case)  # fmt: skip


def _case(plain: YamlFile, case: dict[str, Any]) -> Claim:
    parsed = validate(plain, _ClaimFile)
    terms = _terms(plain, parsed)
    shape = _shape(plain, parsed)
    names = shape.names

    def tree(key: tuple[str | int, ...], text: str) -> ast.expr:
        with located(plain, key):
            return parse_predicate(text, names)

    where = tuple(tree(("inputs", "where", k), text) for k, text in enumerate(parsed.inputs.where))
    predicate = tree(("claim",), parsed.claim)
    largest = None
    if parsed.maximise is not None:
        inner = tuple(tree(("maximise", "where", k), text) for k, text in enumerate(parsed.maximise.where))
        quantity, unit = (tree(("maximise", key), getattr(parsed.maximise, key)) for key in ("quantity", "unit"))
        largest = Largest(quantity, unit, inner)
    name = _named(parsed.id, case)
    return Claim(
        name, parsed.about, parsed.source, parsed.says, parsed.expect, parsed.quantifier, terms,
        shape, parsed.inputs.c == "zero", where, predicate, parsed.claim, plain, largest, parsed.note, case,
    )  # fmt: skip


def _terms(file: YamlFile, parsed: _ClaimFile) -> int:
    text = str(parsed.terms)
    if not text.isdigit() or not 0 < int(text) <= 256:
        raise file.error(("terms",), f"{text!r} is no number of products from 1 to 256")
    return int(text)


class located:  # noqa: N801 - reads as a word of the with statement
    """Errors inside become InputErrors at a key of a file."""

    def __init__(self, file: YamlFile, key: tuple[str | int, ...]) -> None:
        self.file, self.key = file, key

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UnknownNameError | ParameterError):
            raise self.file.error(self.key, str(error)) from None


def _shape(file: YamlFile, parsed: _ClaimFile) -> Shape:
    inputs = parsed.inputs
    with located(file, ("inputs", "format")):
        factors = format_named(inputs.format)
    parts: dict[str, Part] = {}
    for name, text in parsed.parts.items():
        with located(file, ("parts", name)):
            parts[name] = Part(text)
    addends = {part.addend.name: part.addend for part in parts.values()}
    if len(addends) != 1:
        raise file.error(("parts",), f"the parts take c in several formats: {', '.join(addends)}")
    addend = next(iter(addends.values()))
    nothing = (inputs.a[0] + inputs.b[0],) * 2  # a zero's exponent is of no account
    window = Window(inputs.a, inputs.b, nothing if inputs.c == "zero" else inputs.c)
    with located(file, ("inputs",)):
        window.check(factors, addend)
    low, high = min(inputs.a[0], inputs.b[0]), max(inputs.a[1], inputs.b[1])
    for name, part in parts.items():
        if not part.holds(factors, low, high):
            raise file.error(("parts", name), f"its {part.source.name} does not hold these {factors.name} numbers")
    return Shape(factors, addend, window, parts)


@cache
def _shipped() -> dict[str, YamlFile]:
    """Every shipped file by the id of its claims."""
    found = {}
    for entry in yaml_files(files("hypotheses") / "claims"):
        file = read_yaml(entry.read_text(encoding="utf-8"), str(entry))
        found[str(file.data["id"])] = file
    return found


@cache
def claims() -> dict[str, tuple[AnyClaim, ...]]:
    """The cases of every shipped claim by id."""
    return {name: tuple(build_claims(file)) for name, file in _shipped().items()}


def claims_named(name: str) -> list[AnyClaim]:
    """The cases of a claim by id, one case (`ID@terms=2,split=toward_zero`; what is not said stays open), or those of
    a file. Raises UnknownNameError, InputError."""
    plain, _, chosen = name.partition("@")
    if plain in _shipped():
        found = build_claims(_shipped()[plain])
    elif name.endswith((".yaml", ".yml")) or "/" in name or is_file(name):
        return build_claims(read_yaml(read_file(Path(name)), name))
    else:
        raise UnknownNameError("claim", plain, _shipped(), hint=" (`mmaprobe list claims` shows all)")
    for key, value in _pairs(chosen):
        found = [claim for claim in found if str(claim.case.get(key)) == value]
        if not found:
            known = [claim.id for claim in build_claims(_shipped()[plain])]
            raise UnknownNameError("case", name, known)
    return found


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(",") if text else ():
        key, _, value = part.partition("=")
        yield key.strip(), value.strip()
