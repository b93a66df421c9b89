"""An FPCore with tensors at one K, as an FPCore without tensors: loops unrolled, conditions decided, elements named.

`(FPCore ((A K) (B K) c) ...)`: the first tensor is a, the second one b; a further argument is c. Counts, places and
conditions are computed from K. An element is read in the core's precision; where the core is real, by a `cast` to the
element's own precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.units.fpcore_text import Expression, Group, Word

MOST_TURNS = 1 << 12  # products, and turns of a loop, at most
ALL = 1 << 16  # turns of all loops together, at most
_COUNTS: Mapping[str, Callable[..., Fraction]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
    "fmin": min, "fmax": max, "ceil": lambda x: Fraction(math.ceil(x)), "floor": lambda x: Fraction(math.floor(x)),
}  # fmt: skip
_TESTS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
}  # fmt: skip
Names = Mapping[str, "Fraction | str"]  # a known number, or a new name


def tensors_of(core: Group) -> list[Group]:
    """The arguments that are tensors."""
    arguments = next((item for item in core.items[1:] if isinstance(item, Group)), core)
    return [item for item in arguments.items if isinstance(item, Group) and item.head != "!"]


def unrolled(core: Group, length: int | None, file: str) -> Group:
    """The core at a number of products; a core without tensors as it is. Raises InputError."""
    tensors = tensors_of(core)
    if not tensors:
        if length is not None:
            raise InputError("an expression without tensors has its own number of products", file, core.line)
        return core
    if length is None or not 0 < length <= MOST_TURNS:
        why = f"a core with tensors is a model for a number of products, at most {MOST_TURNS}: {file}@length=64"
        raise InputError(why, file, core.line)
    return _Unrolling(file, length).core(core, tensors)


@dataclass
class _Unrolling:
    """Unrolls one core. `sides`: the side of each tensor; `precisions`: for a real core, the precision in which each
    tensor's elements are read; `exact`: whether operators are real at the current place."""

    file: str
    length: int
    sides: dict[str, str] = field(default_factory=dict)
    precisions: dict[str, Expression] = field(default_factory=dict)
    real: bool = False
    exact: bool = False
    names: int = 0
    turns: int = 0

    def core(self, core: Group, tensors: list[Group]) -> Group:
        items = list(core.items)
        at = next(place for place, item in enumerate(items) if place and isinstance(item, Group))
        arguments, properties, body = items[at], items[at + 1 : -1], items[-1]
        assert isinstance(arguments, Group)
        words = [[item.text for item in tensor.items if isinstance(item, Word)] for tensor in tensors]
        if len(words) != 2 or any(len(own) != 2 for own in words) or words[0][1] != words[1][1]:
            self.fail("two tensors of one dimension, both of one size, are wanted", arguments)
        if words[0][0] == words[1][0]:
            self.fail(f"the argument {words[0][0]} is there twice", arguments)
        self.sides = {words[0][0]: "a", words[1][0]: "b"}
        by_key = dict(zip(properties[::2], properties[1::2], strict=False))
        given = [value for key, value in by_key.items() if isinstance(key, Word) and key.text == ":precision"]
        self.real = self.exact = bool(given) and _plain(given[0]) == "real"
        rest, names = [item for item in arguments.items if item not in tensors], dict[str, Fraction | str]()
        if len(rest) > 1:
            self.fail("one argument beside two tensors is c", arguments)
        names[words[0][1]] = Fraction(self.length)
        scalars = list[Expression]()
        for item in rest:
            name = item.items[-1] if isinstance(item, Group) else item
            if not isinstance(name, Word):
                self.fail("an argument is a name", item)
            names[name.text], own = "c", Word("c", item.line)
            scalars.append(Group((*item.items[:-1], own), item.line) if isinstance(item, Group) else own)
        result = self.expression(body, names)
        elements = [self.argument(name, side, k) for name, side in self.sides.items() for k in range(self.length)]
        return Group((*items[:at], Group((*elements, *scalars), arguments.line), *properties, result), core.line)

    def argument(self, tensor: str, side: str, place: int) -> Expression:
        word = Word(f"{side}{place}", 1)
        if not self.real:
            return word
        if tensor not in self.precisions:
            raise InputError(
                f"in `:precision real` an element of {tensor} is read by a cast to its precision", self.file, 1
            )
        return Group((Word("!", 1), Word(":precision", 1), self.precisions[tensor], word), 1)

    def fail(self, why: str, at: Expression) -> NoReturn:
        raise InputError(why, self.file, at.line)

    def expression(self, given: Expression, names: Names) -> Expression:
        if isinstance(given, Word):
            return self.word(given, names)
        head, line = given.head, given.line
        if head == "ref":
            return self.element(given, names)
        if head == "if" and len(given.items) == 4:
            return self.expression(given.items[2 if self.test(given.items[1], names) else 3], names)
        if head == "for" and len(given.items) == 4:
            return self.loop(given, names)
        if head in ("let", "let*") and len(given.items) == 3:
            return self.bound(given, names)
        if head == "!" and self.real and (declared := self.declared(given, names)) is not None:
            return declared
        if head == "!" and len(given.items) > 1:
            before = self.exact
            for key, value in zip(given.items[1:-1:2], given.items[2:-1:2], strict=False):
                self.exact = _plain(value) == "real" if _plain(key) == ":precision" else self.exact
            result = self.expression(given.items[-1], names)
            self.exact = before
            return Group((*given.items[:-1], result), line)
        parts = [self.expression(item, names) for item in given.items[1:]]
        zeros = [_plain(part) == "0" for part in parts]
        if self.exact and len(parts) == 2 and any(zeros) and head in ("+", "*"):  # products of a last tile's zeros
            return Word("0", line) if head == "*" or all(zeros) else parts[zeros.index(False)]
        return Group((given.items[0], *parts), line)

    def word(self, given: Word, names: Names) -> Word:
        found = names.get(given.text, given.text)
        return Word(found if isinstance(found, str) else str(found), given.line)

    def element(self, given: Group, names: Names) -> Word:
        tensor = given.items[1].text if len(given.items) == 3 and isinstance(given.items[1], Word) else ""
        if tensor not in self.sides:
            self.fail("(ref TENSOR PLACE) is wanted", given)
        place = self.number(given.items[2], names)
        if place.denominator != 1 or not 0 <= place < self.length:
            self.fail(f"{tensor} has places 0 to {self.length - 1}, not {place}", given)
        return Word(f"{self.sides[tensor]}{place}", given.line)

    def declared(self, given: Group, names: Names) -> Word | None:
        """An element of `(! :precision P (cast (ref TENSOR PLACE)))`, whose precision P is the tensor's."""
        cast = given.items[-1]
        if len(given.items) != 4 or not isinstance(cast, Group) or cast.head != "cast" or len(cast.items) != 2:
            return None
        key, read = given.items[1], cast.items[1]
        if not (isinstance(key, Word) and key.text == ":precision" and isinstance(read, Group) and read.head == "ref"):
            return None
        word, tensor = self.element(read, names), read.items[1]
        assert isinstance(tensor, Word)
        if _plain(self.precisions.setdefault(tensor.text, given.items[2])) != _plain(given.items[2]):
            self.fail(f"elements of {tensor.text} are read in several precisions", given)
        return word

    def step(self, value: Expression, steps: list[Expression]) -> str:
        """The name of a value; a value that is no word is bound in the steps."""
        if isinstance(value, Word):
            return value.text
        self.names += 1
        name = f"t{self.names}"  # unlike the names of elements, operators and c
        steps.append(Group((Word(name, value.line), value), value.line))
        return name

    def loop(self, given: Group, names: Names) -> Expression:
        _, counts, running, body = given.items
        (counter, (times,)), (so_far, (start, update)) = self.pair(counts, 2), self.pair(running, 3)
        count = self.number(times, names)
        if count.denominator != 1 or not 0 <= count <= MOST_TURNS:
            self.fail(f"a loop has 0 to {MOST_TURNS} turns, not {count}", given)
        self.turns += int(count)
        if self.turns > ALL:
            self.fail(f"its loops have more than {ALL} turns", given)
        steps = list[Expression]()
        name = self.step(self.expression(start, names), steps)
        for turn in range(int(count)):
            name = self.step(self.expression(update, {**names, counter: Fraction(turn), so_far: name}), steps)
        return _within(steps, self.expression(body, {**names, so_far: name}))

    def pair(self, given: Expression, size: int) -> tuple[str, Sequence[Expression]]:
        """A loop's single binding of a size: the name, and the expressions after it."""
        if isinstance(given, Group) and len(given.items) == 1 and isinstance(own := given.items[0], Group):
            name = own.items[0] if own.items else given
            if isinstance(name, Word) and len(own.items) == size:
                return name.text, own.items[1:]
        self.fail("a loop is (for ([COUNTER TURNS]) ([NAME START NEXT]) RESULT)", given)

    def bound(self, given: Group, names: Names) -> Expression:
        _, pairs, body = given.items
        if not isinstance(pairs, Group):
            self.fail("(NAME EXPRESSION) is wanted", given)
        found, steps = dict(names), list[Expression]()
        for own in pairs.items:
            name, (text,) = self.pair(Group((own,), own.line), 2)
            known = found if given.head == "let*" else names
            number = self.counted(text, known)
            if number is not None:
                found[name] = number
                continue
            found[name] = self.step(self.expression(text, known), steps)
        return _within(steps, self.expression(body, found))

    def test(self, given: Expression, names: Names) -> bool:
        if isinstance(given, Group) and given.head in _TESTS and len(given.items) == 3:
            return _TESTS[given.head](*(self.number(item, names) for item in given.items[1:]))
        self.fail(f"a condition is one of {', '.join(_TESTS)}, of two counts", given)

    def number(self, given: Expression, names: Names) -> Fraction:
        found = self.counted(given, names)
        if found is None:
            self.fail("a count is computed from K, counters and numbers", given)
        return found

    def counted(self, given: Expression, names: Names) -> Fraction | None:
        """The value of an expression of K, counters and whole numbers; None for any other expression."""
        if isinstance(given, Word):
            found = names.get(given.text)
            if isinstance(found, Fraction):
                return found
            return Fraction(given.text) if found is None and is_digits(given.text) else None
        if given.head not in _COUNTS or len(given.items) != (2 if given.head in ("ceil", "floor") else 3):
            return None
        values = [self.counted(item, names) for item in given.items[1:]]
        if None in values or (given.head == "/" and not values[1]):
            return None
        return _COUNTS[given.head](*values)


def _within(steps: list[Expression], result: Expression) -> Expression:
    line = result.line
    return Group((Word("let*", line), Group(tuple(steps), line), result), line) if steps else result


def _plain(given: Expression) -> str:
    return given.text if isinstance(given, Word) else f"({' '.join(map(_plain, given.items))})"
