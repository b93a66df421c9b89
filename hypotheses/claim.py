"""Claims about algorithms: their files, and the shipped library of them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, StrictInt, field_validator

from mmaprobe.hypotheses.claim_file import Head, Statement, cases_of
from mmaprobe.hypotheses.library import shipped_files
from mmaprobe.hypotheses.unit_claims import UNIT_CLAIMS
from mmaprobe.smtmodel.algorithms.assertion import Assertion, Quantifier
from mmaprobe.smtmodel.algorithms.exact import Window
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.predicate import parse_predicate
from mmaprobe.smtmodel.algorithms.scene import Shape
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.base.files import is_file, names_file
from mmaprobe.smtmodel.base.yamlfile import Strict, YamlFile, located, read_yaml_file
from mmaprobe.smtmodel.evaluate.operands import Layout, check_addend
from mmaprobe.smtmodel.families.parameters import assignments
from mmaprobe.smtmodel.plans.plan_files import beside

MOST_TERMS = 1 << 24  # the most products of a claim about several numbers of products
Exponents = tuple[StrictInt, StrictInt]


class _Inputs(Strict):
    """The inputs, which are zeros and normal numbers: a and b in `format`, c in the format in which the parts take c.
    `a`, `b` and `c`: the least and the largest exponent of each. `where`: predicates that every input meets."""

    format: str = "f32"
    a: Exponents
    b: Exponents
    c: Exponents | Literal["zero"]
    where: tuple[str, ...] = ()

    @field_validator("c", mode="before")
    @classmethod
    def _zero_is_the_only_word(cls, given: Any) -> Any:
        if isinstance(given, str) and given != "zero":
            raise ValueError(f"{given!r}: a window of exponents, [LOW, HIGH], or the word zero is needed")
        return given


class _Maximise(Strict):
    """The maximum of `quantity` in multiples of `unit`, over the inputs that also meet `where`."""

    quantity: str
    unit: str = "1"
    where: tuple[str, ...] = ()


class _Several(Strict):
    """Numbers of products: every multiple of `multiples` up to `most`."""

    multiples: StrictInt = Field(gt=0, le=256)
    most: StrictInt = Field(gt=0, le=MOST_TERMS)


class _ClaimFile(Head):
    quantifier: Quantifier = "all"
    terms: StrictInt | str | _Several
    inputs: _Inputs
    parts: dict[str, str]
    claim: str
    maximise: _Maximise | None = None

    def statement(self, file: YamlFile, stated: dict[str, Any]) -> Claim:
        if not self.parts:
            raise file.error(("parts",), "a claim needs at least one part")
        for name in self.parts:
            if not name.isidentifier() or name in ("a", "b", "c"):
                raise file.error(("parts", name), "a part's name is a word other than a, b and c")
        terms, most = _terms(file, self)
        shape = _shape(file, self, terms)
        names = shape.names

        def tree(key: tuple[str | int, ...], text: str) -> ast.expr:
            with located(file, key):
                return parse_predicate(text, names)

        for k, text in enumerate(self.inputs.where):
            tree(("inputs", "where", k), text)
        tree(("claim",), self.claim)
        largest = None
        if self.maximise is not None:
            inner = tuple(tree(("maximise", "where", k), text) for k, text in enumerate(self.maximise.where))
            quantity, unit = (tree(("maximise", key), getattr(self.maximise, key)) for key in ("quantity", "unit"))
            largest = Largest(quantity, unit, inner)
        zero, where = self.inputs.c == "zero", self.inputs.where
        assertion = Assertion(self.quantifier, terms, shape, zero, where, self.claim, most)
        return Claim(**stated, quantifier=self.quantifier, assertion=assertion, maximise=largest)


@dataclass(frozen=True)
class Largest:
    """A quantity in multiples of a unit, to be maximised over the inputs that meet all conditions."""

    quantity: ast.expr
    unit: ast.expr
    where: tuple[ast.expr, ...]


@dataclass(frozen=True, kw_only=True)
class Claim(Statement):
    """One case of a claim about algorithms: the assertion of its file, and a quantity to be maximised."""

    assertion: Assertion
    maximise: Largest | None = None

    @property
    def text(self) -> str:
        about = self.assertion
        several = "" if about.most is None else f", for K = {about.terms} n up to {about.most}"
        return f"{about.text}{several}"

    @property
    def part_texts(self) -> dict[str, str]:
        return {name: part.text for name, part in self.shape.parts.items()}

    @property
    def where(self) -> tuple[str, ...]:
        return self.assertion.where

    @property
    def terms(self) -> int:
        return self.assertion.terms

    @property
    def shape(self) -> Shape:
        return self.assertion.shape

    @property
    def zero_addend(self) -> bool:
        return self.assertion.zero_addend

    @property
    def layout(self) -> Layout:
        """The order of the bit patterns in an input."""
        return self.assertion.layout

    def check_parts(self) -> None:
        """Raises InputError for a part that no expression names, beside one that is named. A claim about inputs alone
        names none, and takes the format of c from its parts."""
        trees: list[ast.expr] = [parse_predicate(text, self.shape.names) for text in (*self.where, self.assertion.text)]
        if (largest := self.maximise) is not None:
            trees += [largest.quantity, largest.unit, *largest.where]
        named = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
        idle = [name for name in self.shape.parts if name not in named]
        if 0 < len(idle) < len(self.shape.parts):
            nor = f", nor {' and '.join(idle[1:])}" if idle[1:] else ""
            hint = "leave it out, or name it under claim, where or maximise"
            raise self.file.error(("parts", idle[0]), f"no expression of the claim names this part{nor}: {hint}")

    def at(self, terms: int) -> Claim:
        """The claim about `terms` products alone."""
        return replace(self, assertion=self.assertion.at(terms))

    def reshaped(self, **changes: Any) -> Claim:
        """The claim with `changes` to the fields of its shape."""
        return replace(self, assertion=self.assertion.reshaped(**changes))


def build_claims(file: YamlFile) -> list[Statement]:
    """The cases of the claim in a file, each a statement of its own. Raises InputError with file, line and key."""
    keys = file.data if isinstance(file.data, dict) else ()
    return list(cases_of(file, next((schema for key, schema in UNIT_CLAIMS.items() if key in keys), _ClaimFile)))


def _terms(file: YamlFile, parsed: _ClaimFile) -> tuple[int, int | None]:
    """The number of products and None, or the least and the largest of several numbers of products."""
    if isinstance(parsed.terms, _Several):
        least, most = parsed.terms.multiples, parsed.terms.most
        if most % least or parsed.quantifier != "all" or parsed.maximise is not None:
            what = "a claim about several numbers of products is about all inputs, and maximises nothing"
            raise file.error(("terms",), f"{most} is no multiple of {least}" if most % least else what)
        return least, most
    text = str(parsed.terms)
    if not is_digits(text) or not 0 < int(text) <= 256:
        raise file.error(("terms",), f"{text!r}: the number of products is a whole number from 1 to 256")
    return int(text), None


def _shape(file: YamlFile, parsed: _ClaimFile, terms: int) -> Shape:
    inputs = parsed.inputs
    with located(file, ("inputs", "format")):
        factors = format_named(inputs.format)
    parts: dict[str, Part] = {}
    for name, text in parsed.parts.items():
        with located(file, ("parts", name)):
            parts[name] = Part(beside(Path(file.name).parent, text))
    addends = {part.addend.name: part.addend for part in parts.values()}
    if len(addends) != 1:
        raise file.error(("parts",), f"the parts take c in several formats: {', '.join(addends)}")
    addend = next(iter(addends.values()))
    unused = (min(max(inputs.a[0] + inputs.b[0], addend.emin), addend.emax),) * 2  # c = 0 has no exponent
    window = Window(inputs.a, inputs.b, unused if inputs.c == "zero" else inputs.c)
    with located(file, ("inputs",)):
        window.check(factors, addend)
    low, high = min(inputs.a[0], inputs.b[0]), max(inputs.a[1], inputs.b[1])
    for name, part in parts.items():
        with located(file, ("parts", name)):
            check_addend(part.plan, inputs.c != "zero", instead="write `c: zero` under inputs")
            part.check(terms)
        if not part.holds(factors, low, high):
            raise file.error(("parts", name), f"its {part.source.name} does not hold these {factors.name} numbers")
    return Shape(factors, addend, window, parts)


@cache
def _shipped() -> dict[str, YamlFile]:
    """Every shipped file by the id of its claims."""
    return {str(file.data["id"]): file for file in shipped_files("claims")}


@cache
def claims() -> dict[str, tuple[Statement, ...]]:
    """The cases of every shipped claim by id."""
    return {name: tuple(build_claims(file)) for name, file in _shipped().items()}


def _user_file(path: str) -> YamlFile:
    """A user's claim file; without an `id` in it, the claim has the file's name. Raises InputError."""
    file = read_yaml_file(path)
    name = re.sub("[^a-z0-9.]+", "-", Path(path).stem.lower()).strip("-.") or "claim"
    return replace(file, data={"id": name} | file.data) if isinstance(file.data, dict) else file


def claims_named(name: str) -> list[Statement]:
    """The cases of a claim, by its id or by the path of its file. `ID@terms=2,split=toward_zero`, or a path with such
    an ending, selects the cases with these values. Raises UnknownNameError, InputError."""
    plain, at, chosen = name.partition("@")
    if is_file(name):  # even if its name has an @
        plain, at = name, ""
    if plain in _shipped():
        every, hint = build_claims(_shipped()[plain]), f" (`mmaprobe list claims {plain}` shows all)"
    elif names_file(plain):
        every, hint = build_claims(_user_file(plain)), ""
        for own in every:
            if isinstance(own, Claim):
                own.check_parts()
    else:
        raise UnknownNameError("claim", plain, _shipped(), hint=" (`mmaprobe list claims` shows all)")
    selected = every
    for key, value in assignments(chosen.split(",") if at else []).items():
        selected = [claim for claim in selected if str(claim.case.get(key)) == value]
        if not selected:
            raise UnknownNameError("case", name, [claim.id for claim in every], hint)
    return selected
