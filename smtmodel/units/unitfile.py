"""Unit files: reading and writing the YAML text of a unit.

A step is one expression in Python's syntax, read by Python's own parser and never executed. It consists of calls of
nodes (`NODES`), elements and ranges of elements (`a[k]`, `a[k:k+16]`), `c`, `+0`, `-0`, `-x`, `acc`, names of earlier
steps, and calls of the roundings in `roundings`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_origin

from mmaprobe.smtmodel.arithmetic.formats import (
    FORMATS,
    Format,
    format_named,
    is_spelling,
    own_format,
    with_common_name,
)
from mmaprobe.smtmodel.arithmetic.rounding import MODES, RESULT_MODES, mode_named
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.jsontext import plain_reason
from mmaprobe.smtmodel.base.wording import counted, ranges_text
from mmaprobe.smtmodel.nodes import (
    Constant,
    Each,
    Element,
    Gate,
    Index,
    Largest,
    Literal,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
    Shared,
)
from mmaprobe.smtmodel.nodes.element import MINUS, SUBNORMALS, power_of_two
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.nodes.repeat import Places
from mmaprobe.smtmodel.nodes.rewriting import each_of
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.nodes.sums import Sum
from mmaprobe.smtmodel.operand import FURTHER, KEYS, NAMED, NO_ADDEND, READ
from mmaprobe.smtmodel.units.unit import LONGEST, Unit, closed_steps
from mmaprobe.smtmodel.units.written import NODES, WRITTEN, Written, rounding_text, types_of, words_of

if TYPE_CHECKING:
    from mmaprobe.smtmodel.base.yamlfile import YamlFile
    from mmaprobe.smtmodel.units.unitkeys import ExpressionFile, OwnFormat, UnitFile

#: examples in messages: terms that share a scale factor, and terms without one
BLOCK = "each(k in range(2, 4), scale(a[k] * b[k], scale_a[1], scale_b[1]))"
EACH = "each(k in range(4), a[k] * b[k])"
VARIABLES = "ijkl"  # the loop variable of each level, as it is written


def parse_unit(text: str, name: str, *, whole: bool = False) -> Unit:
    """The unit of a text; `name` is the name of its file. `whole`: every product has to be read by some step or
    declared as ignored, and every step has to be used. Raises InputError with file, line, key and column."""
    from mmaprobe.smtmodel.base.yamlfile import read_yaml, validate
    from mmaprobe.smtmodel.units.unitkeys import UnitFile  # schemas are loaded only to read a file

    file = read_yaml(text, name)
    return _Reader(file, validate(file, UnitFile)).unit(whole)


#: spellings of numbers that only Python reads: 1_0, 0b10, 0o7
_ODD_NUMBER = re.compile(r"\b(0[bo][0-9_]+|0x[0-9a-f_]*_[0-9a-f_]*|[0-9]+_[0-9_]*)\b", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"\w+")


@dataclass
class Scope:
    """The loops around a place of an expression: the level of each loop variable, and the levels of repeats."""

    levels: dict[str, int] = field(default_factory=dict)
    repeats: list[int] = field(default_factory=list)


class MistakeError(Exception):
    """A mistake at a place of an expression."""

    def __init__(self, where: ast.AST, message: str) -> None:
        self.where = where
        super().__init__(message)


class ExpressionReader:
    """Reads the expressions of a file. `steps`: the steps read so far."""

    calls: ClassVar[tuple[str, ...]] = tuple(WRITTEN)
    further: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # for each call, names of options besides those of its node
    written: ClassVar[Mapping[str, str]] = WRITTEN

    def __init__(self, file: YamlFile, data: ExpressionFile) -> None:
        self.file, self._data = file, data
        self.steps: dict[str, Node] = {}
        self.roundings: dict[str, Rounding] = {}
        self.subnormals: dict[str, str] = dict.fromkeys(READ, "keep")
        self.positive_zeros = False
        self._own_formats: dict[str, Format] = {}
        for name, own in data.own_formats.items():
            self._own_formats[self._new_name(name, "own_formats")] = self._own(name, own)
        self.formats = self._formats()
        given = [row for row in NAMED.values() if row.key in self.formats]
        self.alone = {row.name for row in given if row.per == "sum"}  # the operands without an index
        if data.formats.get("c") == NO_ADDEND:
            self.alone.remove("c")

    def read_roundings(self) -> None:
        for name, text in self._data.roundings.items():
            self.roundings[self._new_name(name, "roundings")] = self._read("roundings", name, text, self._rounding_text)

    def result(self) -> Node:
        """Reads all steps into `steps`, and returns the step `d`, which is not among these."""
        for name, step in self._data.steps.items():
            node = self._read("steps", name, str(step), lambda tree: self._node(tree, Scope()))
            self.steps[self._new_name(name, "steps")] = node
        if "d" not in self.steps:
            raise self.file.error(("steps",), "the step `d` is missing: the result")
        return self.steps.pop("d")

    def check_result(self, fmt: Format) -> None:
        """Raises InputError if the result does not have the file's format of d."""
        if fmt != self.formats["d"]:
            raise self.file.error(("formats", "d"), f"the result of the last step is {fmt.name}")

    def check_used(self) -> None:
        """Raises InputError for a step on which the result does not depend, and for a format defined in the file that
        no operand or step has."""
        texts, waiting, read = {name: str(step) for name, step in self._data.steps.items()}, ["d"], {"d"}
        while waiting:
            tree = ast.parse(texts[waiting.pop()].strip(), mode="eval")
            unused = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)} - read
            read |= unused
            waiting += [name for name in unused if name in texts]
        for name in texts:
            if name not in read:
                raise self.file.error(("steps", name), "d does not depend on this step: use it, or leave it out")
        texts |= self._data.roundings
        words = {*self._data.formats.values(), *(word for text in texts.values() for word in _WORD.findall(text))}
        for name in self._own_formats:
            if name not in words:
                raise self.file.error(("own_formats", name), "nothing has this format: use it, or leave it out")

    def _own(self, name: str, own: OwnFormat) -> Format:
        try:
            return with_common_name(own_format(name, **own.model_dump()))
        except ParameterError as error:
            raise self.file.error(("own_formats", name), str(error).removeprefix(f"{name}: ")) from None

    def _formats(self) -> dict[str, Format]:
        formats, known, given = {}, [*KEYS[:3], "d", *KEYS[3:]], dict(self._data.formats)
        if given.get("c") == NO_ADDEND:
            given["c"] = given.get("d", "")
        for operand, name in given.items():
            if operand not in known:
                raise self.file.error(("formats", operand), f"the operands are {', '.join(known[:-1])} and {known[-1]}")
            if not name:
                continue
            try:
                formats[operand] = self._format(name)
            except MmaprobeError as error:
                raise self.file.error(("formats", operand), str(error)) from None
        if "scale" in formats and formats["scale"].signed:
            raise self.file.error(("formats", "scale"), "factors have no sign: ue8m0 and ue4m3 are such formats")
        for operand in "abdc":
            if operand not in formats:
                raise self.file.error(("formats",), f"the format of {operand} is missing")
        return formats

    def _format(self, name: str) -> Format:
        """A format that the file defines, or one that every file can name. Raises UnknownNameError or
        ParameterError."""
        return self._own_formats[name] if name in self._own_formats else format_named(name, self._own_formats)

    def _meanings(self) -> dict[str, str]:
        """The names that a file cannot give to anything, each with the reason."""
        return {
            **dict.fromkeys(self.steps, "a step above has it"), **dict.fromkeys(self.roundings, "a rounding has it"),
            **{name: f"{name} is the number of a product in a sum or a loop: {EACH}".replace("(k", f"({name}")
               .replace("[k]", f"[{name}]") for name in VARIABLES},
            "range": f"range gives the numbers of products: {EACH}",
            "acc": f"acc is the result so far in a loop: {self.written['repeat']}",
            **dict.fromkeys(RESULT_MODES, "it is a way to round"), **dict.fromkeys(FORMATS, "it is a format"),
            **dict.fromkeys(self._own_formats, "own_formats has it"), **dict.fromkeys(NAMED, "it is an operand"),
            **{name: f"it is a node: {self.written.get(name, name)}" for name in self.calls},
        }  # fmt: skip

    def _new_name(self, name: str, section: str) -> str:
        if is_spelling(name):
            raise self.file.error((section, name), "this name is the spelling of a format")
        why = self._meanings().get(name) if name.isidentifier() else "a name consists of letters, digits and _"
        if why is not None:
            raise self.file.error((section, name), f"this name cannot be used: {why}")
        return name

    def _read(self, section: str, name: str, text: str, build: Callable[[ast.expr], Any]) -> Any:
        if odd := _ODD_NUMBER.search(text.strip()):
            wanted = f"{odd.group()!r}: a number is written in decimal digits, or as 0x and hexadecimal digits"
            raise self._mistake((section, name), (1, odd.start() + 1), wanted)
        try:
            return build(ast.parse(text.strip(), mode="eval").body)
        except SyntaxError as error:
            message = plain_reason(ValueError(error.msg))
            raise self._mistake((section, name), (error.lineno or 1, error.offset or 1), message) from None
        except MistakeError as error:
            place = getattr(error.where, "lineno", 1), getattr(error.where, "col_offset", 0) + 1
            raise self._mistake((section, name), place, str(error)) from None
        except RecursionError:
            raise self.file.error((section, name), "nested too deep") from None

    def _mistake(self, key: tuple[str, str], place: tuple[int, int], message: str) -> InputError:
        return self.file.error(key, f"column {place[1]} of the expression: {message}")

    # -- expressions

    def _node(self, tree: ast.expr, scope: Scope) -> Node:
        node = self._item(tree, scope)
        if isinstance(node, Each):
            raise MistakeError(tree, "several terms stand where one is needed: add them with exact or fused")
        return node

    def _item(self, tree: ast.expr, scope: Scope) -> Node:
        """A node, or several terms of a sum."""
        try:
            return self._built(tree, scope)
        except MmaprobeError as error:
            raise MistakeError(tree, str(error)) from None

    def _built(self, tree: ast.expr, scope: Scope) -> Node:
        match tree:
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=ast.Constant(value=0)):
                return Constant(isinstance(sign, ast.USub))
            case ast.Constant(value=0):
                return Constant()
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Product(MINUS, self._node(operand, scope))
            case ast.BinOp(left=ast.Constant(value=2), op=ast.Pow(), right=right):
                return power_of_two(self._number(right))
            case ast.BinOp(left=ast.Constant(value=1), op=ast.Div(), right=right):
                return self._inverse(right, scope)
            case ast.Name(id=name):
                return self._named(tree, name, scope)
            case ast.Attribute(value=ast.Name(id=name), attr="acc") if scope.levels.get(name) in scope.repeats:
                return Running(scope.levels[name])
            case ast.Subscript(value=ast.Name(id=operand)):
                return self._element(tree, operand, scope)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._times(tree, self._item(left, scope), self._item(right, scope), {})
            case ast.Call(func=ast.Name(id=name)):
                return self._call(tree, name, scope)
        how = "a sum is written exact(x, y) or fused(x, y, F=BITS)"
        hint = f": {how}" if isinstance(tree, ast.BinOp | ast.UnaryOp) else ""
        raise MistakeError(tree, f"{ast.unparse(tree)!r} is not a node{hint}")

    def _named(self, tree: ast.expr, name: str, scope: Scope) -> Node:
        if name in self.alone:
            return self._input(name, None)
        if name == "acc" and scope.repeats:
            return Running(scope.repeats[-1])
        if name in self.steps:
            return self.steps[name]
        if name == "c":
            raise MistakeError(tree, "c is read, but formats says that there is no c")
        if name in self._data.steps:
            raise MistakeError(tree, f"the step {name!r} is read before its definition: a step reads those above")
        known = [*self.alone, "acc", *self.steps, *self.roundings, *self.calls]
        raise MistakeError(tree, str(UnknownNameError("name", name, known)))

    def _element(self, tree: ast.Subscript, operand: str, scope: Scope) -> Node:
        if operand not in NAMED or operand in self.alone:
            raise MistakeError(tree, str(UnknownNameError("operand", operand, NAMED.keys() - self.alone)))
        if not isinstance(tree.slice, ast.Slice):
            return self._input(operand, self._affine(tree.slice, scope))
        part = tree.slice
        if part.lower is None or part.upper is None:
            raise MistakeError(tree, "a range of elements has a start and an end: a[0:16]")
        low, high = self._affine(part.lower, scope), self._affine(part.upper, scope)
        count = high.plus(low, -1)
        step = self._affine(part.step, scope) if part.step is not None else Index(1)
        if count.factors or step.factors or count.offset < 1 or step.offset < 1:
            raise MistakeError(tree, "a range of elements has a fixed, positive length and step")
        level = len(scope.levels) + 1
        index = Index(low.offset, (*low.factors, (level, step.offset)))
        places = _of_length(tree, range(-(-count.offset // step.offset)))
        return Each(level, places, self._input(operand, index))

    def _input(self, operand: Any, index: Index | None) -> Element:
        if operand not in self.subnormals:
            return Element(operand, index)
        read: Any = self.subnormals[operand]
        return Element(operand, index, read, self.positive_zeros)

    def _times(self, tree: ast.expr, left: Node, right: Node, options: Mapping[str, Any]) -> Node:
        if isinstance(left, Each) and isinstance(right, Each):
            if (left.level, left.places) != (right.level, right.places):
                raise MistakeError(tree, "the two factors have different numbers of elements")
            return Each(left.level, left.places, Product(left.body, right.body, **options))
        if isinstance(left, Each) or isinstance(right, Each):
            raise MistakeError(tree, "one factor is an element, the other a range of elements")
        return Product(left, right, **options)

    def _affine(self, tree: ast.expr, scope: Scope) -> Index:
        match tree:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return Index(value)
            case ast.Name(id=name) if name in scope.levels:
                return Index(0, ((scope.levels[name], 1),))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Index().plus(self._affine(operand, scope), -1)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
                return self._affine(left, scope).plus(
                    self._affine(right, scope), 1 if isinstance(sign, ast.Add) else -1
                )
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                one, two = self._affine(left, scope), self._affine(right, scope)
                if not one.factors or not two.factors:
                    return Index().plus(two, one.offset) if not one.factors else Index().plus(one, two.offset)
        if not scope.levels:
            raise MistakeError(tree, f"{ast.unparse(tree)!r} is not a whole number")
        (*_, last) = scope.levels
        known = (
            f"whole numbers and {', '.join(scope.levels)}, added, subtracted or multiplied by a number (2*{last} + 1)"
        )
        hint = f"; products that share a scale factor stand in an each of their own: {BLOCK}"
        divided = any(isinstance(part, ast.FloorDiv | ast.Div | ast.Mod | ast.RShift) for part in ast.walk(tree))
        raise MistakeError(tree, f"{ast.unparse(tree)!r} is not a place: a place is made of {known}{hint * divided}")

    # -- calls

    def _call(self, tree: ast.Call, name: str, scope: Scope) -> Node:
        options = self._given(tree)
        if name in self.roundings:
            term, *bits = self._arguments(tree, 1, 2)
            self._only(options, ())
            random = self._node(bits[0], scope) if bits else None
            if not (random is None or isinstance(random, Element | Literal)):
                raise MistakeError(bits[0], "random bits are an operand or a number: r(x, random)")
            return Round(self._node(term, scope), self.roundings[name], random)
        if name not in self.calls:
            raise MistakeError(tree, str(UnknownNameError("node", name, [*self.calls, *self.roundings])))
        if name in NODES:
            self._only(options, (*NODES[name].names, *self.further.get(name, ())))
        build: Callable[[ast.Call, dict[str, ast.expr], Scope], Node] | None = getattr(self, f"_call_{name}", None)
        return self._of_row(NODES[name], tree, options, scope) if build is None else build(tree, options, scope)

    def _of_row(self, row: Written, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        """A call of a node: any number of terms, or operands that are single fields, followed by options; further
        options are given by name."""
        kind: Any = row.node
        for option in row.options:
            if option.by_name and option.default == "needed" and option.name not in options:
                raise MistakeError(tree, f"{option.name} is missing: {option.meaning}")
        given = self._options(row, options)
        if "items" in kind.field_names():
            read = self._item if issubclass(kind, Sum) else self._node
            return kind(tuple(read(term, scope) for term in tree.args), **given)  # type: ignore[no-any-return]
        placed = [option for option in row.options if not option.by_name]
        needed = sum(option.default == "needed" for option in placed)
        count = sum(types_of(kind, name) == (Node,) for name in kind.field_names())
        arguments = self._arguments(tree, count + needed, count + len(placed))
        operands = [self._item(term, scope) if row.ranged else self._node(term, scope) for term in arguments[:count]]
        for option, value in zip(placed, arguments[count:], strict=False):
            given[option.field] = self._value(kind, option.field, value)
        if len(operands) != 1:
            return kind(*operands, **given)  # type: ignore[no-any-return]
        return _over_places(operands[0], lambda one: kind(one, **given))

    def _options(self, row: Written, options: Mapping[str, ast.expr]) -> dict[str, Any]:
        """The options of a call that are given by name, by their fields."""
        by_name = {option.name: option.field for option in row.options}
        return {by_name[name]: self._value(row.node, by_name[name], tree) for name, tree in options.items()}

    def _arguments(self, tree: ast.Call, least: int, most: int | None = None) -> list[ast.expr]:
        count, most = len(tree.args), least if most is None else most
        if not least <= count <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            name = tree.func.id if isinstance(tree.func, ast.Name) else ""
            form = f": {self.written[name]}" if name in self.written else ""
            raise MistakeError(tree, f"{counted(count, 'argument')} given, {wanted} needed{form}")
        return tree.args

    def _given(self, tree: ast.Call) -> dict[str, ast.expr]:
        """The arguments that a call gives by name."""
        options: dict[str, ast.expr] = {}
        for word in tree.keywords:
            if word.arg is None:
                raise MistakeError(word.value, "`**` is not read here: a parameter has a name")
            if word.arg in options:
                raise MistakeError(word.value, f"{word.arg} is given twice")
            options[word.arg] = word.value
        return options

    def _only(self, options: Mapping[str, ast.expr], known: tuple[str, ...]) -> None:
        for name in options:
            if name not in known:
                raise MistakeError(options[name], str(UnknownNameError("parameter", name, known or ("none",))))

    def _number(self, tree: ast.expr) -> int:
        return self._affine(tree, Scope()).offset

    def _numbers(self, tree: ast.expr, none: bool = False) -> tuple[int | None, ...]:
        if not isinstance(tree, ast.List):
            raise MistakeError(tree, "a list with a number for each operand is needed")
        return tuple(None if none and _is_none(x) else self._number(x) for x in tree.elts)

    def _word(self, tree: ast.expr, known: tuple[str, ...]) -> Any:
        if isinstance(tree, ast.Name):
            if tree.id in known:
                return tree.id
            if known in (MODES, RESULT_MODES) and mode_named(tree.id) in MODES:
                return mode_named(tree.id)
        raise MistakeError(tree, str(UnknownNameError("value", ast.unparse(tree), known)))

    def _format_word(self, tree: ast.expr) -> Format:
        try:
            return self._format(ast.unparse(tree))
        except MmaprobeError as error:
            raise MistakeError(tree, str(error)) from None

    def _truth(self, tree: ast.expr) -> bool:
        match tree:
            case ast.Name(id="true") | ast.Constant(value=True):
                return True
            case ast.Name(id="false") | ast.Constant(value=False):
                return False
        raise MistakeError(tree, "true or false is needed")

    def _value(self, kind: type, name: str, tree: ast.expr) -> Any:
        """The value of a field of a class, such as a node, by the type of the field."""
        types = types_of(kind, name)
        if words := words_of(types):
            return self._word(tree, words)
        plain: dict[Any, Callable[[ast.expr], Any]] = {
            bool: self._truth, Format: self._format_word, Rounding: self._rounding_text
        }  # fmt: skip
        if types[0] in plain:
            return plain[types[0]](tree)
        lists = [one for one in types if get_origin(one) is tuple]
        if lists and (len(types) == 1 or isinstance(tree, ast.List)):
            return self._numbers(tree, none=NoneType in get_args(get_args(lists[0])[0]))
        return self._number(tree)

    def _call_product(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        left, right = self._arguments(tree, 2)
        given = self._options(NODES["product"], options)
        return self._times(tree, self._item(left, scope), self._item(right, scope), given)

    def _call_gate(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        term, zero = self._arguments(tree, 2)
        product, constant = self._item(term, scope), self._node(zero, scope)
        if not isinstance(constant, Constant):
            raise MistakeError(zero, "the zero of a gate is +0 or -0")
        return _over_places(product, lambda one: Gate(one, constant.negative))

    def _call_shared(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        return self._of_side(Shared, tree, options, scope)

    def _call_largest(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        return self._of_side(Largest, tree, options, scope)

    def _of_side(
        self, kind: type[Shared | Largest], tree: ast.Call, options: dict[str, ast.expr], scope: Scope
    ) -> Node:
        """A node over elements of one operand, a or b."""
        items = [own for term in tree.args for own in each_of(self._item(term, scope))]
        sides = {item.operand if isinstance(item, Element) else "" for item in items}
        if len(sides) != 1 or not sides <= {"a", "b"}:
            raise MistakeError(tree, kind.one_side)
        return kind(tuple(items), self.formats[sides.pop()], **self._options(NODES[kind.kind], options))

    def _inverse(self, tree: ast.expr, scope: Scope) -> Node:
        node = self._node(tree, scope)
        if not isinstance(node, Shared) or node.inverse:
            raise MistakeError(tree, "1 can be divided only by a power of two that elements share: 1 / shared(a[0:16])")
        return replace(node, inverse=True)

    def _rounding_text(self, tree: ast.expr) -> Rounding:
        if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "round"):
            raise MistakeError(tree, "a rounding is written round(FORMAT, MODE, ...)")
        try:
            return self._rounding(tree, tree.args)
        except ParameterError as error:
            raise MistakeError(tree, str(error)) from None

    def _rounding(self, tree: ast.Call, args: list[ast.expr]) -> Rounding:
        options = self._given(tree)
        self._only(options, NODES["round"].names)
        if not 1 <= len(args) <= 2:
            raise MistakeError(tree, "a format and a mode are needed")
        fmt = self._format_word(args[0])
        parameters = dict(zip(("mode",), args[1:], strict=False)) | options
        return Rounding(fmt, **{word: self._value(Rounding, word, value) for word, value in parameters.items()})

    def _call_round(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        term, *rest = self._arguments(tree, 2, 3)
        return Round(self._node(term, scope), self._rounding(tree, rest))

    def _call_scale(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        term, left, right = (self._node(part, scope) for part in self._arguments(tree, 3))
        for part, factor in zip(tree.args[1:], (left, right), strict=True):
            if not (factor.is_factor if isinstance(factor, Element) else self._is_positive(factor)):
                raise MistakeError(
                    part,
                    "a scale factor is an element of scale_a or scale_b, or a positive number (2**3, "
                    "number(0x3f800000, f32))",
                )
        return Scale(term, left, right)

    def _is_positive(self, node: Node) -> bool:
        """Whether a node is a number above zero, or a number computed from magnitudes, which may be zero."""
        if isinstance(node, Literal):
            return int(node.format.subnormals) <= node.pattern <= node.format.largest
        return node.is_number and node.never_below_zero

    def _loop(self, tree: ast.expr, scope: Scope) -> tuple[str, int, Places]:
        match tree:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.In()], comparators=[places]):
                if name in scope.levels or name in self.steps:
                    whose = "the loop around this one" if name in scope.levels else "a step above"
                    raise MistakeError(tree, f"{name} is the name of {whose}: give the loop another one")
                return name, len(scope.levels) + 1, self._places(places)
        raise MistakeError(tree, "a loop is written k in range(0, 32, 2), or k in [0, 1, 4, 5]")

    def _places(self, tree: ast.expr) -> Places:
        if isinstance(tree, ast.List):
            return tuple(self._number(x) for x in tree.elts)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "range":
            numbers = [self._number(x) for x in self._arguments(tree, 1, 3)]
            if len(numbers) == 3 and not numbers[2]:
                raise MistakeError(tree, "a step of 0 never ends")
            return _of_length(tree, range(*numbers))
        raise MistakeError(tree, "places are written range(0, 32, 2), or [0, 1, 4, 5]")

    def _call_repeat(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        loop, start, body = self._arguments(tree, 3)
        name, level, places = self._loop(loop, scope)
        inner = Scope({**scope.levels, name: level}, [*scope.repeats, level])
        return Repeat(level, places, self._node(start, scope), self._node(body, inner))

    def _call_each(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        loop, body = self._arguments(tree, 2)
        name, level, places = self._loop(loop, scope)
        inner = Scope({**scope.levels, name: level}, scope.repeats)
        return Each(level, places, self._node(body, inner))


def _of_length(tree: ast.expr, places: range) -> range:
    """The places. Raises MistakeError for more places than a unit may have products."""
    if places[LONGEST:]:
        raise MistakeError(tree, f"more than {LONGEST} places")
    return places


def _over_places(item: Node, made: Callable[[Node], Node]) -> Node:
    """A node around an item, or around each item over a range."""
    return replace(item, body=made(item.body)) if isinstance(item, Each) else made(item)


class _Reader(ExpressionReader):
    def __init__(self, file: YamlFile, data: UnitFile) -> None:
        super().__init__(file, data)
        self.data = data

    def unit(self, whole: bool) -> Unit:
        data, formats = self.data, self.formats
        if data.length > LONGEST:
            raise self.file.error(("length",), f"{data.length} products are too many; at most {LONGEST}")
        self._inputs()
        self.read_roundings()
        result, scale = self.result(), formats.get("scale")
        more = tuple((key, formats[key]) for key in KEYS[4:] if key in formats)
        try:
            unit = Unit(formats["a"], formats["b"], formats["c"], data.length, result, scale, data.scale_block,
                        self.steps, self.roundings, more=more, reference=data.unit, about=data.about,
                        source=data.source, evidence=data.evidence)  # fmt: skip
        except ParameterError as error:
            if error.parameter in data.model_fields_set:
                message = error.message
                raise self.file.error((error.parameter,), message) from None
            raise self.file.error(("steps", "d"), str(error)) from None
        self.check_result(unit.d)
        self._check_unread(unit, whole)
        if whole:
            self.check_used()
            self._check_keys(unit)
        return unit

    def _check_keys(self, unit: Unit) -> None:
        """Raises InputError for keys about an operand that no step reads."""
        if "c" in self.data.inputs and not unit.addend:
            raise self.file.error(("inputs", "c"), "no step reads c")
        if unit.scale is None and "scale_block" in self.data.model_fields_set:
            raise self.file.error(("scale_block",), "there are no scale factors: formats has no scale")
        unread = unit.unread()
        for row in FURTHER:
            places = unread[row.name]
            if places and (row.per != "product" or len(places) == unit.length):  # a step reads its first draw
                which = row.name if row.per == "sum" else f"{row.name}[{ranges_text(places)}]"
                raise self.file.error(("formats", row.key), f"no step reads {which}")

    def _check_unread(self, unit: Unit, whole: bool) -> None:
        """Raises InputError for a product with a factor that no step reads and that the file does not declare as
        ignored (if `whole`), and for a product declared as ignored that is read."""
        ignored, declared = unit.ignored(), sorted(set(self.data.ignored))
        for k in declared:
            if k not in ignored:
                why = "the steps read it" if 0 <= k < unit.length else "there is no such product"
                raise self.file.error(("ignored",), f"product {k}: {why}")
        if whole and any(k not in declared for k in ignored):
            unread = unit.unread()
            parts = [f"{name}[{ranges_text([k for k in unread[name] if k not in declared])}]" for name in ("a", "b")
                     if set(unread[name]) - set(declared)]  # fmt: skip
            raise self.file.error(
                ("length",),
                f"no step reads {' and '.join(parts)}: mend the steps or the length, or say which products the unit "
                f"ignores: `ignored: {list(ignored)}`",
            )

    def _inputs(self) -> None:
        for key, value in self.data.inputs.items():
            if key == "zeros":
                if value not in ("signed", "positive"):
                    raise self.file.error(("inputs", key), "zeros are read as signed, or as positive")
                continue
            if key not in ("subnormals", *READ):
                one = ", ".join(READ)
                raise self.file.error(("inputs", key), f"the keys are zeros, subnormals, and operands: {one}")
            if value not in SUBNORMALS:
                raise self.file.error(
                    ("inputs", key), str(UnknownNameError("reading of subnormals", value, SUBNORMALS))
                )
        everywhere = self.data.inputs.get("subnormals", "keep")
        self.positive_zeros = self.data.inputs.get("zeros") == "positive"
        for operand in READ:
            fmt = self.formats.get(operand)
            every = "keep" if fmt is not None and fmt.is_integer else everywhere
            self.subnormals[operand] = self.data.inputs.get(operand, every)


def _is_none(tree: ast.expr) -> bool:
    return (isinstance(tree, ast.Name) and tree.id == "none") or (isinstance(tree, ast.Constant) and tree.value is None)


# -- writing


def formats_text(a: Format, b: Format, c: Format, d: Format, addend: bool) -> dict[str, str]:
    """The section `formats` of a unit file. `addend`: whether the unit reads c; the format of an unread c is written
    only if it is not the result's."""
    return {"a": a.name, "b": b.name, "c": c.name if addend or c != d else NO_ADDEND, "d": d.name}


def unit_text(unit: Unit) -> str:
    """The text of a unit; `parse_unit` reads it back as an equal unit. Raises ParameterError for a unit that no file
    can describe: the unit of a plan whose units read inputs in different ways, or a unit with too many nested loops."""
    return _Writer(unit).text()


def step_texts(unit: Unit) -> dict[str, str]:
    """The texts of a unit's roundings and steps, by name."""
    writer = _Writer(unit)
    return writer.rounding_texts() | writer.step_texts()


def untaken(name: str, taken: set[str]) -> str:
    """The name, with as many _ appended as make it differ from all names in `taken`; it is added to `taken`."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _variable(level: int) -> str:
    """The loop variable of a level."""
    return VARIABLES[level - 1] if level <= len(VARIABLES) else f"loop{level}"


class _Writer:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.names: dict[Node, str] = {node: name for name, node in unit.names.items()}
        own = {how: name for name, how in unit.roundings.items()}
        taken = {*self.names.values(), *own.values()}
        for number, node in enumerate((n for n in closed_steps(unit.result) if n not in self.names), start=1):
            self.names[node] = untaken(f"step{number}", taken)
        self.order = [node for node in walk(unit.result) if node in self.names]
        used = dict.fromkeys(node.rounding for node in of_kind(unit.result, Round))
        self.roundings = {how: own.get(how) or untaken(f"r{number}" if len(used) > 1 else "r", taken)
                          for number, how in enumerate(used, start=1)}  # fmt: skip
        self.open: list[int] = []  # the levels of the repetitions around the node being written

    def text(self) -> str:
        unit = self.unit
        formats = formats_text(unit.a, unit.b, unit.c, unit.d, unit.addend)
        data: dict[str, Any] = {"unit": unit.reference}
        data |= {key: getattr(unit, key) for key in ("about", "source", "evidence") if getattr(unit, key)}
        further = {row.key: fmt for row in FURTHER if (fmt := unit.formats.get(row.name)) is not None}
        used = [unit.a, unit.b, unit.c, *further.values(), *(how.format for how in self.roundings)]
        used += [node.format for node in of_kind(unit.result, Literal)]
        if own := {fmt.name: _own_text(fmt) for fmt in used if not (fmt.name in FORMATS or is_spelling(fmt.name))}:
            data["own_formats"] = own
        data |= {"formats": formats | {key: fmt.name for key, fmt in further.items()}, "length": unit.length}
        if ignored := unit.ignored():
            data["ignored"] = list(ignored)
        if unit.scale:
            data["scale_block"] = unit.scale_block
        if inputs := self._inputs():
            data["inputs"] = inputs
        data["roundings"], data["steps"] = self.rounding_texts(), self.step_texts()
        return _yaml(data)

    def _inputs(self) -> dict[str, str]:
        """The section `inputs`: how subnormals and zeros of operands are read, if not unchanged."""
        elements = {node for node in of_kind(self.unit.result, Element) if not node.is_factor}
        reads: dict[str, str] = {}
        for operand in READ:
            ways = {node.subnormals for node in elements if node.operand == operand}
            if len(ways) > 1:
                raise ParameterError(operand, "its elements are read in several ways, but a unit file states one")
            reads |= dict.fromkeys([operand] if ways else [], next(iter(ways), "keep"))
        zeros = {node.positive_zeros for node in elements}
        if len(zeros) > 1:
            raise ParameterError("zeros", "a unit file reads -0 as +0 for all elements, or for none")
        inputs: dict[str, str] = {}
        if set(reads.values()) - {"keep"}:
            inputs = {"subnormals": next(iter(reads.values()))} if len(set(reads.values())) == 1 else reads
        return inputs | ({"zeros": "positive"} if True in zeros else {})

    def rounding_texts(self) -> dict[str, str]:
        return {name: rounding_text(how) for how, name in self.roundings.items()}

    def step_texts(self) -> dict[str, str]:
        steps = {self.names[node]: self._body(node) for node in self.order if node is not self.unit.result}
        return steps | {"d": self._body(self.unit.result)}

    def _node(self, node: Node) -> str:
        return self.names[node] if node in self.names else self._body(node)

    def _index(self, index: Index) -> str:
        parts = [_variable(level) if factor == 1 else f"{factor}*{_variable(level)}"
                 for level, factor in index.factors]  # fmt: skip
        parts += [str(index.offset)] if index.offset or not parts else []
        return " + ".join(parts) if len(parts) > 1 else parts[0]

    def _body(self, node: Node) -> str:
        match node:
            case Constant():
                return "-0" if node.negative else "+0"
            case Literal():
                return f"number(0x{node.pattern:x}, {node.format.name})"
            case Element():
                return node.operand if node.index is None else f"{node.operand}[{self._index(node.index)}]"
            case Running():
                return "acc" if node.level == self.open[-1] else f"{_variable(node.level)}.acc"
            case Product():
                left, right = self._node(node.left), self._node(node.right)
                text = NODES["product"].text(node, (left, right))
                return f"{left} * {right}" if text == f"product({left}, {right})" else text
            case Gate():
                return f"gate({self._node(node.term)}, {'-' if node.minus_zero else '+'}0)"
            case Shared() | Largest():
                items = [_ranges(node.items)] if _ranges(node.items) else map(self._node, node.items)
                text = NODES[node.kind].text(node, items)
                return f"1 / {text}" if isinstance(node, Shared) and node.inverse else text
            case Round():
                return f"{self.roundings[node.rounding]}({', '.join(map(self._node, node.operands))})"
            case Repeat():
                loop = f"{_variable(node.level)} in {_places(node.places)}"
                start = self._node(node.start)
                self.open.append(node.level)
                body = self._node(node.body)
                self.open.pop()
                return f"repeat({loop}, {start}, {body})"
            case Each():
                return (
                    self._slice(node)
                    or f"each({_variable(node.level)} in {_places(node.places)}, {self._node(node.body)})"
                )
        return NODES[node.kind].text(node, map(self._node, node.operands))

    def _slice(self, node: Each) -> str | None:
        """The text `a[0:16] * b[0:16]` of a range of products; None where a range has no such text."""
        body = node.body
        if not (isinstance(body, Product) and isinstance(node.places, range)):
            return None
        if node.places.start or node.places.step != 1:
            return None
        sides = []
        for factor in (body.left, body.right):
            if not (isinstance(factor, Element) and factor.index is not None):
                return None
            factors = dict(factor.index.factors)
            step = factors.pop(node.level, 0)
            if step < 1:
                return None
            low = Index(factor.index.offset, tuple(factors.items()))
            high = Index(factor.index.offset + step * len(node.places), tuple(factors.items()))
            every = f":{step}" if step > 1 else ""
            sides.append(f"{factor.operand}[{self._index(low)}:{self._index(high)}{every}]".replace(" ", ""))
        text = NODES["product"].text(body, sides)
        return " * ".join(sides) if text == f"product({', '.join(sides)})" else text


def _ranges(items: Sequence[Node]) -> str:
    """`a[0:16]`, if the items are a range of elements read in the same way; else empty."""
    first = items[0]
    if not isinstance(first, Element) or first.index is None or first.index.factors:
        return ""
    low, high = first.index.offset, first.index.offset + len(items)
    alike = tuple(replace(first, index=Index(place)) for place in range(low, high))
    return f"{first.operand}[{low}:{high}]" if items == alike else ""


def _own_text(fmt: Format) -> dict[str, Any]:
    written = {key: getattr(fmt, key) for key in ("exponent", "fraction", "bias", "specials")}
    return written if fmt.signed else {**written, "signed": False}


def _places(places: Places) -> str:
    if not isinstance(places, range):
        return f"[{', '.join(map(str, places))}]"
    end = places[-1] + places.step
    if places.step != 1:
        return f"range({places.start}, {end}, {places.step})"
    return f"range({places.start}, {end})" if places.start else f"range({end})"


def _yaml(data: dict[str, Any]) -> str:
    """YAML with short mappings on one line, as in a file written by hand."""
    import yaml  # only here: the import takes a twentieth of the time of a command that writes no unit

    class Dumper(yaml.SafeDumper):
        pass

    def mapping(dumper: yaml.SafeDumper, data: dict[str, Any]) -> yaml.Node:
        short = all(isinstance(value, str) and len(value) < 20 for value in data.values())
        return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=short)

    Dumper.add_representer(dict, mapping)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, width=118, allow_unicode=True)
