"""Plan files: the text of a plan in YAML. Steps are expressions as in unit files (smtmodel/units/unitfile.py), and

    sum(STAGE, start)                           all products, added by a stage; from +0 where no start is given

where a STAGE is a unit, or a partition of the products (partitions.py) and a join of the sums of its parts (joins.py):

    mma                                         a name of `units`: tiles in order, each result the next one's addend
    mma(a1, b0)                                 the same on `words` of elements; a and b name the elements as they are
    then(STAGE, STAGE, ...)                     each stage adds the same products, to the sum of the stage before
    chain(mma, tail=STAGE)                      as mma; products that fill no tile go through a stage, not beside zeros
    promote(split(4), STAGE, r)                 a join's name, its partition, the stage of its parts, a rounding; for
                                                a partition into runs a number suffices, the products of each run; for
                                                parts that begin at given places, the list of these
    split(4, STAGE, r, grain=64)                a partition's name, with its usual join; the options of both follow
    first(4, STAGE, STAGE)                      the stage of the first products, and that of the others
    lanes(STAGE, r, 8, fold(2, 4), fold(4, 1))  lanes and folds stand at the end
    r(STAGE)                                    a stage's result rounded, by a rounding of `roundings`
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from pydantic import Field

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.base.yamlfile import YamlFile, read_yaml, validate
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Node, Round
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.joins import JOINS, Compensate, Promote
from mmaprobe.smtmodel.plans.named import in_format
from mmaprobe.smtmodel.plans.partitions import PARTITIONS, At, Fold, Lanes, Runs
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.plantext import CALLS
from mmaprobe.smtmodel.plans.stages import Chain, Join, Parted, Partition, Stage, Then
from mmaprobe.smtmodel.plans.words import PLAIN, LargestOf, Scaled, SharedOf, Words, check_word
from mmaprobe.smtmodel.units.unitfile import ExpressionReader, MistakeError, Scope
from mmaprobe.smtmodel.units.unitkeys import ExpressionFile
from mmaprobe.smtmodel.units.written import NODES, WRITTEN

#: partitions by word; `At`, which has the word of `Equal`, is written as a list
CUT: dict[str, type[Partition]] = {kind.word: kind for kind in reversed(PARTITIONS)}
JOINED: dict[str, type[Join]] = {join.word: join for join in JOINS}
#: stages that have names of their own: a partition and a join
NAMED: dict[str, tuple[type[Partition], type[Join]]] = {
    **{word: (kind, JOINED[kind.usual]) for word, kind in CUT.items()}, Promote.word: (Runs, Promote),
    Compensate.word: (Runs, Compensate),
}  # fmt: skip


def _parameters(kind: type[Partition | Join]) -> tuple[str, ...]:
    """The fields of a partition or a join, in order."""
    return tuple(field.name for field in fields(kind))


def _options(kind: type[Partition | Join]) -> tuple[str, ...]:
    """The fields that are given by name: those that have a default."""
    return tuple(field.name for field in fields(kind) if field.default is not MISSING)


def _form(name: str, kind: type[Partition], join: type[Join]) -> str:
    """How a stage with a name of its own is written, without options."""
    if kind is Lanes:
        return f"{name}(STAGE, ROUNDING, LANES, ...)"
    first = ["STAGE"] if kind.takes == "first" else []
    how = ["ROUNDING"] if "rounding" in _parameters(join) else []
    return f"{name}({', '.join(['NUMBER', *first, 'STAGE', *how])})"


#: how each stage that is a call is written
STAGES = {
    "chain": "chain(UNIT, tail=STAGE)", "then": "then(STAGE, ...)",
    **{name: _form(name, *own) for name, own in NAMED.items()},
}  # fmt: skip
OTHERS = {"fold": "fold(WAYS, PLACES)", "sum": "sum(STAGE, START)"} | {
    word: f"{word}(PARTITION, STAGE{', ROUNDING' if 'rounding' in _parameters(join) else ''})"
    for word, join in JOINED.items() if word not in STAGES
}  # fmt: skip


class _File(ExpressionFile):
    plan: str
    units: dict[str, str]
    convert: dict[str, str] = Field(default_factory=dict)
    words: dict[str, str] = Field(default_factory=dict)


def parse_plan(text: str, name: str, model_of: Callable[[str], Model], *, whole: bool = False) -> Plan:
    """The plan of a text. `name`: the name of the file; `model_of` gives the units; `whole`: every step and every word
    has to be used. Raises InputError with file, line, key and column."""
    return _Reader(read_yaml(text, name), model_of).plan(whole)


class _Reader(ExpressionReader):
    calls: ClassVar[tuple[str, ...]] = CALLS
    further: ClassVar[Mapping[str, tuple[str, ...]]] = {LargestOf.kind: ("block",)}
    written: ClassVar[Mapping[str, str]] = WRITTEN | STAGES | OTHERS

    def __init__(self, file: YamlFile, model_of: Callable[[str], Model]) -> None:
        self.data = validate(file, _File)
        self.models: dict[str, Model] = {}
        self.words: dict[str, dict[str, Round]] = {"a": {}, "b": {}}  # by their sides
        self._reads: set[str] | None = None  # while a word is read: the sides whose elements it contains
        super().__init__(file, self.data)
        for name in self.data.units:
            self.models[self._new_name(name, "units")] = self._model(name, model_of)

    def _meanings(self) -> dict[str, str]:
        stages = {name: f"it is a stage: {self.written[name]}" for name in (*STAGES, "fold")}
        words = dict.fromkeys((*self.words["a"], *self.words["b"]), "a word above has it")
        return super()._meanings() | stages | dict.fromkeys(self.models, "a unit has it") | words

    def plan(self, whole: bool) -> Plan:
        data, formats = self.data, self.formats
        if "scale" in formats:
            raise self.file.error(("formats", "scale"), "the scale factors of a plan are those of its units")
        self.read_roundings()
        convert = {side: self._conversion(side, name) for side, name in data.convert.items()}
        for name in data.words:
            self._read_word(name)
        result = self.result()
        try:
            plan = Plan(
                formats["a"], formats["b"], formats["c"], result, convert.get("a"), convert.get("b"),
                reference=data.plan, place=self.file.place(("steps", "d")),
                about=data.about, source=data.source, evidence=data.evidence, names=self.steps, words=self.words,
                roundings=self.roundings,
            )  # fmt: skip
        except ParameterError as error:
            key = ("formats", error.parameter) if error.parameter in ("a", "b") else ("steps", "d")
            raise self.file.error(key, str(error)) from None
        self.check_result(plan.d)
        if whole:
            self.check_used()
            used = {node for side in range(2) for word in plan.words_read(side) if word for node in walk(word)}
            for name, word in (self.words["a"] | self.words["b"]).items():
                if word not in used:
                    raise self.file.error(("words", name), "no unit reads this word: use it, or leave it out")
        return plan

    def _model(self, name: str, model_of: Callable[[str], Model]) -> Model:
        try:
            return model_of(self.data.units[name])
        except MmaprobeError as error:
            raise self.file.error(("units", name), str(error)) from None

    def _conversion(self, side: str, name: str) -> Rounding:
        if side not in ("a", "b"):
            raise self.file.error(("convert", side), "the inputs that are converted are a and b")
        if name not in self.roundings:
            raise self.file.error(("convert", side), str(UnknownNameError("rounding", name, self.roundings)))
        return self.roundings[name]

    def _read_word(self, name: str) -> None:
        """A word: an expression over an element of a, or of b, and over the words above it in the file."""
        self._reads = set()
        node = self._read("words", name, self.data.words[name], lambda tree: self._node(tree, Scope()))
        sides, self._reads = self._reads, None
        if len(sides) != 1:
            wanted = "a word is made of one element, of a or of b"
            raise self.file.error(("words", name), f"{wanted}: h(a), r(exact(a, -h(a)))")
        (side,) = sides
        try:
            check_word(name, node, self.formats[side])
        except ParameterError as error:
            raise self.file.error(("words", name), str(error)) from None
        self.words[side][self._new_name(name, "words")] = node

    def _named(self, tree: ast.expr, name: str, scope: Scope) -> Node:
        for side, words in self.words.items():
            if self._reads is not None and name in (side, *words):
                self._reads.add(side)
                return words[name] if name in words else Given(0, self.formats[side])
        return super()._named(tree, name, scope)

    def _words(self, tree: ast.Call) -> Words:
        """The words of a and of b that a unit takes."""
        self._only(self._given(tree), ())
        words = list[Round | None]()
        for side, word in zip("ab", self._arguments(tree, 2), strict=True):
            words.append(self.words[side].get(self._word(word, (side, *self.words[side]))))
        return words[0], words[1]

    def _element(self, tree: ast.Subscript, operand: str, scope: Scope) -> Node:
        raise MistakeError(tree, "a plan reads elements by its units only: sum(UNIT, START)")

    def _call_sum(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        stage, *start = self._arguments(tree, 1, 2)
        self._only(options, ())
        return Products(self._stage(stage), self._node(start[0], scope) if start else Constant())

    def _call_shared(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        return SharedOf(*self._side_read(tree), **self._options(NODES["shared"], options))

    def _call_largest(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        name, fmt = self._side_read(tree)
        block = self._number(options["block"]) if "block" in options else None
        if block is not None and block < 1:
            raise MistakeError(tree, f"a block of {block} elements is impossible")
        return LargestOf(name, fmt, block=block)

    def _side_read(self, tree: ast.Call) -> tuple[str, Format]:
        """The side of which a call reads several elements, and their format."""
        (side,) = self._arguments(tree, 1)
        name = self._word(side, ("a", "b"))
        if self._reads is not None:
            self._reads.add(name)
        return name, self.formats[name]

    def _call_block_scaled(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        word, factor = (self._node(part, scope) for part in self._arguments(tree, 2))
        self._only(options, ())
        for part, node in zip(tree.args, (word, factor), strict=True):
            if not isinstance(node, Round) or isinstance(node, Scaled):
                raise MistakeError(part, "a word and its factor are rounded each: block_scaled(q(quotient(a, s)), s)")
        assert isinstance(word, Round)
        assert isinstance(factor, Round)
        return Scaled.of(word, factor)

    def _inverse(self, tree: ast.expr, scope: Scope) -> Node:
        node = self._node(tree, scope)
        if not isinstance(node, SharedOf) or node.inverse:
            raise MistakeError(tree, "1 can be divided only by a power of two that elements share: 1 / shared(a)")
        return replace(node, inverse=True)

    # -- stages

    def _stage(self, tree: ast.expr) -> Stage:
        try:
            return self._formed(tree)
        except MmaprobeError as error:
            raise MistakeError(tree, str(error)) from None

    def _formed(self, tree: ast.expr) -> Stage:
        if isinstance(tree, ast.Name):
            return Chain(self._unit(tree))
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            name, options = tree.func.id, self._given(tree)
            if name in self.roundings:
                (body,) = self._arguments(tree, 1)
                self._only(options, ())
                return in_format(self._stage(body), self.roundings[name])
            if name in self.models:
                return Chain(self.models[name], None, *self._words(tree))
            if name == "chain":
                return self._chain(tree, options)
            if name == "then":
                self._only(options, ())
                return Then(tuple(map(self._stage, self._arguments(tree, 1, max(1, len(tree.args))))))
            if name in NAMED or name in JOINED:
                return self._parted(tree, name, options)
            known = list(dict.fromkeys([*STAGES, *JOINED, *self.roundings, *self.models]))
            raise MistakeError(tree, str(UnknownNameError("stage", name, known)))
        raise MistakeError(tree, f"{ast.unparse(tree)!r} is not a stage: a unit, or {', '.join(STAGES)}")

    def _unit(self, tree: ast.expr) -> Model:
        if isinstance(tree, ast.Name) and tree.id in self.models:
            return self.models[tree.id]
        raise MistakeError(tree, str(UnknownNameError("unit", ast.unparse(tree), self.models)))

    def _chain(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        (unit,) = self._arguments(tree, 1)
        self._only(options, ("tail",))
        words, name = (self._words(unit), unit.func) if isinstance(unit, ast.Call) else (PLAIN, unit)
        return Chain(self._unit(name), self._stage(options["tail"]) if "tail" in options else None, *words)

    def _parted(self, tree: ast.Call, name: str, options: dict[str, ast.expr]) -> Stage:
        """A stage by the name of its join, after which its partition comes (a number for runs, a list for places); or
        by the name of a partition, which has its usual join."""
        kind, join = NAMED.get(name) or (Runs, JOINED[name])
        first = tree.args[0] if tree.args else tree
        apart = first if name in JOINED and isinstance(first, ast.Call) and first is not tree else None
        if apart is not None:
            kind = CUT[self._word(apart.func, tuple(CUT))]
        elif isinstance(first, ast.List) and (name in JOINED or name == At.word):
            kind = At
        headed, rounds = kind.takes == "first" and apart is None, "rounding" in _parameters(join)
        if kind is Lanes and apart is None:
            stage, how, *numbers = self._arguments(tree, 3, max(3, len(tree.args)))
            stages = [stage, how]
        else:
            number, *stages = self._arguments(tree, 2 + headed + rounds)
            numbers = number.elts if isinstance(number, ast.List) else [number]
        own, join_options = () if apart else _options(kind), _options(join)
        further = tuple(word for word in (*kind.takes.replace("first", "" if headed else "head").split(),)
                        if word not in own)  # fmt: skip
        self._only(options, (*own, *join_options, *further))
        if apart is not None:
            partition = self._cut(apart, kind, apart.args, self._given(apart))
        else:
            partition = self._cut(tree, kind, numbers, {word: options[word] for word in own if word in options})
        rounding = {"rounding": self._how(stages.pop())} if rounds else {}
        joined = join(
            **rounding, **{word: self._value(join, word, options[word]) for word in join_options if word in options}
        )
        *head, body = (self._stage(stage) for stage in stages)
        others = {word: self._stage(options[word]) for word in further if word in options}
        return Parted(partition, joined, body, **others, **({"head": head[0]} if headed else {}))

    def _cut(
        self, tree: ast.Call, kind: type[Partition], numbers: Sequence[ast.expr], options: dict[str, ast.expr]
    ) -> Partition:
        """A partition, from one number or several numbers, and options."""
        self._only(options, _options(kind))
        name = _parameters(kind)[0]
        hint = get_type_hints(kind)[name]
        if get_origin(hint) is tuple:
            value: Any = tuple(map(self._number if get_args(hint)[0] is int else self._step, numbers))
        elif len(numbers) != 1:
            raise MistakeError(tree, f"{counted(len(numbers), 'argument')} given, 1 needed: {kind.word}(NUMBER)")
        else:
            value = self._number(numbers[0])
        return kind(value, **{word: self._value(kind, word, tree) for word, tree in options.items()})  # type: ignore[call-arg]

    def _step(self, tree: ast.expr) -> int | Fold:
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "fold":
            ways, stride = self._arguments(tree, 2)
            self._only(self._given(tree), ())
            return Fold(self._number(ways), self._number(stride))
        return self._number(tree)

    def _how(self, tree: ast.expr) -> Rounding:
        """A rounding by its name."""
        how: Rounding = self.roundings[self._word(tree, tuple(self.roundings))]
        return how
