"""A unit from an FPCore 2.0 expression: the text of its unit file.

Arguments are elements of a and b, and c: by their names, if these are a0, a1, ..., b0, b1, ... and c; else the factors
of each product are an element of a and of b, in the order of the products, and one argument beside them is c. An
operator in `:precision real` is exact; in another precision its result is rounded to it. Operations that units do not
have (divisions, subtractions, conditions on numbers) are errors that name their line. Tensors have a K, and loops over
them are unrolled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from mmaprobe.smtmodel.arithmetic.display import exponent_of
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import InputError, UnknownNameError
from mmaprobe.smtmodel.units.fpcore_loops import unrolled
from mmaprobe.smtmodel.units.fpcore_text import MODES, PRECISIONS, Expression, Group, Word, parsed
from mmaprobe.smtmodel.units.unit import Unit

ROUNDINGS = {word: mode for mode, word in MODES.items()}
NAMES = {word: name for name, word in PRECISIONS.items()}
TOLD = (":name", ":description", ":cite")  # properties of a core that have no effect
_ARGUMENT = re.compile(r"[ab](0|[1-9][0-9]{0,4})|c")
_NUMBER = r"[+-]?[0-9]{1,400}(/[0-9]{1,400}|(\.[0-9]{1,400})?(e[+-]?[0-9]{1,4})?)"


@dataclass(frozen=True)
class Context:
    """The precision in force (None: real) and the rounding."""

    format: str | None
    mode: str = "nearest_even"


def read_fpcore(path: Path, length: int | None = None) -> Unit:
    """The unit of a file with one core, at a K (`length`) if it has tensors. Raises InputError with file and line."""
    from mmaprobe.smtmodel.base.yamlfile import read_file
    from mmaprobe.smtmodel.units.unitfile import parse_unit

    text = unit_text_of(read_file(path), str(path), length)
    try:
        return parse_unit(text, str(path))
    except InputError as error:
        raise InputError(f"as a unit file it has a fault: {error}", str(path)) from None


def unit_text_of(text: str, file: str, length: int | None = None) -> str:
    """The text of a unit file, from the text of a core. Raises InputError."""
    return _Core(file).unit(unrolled(parsed(text, file), length, file))


@dataclass
class _Core:
    """`formats`: the formats of the arguments; `places`: the input of the unit that each argument is; `steps`: the
    steps of names bound by `let`, in order; `rounded`: the format of each rounded term, by its text."""

    file: str
    formats: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    steps: list[tuple[str, str]] = field(default_factory=list)
    rounded: dict[str, str] = field(default_factory=dict)

    def unit(self, core: Group) -> str:
        items = list(core.items[1:])
        if items and isinstance(items[0], Word):
            items.pop(0)  # the name of the function
        if len(items) < 2 or not isinstance(items[0], Group):
            raise InputError("(FPCore (ARGUMENTS) EXPRESSION) is wanted", self.file, core.line)
        arguments, *properties, body = items
        context, name = Context("f64"), Path(self.file).stem
        by_key = self.properties(properties, core.line)
        for key, value in by_key.items():
            if key == ":name" and isinstance(value, Word):
                name = value.text.strip('"')
            elif key not in (*TOLD, ":precision", ":round"):
                self.fail(f"{key} has no place in a unit: inputs are restricted by --inputs", value)
        context = self.within(context, by_key)
        assert isinstance(arguments, Group)
        self.read_arguments(arguments, context, body)
        d = self.term(body, {}, context)
        if (fmt := self.rounded.get(d)) is None:
            self.fail("the result is not rounded to a precision", body)
        count = sum(place.startswith("a[") for place in self.places.values())
        sides = {side: self.side(side, arguments) for side in "abc"}
        lines = [f'unit: "{name}"', "formats: {" + ", ".join(f"{k}: {v}" for k, v in {**sides, "d": fmt}.items()) + "}"]
        lines += [f"length: {count}", "steps:", *(f'  {step}: "{text}"' for step, text in self.steps), f'  d: "{d}"']
        return "\n".join(lines) + "\n"

    def fail(self, why: str, at: Expression) -> NoReturn:
        raise InputError(why, self.file, at.line)

    # -- arguments

    def read_arguments(self, arguments: Group, context: Context, body: Expression) -> None:
        for argument in arguments.items:
            own = context
            if isinstance(argument, Group) and argument.head == "!" and len(argument.items) > 1:
                own = self.within(context, self.properties(argument.items[1:-1], argument.line))
                argument = argument.items[-1]
            if not isinstance(argument, Word) or own.format is None:
                self.fail("an argument is a name with a precision that is not real", argument)
            if argument.text in self.formats:
                self.fail(f"the argument {argument.text} is there twice", argument)
            self.formats[argument.text] = own.format
        named = all(_ARGUMENT.fullmatch(name) for name in self.formats)
        self.places = (
            {name: name if name == "c" else f"{name[0]}[{name[1:]}]" for name in self.formats} if named else {}
        )
        if not named:
            for place, pair in enumerate(self.products(body)):
                for side, name in zip("ab", pair, strict=True):
                    if self.places.setdefault(name, f"{side}[{place}]") != f"{side}[{place}]":
                        self.fail(f"{name} is a factor of two products: name the arguments a0, b0, ..., c", body)
            if len(left := [name for name in self.formats if name not in self.places]) > 1:
                self.fail(f"{', '.join(left)} are no factors of products, and a unit has one addend", arguments)
            self.places |= dict.fromkeys(left, "c")
        sides = {side: {place for place in self.places.values() if place[0] == side} for side in "ab"}
        if {place[1:] for place in sides["a"]} != {place[1:] for place in sides["b"]} or not sides["a"]:
            self.fail("each element of a is to have one of b", arguments)
        if {f"[{k}]" for k in range(len(sides["a"]))} != {place[1:] for place in sides["a"]}:
            self.fail("elements are numbered from 0, without gaps", arguments)

    def products(self, body: Expression) -> Iterator[tuple[str, str]]:
        """The products of two arguments, in order."""
        if isinstance(body, Group):
            if body.head in ("*", "fma"):
                names = [item.text for item in body.items[1:3] if isinstance(item, Word) and item.text in self.formats]
                if len(names) == 2:
                    yield names[0], names[1]
            for item in body.items:
                yield from self.products(item)

    def side(self, side: str, at: Expression) -> str:
        """The format of a, b or c."""
        found = {self.formats[name] for name, place in self.places.items() if place[0] == side}
        if len(found) > 1:
            self.fail(f"the elements of {side} are of several precisions: {', '.join(sorted(found))}", at)
        return found.pop() if found else "none"

    # -- properties

    def properties(self, items: list[Expression] | tuple[Expression, ...], line: int) -> dict[str, Expression]:
        keys, values = items[::2], items[1::2]
        if len(keys) != len(values):
            raise InputError("a property has no value", self.file, line)
        properties: dict[str, Expression] = {}
        for key, value in zip(keys, values, strict=True):
            if not isinstance(key, Word) or not key.text.startswith(":"):
                self.fail("a property (:precision, :round, ...) is wanted here", key)
            if key.text in properties:
                self.fail(f"{key.text} is given twice", key)
            properties[key.text] = value
        return properties

    def within(self, context: Context, properties: Mapping[str, Expression]) -> Context:
        fmt, mode = context.format, context.mode
        if (precision := properties.get(":precision")) is not None:
            fmt = None if isinstance(precision, Word) and precision.text == "real" else self.precision(precision)
        if (rounding := properties.get(":round")) is not None:
            word = rounding.text if isinstance(rounding, Word) else ""
            if word not in ROUNDINGS:
                self.fail(f"a rounding is one of {', '.join(ROUNDINGS)}", rounding)
            mode = ROUNDINGS[word]
        return Context(fmt, mode)

    def precision(self, precision: Expression) -> str:
        if isinstance(precision, Word) and precision.text in NAMES:
            return NAMES[precision.text]
        if isinstance(precision, Group) and precision.head == "float" and len(precision.items) == 3:
            sizes = [item.text if isinstance(item, Word) else "" for item in precision.items[1:]]
            if all(re.fullmatch(r"[1-9][0-9]?", size) for size in sizes):
                exponent, width = map(int, sizes)
                try:
                    return format_named(f"e{exponent}m{width - exponent - 1}_ieee").name
                except (UnknownNameError, ValueError):
                    pass
        self.fail(f"a precision is real, {', '.join(NAMES)} or (float EXPONENT-BITS BITS)", precision)

    # -- expressions

    def term(self, given: Expression, names: Mapping[str, str], context: Context) -> str:
        """A term of the unit; several terms of an exact sum are written in exact(...)."""
        terms = self.terms(given, names, context)
        return terms[0] if len(terms) == 1 else f"exact({', '.join(terms)})"

    def terms(self, given: Expression, names: Mapping[str, str], context: Context) -> list[str]:
        """The terms of an exact sum; a single term for any other expression. `names`: the names bound by `let`, with
        their steps."""
        if isinstance(given, Word):
            return [self.word(given, names)]
        head, items = given.head, given.items[1:]
        if head == "!" and items:
            return self.terms(items[-1], names, self.within(context, self.properties(items[:-1], given.line)))
        if head in ("let", "let*") and len(items) == 2 and isinstance(items[0], Group):
            return self.terms(items[1], self.bound(items[0], names, context, head == "let*"), context)
        if head == "digits":
            return [self.number(given)]
        counts = {"+": 2, "*": 2, "fma": 3, "cast": 1}
        if head not in counts:
            self.fail(f"units have no words for {head or 'this'}: {', '.join(counts)}, let, let* and ! are read", given)
        if len(items) != counts[head]:
            self.fail(f"{head} takes {counts[head]} arguments", given)
        if head == "cast" and context.format is None:
            return self.terms(items[0], names, context)
        if head == "*" and context.format is None and isinstance(factor := items[1], Group) and factor.head == "*":
            scaled = [self.term(item, names, context) for item in (items[0], *factor.items[1:])]
            return [f"scale({', '.join(scaled)})"]
        parts = [self.terms(item, names, context) for item in items]
        if head in ("*", "fma"):
            if any(len(part) > 1 for part in parts[:2]):
                self.fail("units have no words for the product of a sum that is not rounded", given)
            parts = [[f"{parts[0][0]} * {parts[1][0]}"], *parts[2:]]
        found = [term for part in parts for term in part]
        if context.format is None:
            return found
        term = found[0] if len(found) == 1 else f"exact({', '.join(found)})"
        text = f"round({term}, {context.format}, {context.mode})"
        self.rounded[text] = context.format
        return [text]

    def bound(self, pairs: Group, names: Mapping[str, str], context: Context, one_by_one: bool) -> dict[str, str]:
        found = dict(names)
        for pair in pairs.items:
            if not isinstance(pair, Group) or len(pair.items) != 2 or not isinstance(pair.items[0], Word):
                self.fail("(NAME EXPRESSION) is wanted", pair)
            known = found if one_by_one else names
            text = self.term(pair.items[1], known, context)
            step = f"s{len(self.steps)}"
            self.steps.append((step, text))
            self.rounded |= {step: self.rounded[text]} if text in self.rounded else {}
            found[pair.items[0].text] = step
        return found

    def word(self, given: Word, names: Mapping[str, str]) -> str:
        if given.text in names:
            return names[given.text]
        if given.text in self.places:
            return self.places[given.text]
        return self.number(given)

    def number(self, given: Expression) -> str:
        words = [
            item.text if isinstance(item, Word) else "" for item in (given.items if isinstance(given, Group) else ())
        ]
        try:
            if isinstance(given, Word):
                value = Fraction(given.text if re.fullmatch(_NUMBER, given.text) else "none")
            else:
                _, significand, exponent, base = words
                if abs(int(exponent)) > 20_000 or not 2 <= int(base) <= 36:
                    raise ValueError(given)
                value = int(significand) * Fraction(int(base)) ** int(exponent)
        except (ValueError, ZeroDivisionError):
            self.fail("neither an argument, nor a name that is bound, nor a number", given)
        if value == 0:
            return "+0"
        for name in ("f32", "f64"):
            pattern = _pattern_of(value, format_named(name))
            if pattern is not None:
                return f"number({pattern:#x}, {name})"
        self.fail(f"{value} is no number of f64", given)


def _pattern_of(value: Fraction, fmt: Format) -> int | None:
    """The pattern of a number, not zero, of an IEEE format; None if the format does not hold it."""
    exponent = max(exponent_of(abs(value)), fmt.emin)
    scaled = abs(value) / Fraction(2) ** (exponent - fmt.fraction)
    if scaled.denominator > 1 or exponent > fmt.emax:
        return None
    fields = int(scaled) + (exponent - fmt.emin << fmt.fraction)  # the hidden bit counts as one more exponent
    return fields | (value < 0) << fmt.width - 1
