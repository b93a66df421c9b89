"""The schema of hypothesis files, and the questions that they become."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from mmaprobe.hypotheses.retarget import RetargetError, hypothesis_model
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.base.yamlfile import Strict, YamlFile, validate
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import (
    Compare,
    Inputs,
    admitted,
    check_comparable,
    check_inputs,
    zeros_of,
)
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.tables.reference import parse_reference


def check_file_inputs(file: YamlFile, inputs: Inputs, model: Model, length: int) -> None:
    """Raises InputError, with file, line and key, where `check_inputs` refuses the key `inputs` of a file."""
    try:
        check_inputs(inputs, model, length)
    except ParameterError as error:
        raise file.error(("inputs", error.parameter), error.message) from None


def _with_model(value: Any) -> Any:
    """A hypothesis that is a reference alone, as one that names this model and changes nothing."""
    return {"model": value} if isinstance(value, str) else value


class _HypothesisFile(Strict):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    question: str
    source: str
    model: str | None = None
    inputs: Inputs = Inputs()
    hypotheses: dict[str, Annotated[dict[str, Any], BeforeValidator(_with_model)]]
    expect: Literal["different", "equal"]
    expect_any: Literal["different", "equal"] | None = None
    one_vector: str | None = None
    compare: Compare = "bits"
    observed: dict[str, str] = Field(default={})
    note: str = ""


@dataclass(frozen=True)
class Question:
    """Candidate models for one unit, the admitted inputs, the expected result, and the known results of hardware.

    `one_vector`: a hypothesis whose result on a single input must differ from the results of all other hypotheses;
    None: each pair of hypotheses is asked about separately.
    `dropped`: hypotheses of the file that make no sense for the question's model, each with the reason.
    """

    id: str
    question: str
    models: dict[str, Model]
    inputs: Inputs = field(default_factory=Inputs)
    expect: Literal["different", "equal"] | None = None
    compare: Compare = "bits"
    observed: dict[str, str] = field(default_factory=dict)
    source: str = ""
    note: str = ""
    dropped: dict[str, str] = field(default_factory=dict)
    one_vector: str | None = None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The hypotheses that are to be distinguished, in pairs."""
        if self.one_vector is not None:
            return [(self.one_vector, name) for name in self.models if name != self.one_vector]
        return list(combinations(self.models, 2))

    @property
    def length(self) -> int:
        """The number of products of an input: the length of the shortest model (longer models take zeros beyond)."""
        return min(model.length for model in self.models.values())

    @property
    def zeros(self) -> dict[str, str]:
        """Operand -> the reason why only zeros are admitted for it."""
        return zeros_of(self.inputs, list(self.models.values()), self.length)


def pair_of(left: Model, right: Model, inputs: Inputs) -> Question:
    """The question whether two models differ."""
    models = {"left": left, "right": right}
    return Question(id="left-right", question="Do the two models differ?", models=models, inputs=inputs)


def build_question(file: YamlFile) -> Question:
    """The question of a hypothesis file. Raises InputError with file, line and key."""
    parsed = validate(file, _HypothesisFile)
    if len(parsed.hypotheses) < 2:
        raise file.error(("hypotheses",), "at least two hypotheses are needed")
    models = {name: _model(file, parsed.model, name, values) for name, values in parsed.hypotheses.items()}
    for first, second in combinations(models, 2):
        if _same(models[first], models[second]):
            raise file.error(("hypotheses", second), f"the same model as hypothesis {first!r}")
        try:
            check_comparable(models[first], models[second], parsed.compare)
        except ParameterError as error:
            raise file.error(("hypotheses", second), f"beside hypothesis {first!r}: {error}") from None
    for device, name in parsed.observed.items():
        if name not in models:
            raise file.error(("observed", device), f"{name!r} is none of the hypotheses: {', '.join(models)}")
    question = _question(parsed, models)
    _check_restrictions(file, question)
    _check_one_vector(file, parsed)
    return question


def _question(parsed: _HypothesisFile, models: dict[str, Model]) -> Question:
    return Question(
        parsed.id,
        parsed.question,
        models,
        parsed.inputs,
        parsed.expect,
        parsed.compare,
        parsed.observed,
        parsed.source,
        parsed.note,
        one_vector=parsed.one_vector,
    )


def _check_one_vector(file: YamlFile, parsed: _HypothesisFile) -> None:
    name = parsed.one_vector
    if name is None:
        return
    if name not in parsed.hypotheses:
        raise file.error(("one_vector",), f"{name!r} is none of the hypotheses: {', '.join(parsed.hypotheses)}")
    for key in ("expect", "expect_any"):
        if getattr(parsed, key) == "equal":
            raise file.error((key,), "a question that wants one vector can expect `different` alone")


def _check_restrictions(file: YamlFile, question: Question) -> None:
    lengths = {model.length for model in question.models.values()}
    for position, index in enumerate(question.inputs.zero_terms):
        if index >= question.length and len(lengths) > 1:
            raise file.error(("inputs", "zero_terms", position), "ambiguous for models of different lengths")
        if index > question.length:
            count = counted(question.length, "product")
            raise file.error(("inputs", "zero_terms", position), f"there are {count} and an addend")
    check_file_inputs(file, question.inputs, next(iter(question.models.values())), question.length)


def retarget(file: YamlFile, reference: str) -> Question:
    """The question of a hypothesis file asked about another model.

    Hypotheses that are impossible for that model, or mean the same as an earlier hypothesis, are dropped. Observations
    of hardware are dropped too; the expectation is that of `expect_any`, if the file has it. Raises InputError for a
    faulty file, the errors of a model reference, and RetargetError where fewer than two hypotheses are left.
    """
    own, parsed, base = build_question(file), validate(file, _HypothesisFile), parse_reference(reference)
    models: dict[str, Model] = {}
    dropped: dict[str, str] = {}
    for name, values in parsed.hypotheses.items():
        outcome = _retargeted(base, values, models, parsed.compare)
        if isinstance(outcome, str):
            dropped[name] = outcome
        else:
            models[name] = outcome
    wanted = parsed.one_vector
    if wanted is not None and wanted in dropped:
        raise RetargetError(f"{own.id} makes no sense for {base.reference}: {wanted!r} is left out ({dropped[wanted]})")
    if len(models) < 2:
        left = f"only {next(iter(models))!r} is left" if models else "no hypothesis is left"
        names = {reason: [name for name, why in dropped.items() if why == reason] for reason in dropped.values()}
        reasons = "; ".join(f"{', '.join(map(repr, each))}: {reason}" for reason, each in names.items())
        raise RetargetError(f"{own.id} makes no sense for {base.reference}: {left} ({reasons})")
    question = replace(
        own,
        id=f"{own.id}@{base.reference}",
        models=models,
        expect=parsed.expect_any,
        observed={},
        note="",
        dropped=dropped,
    )
    return replace(question, inputs=_moved_inputs(own, question, base))


def _retargeted(base: Model, values: dict[str, Any], earlier: dict[str, Model], compare: Compare) -> Model | str:
    """The model of a hypothesis, or the reason why it is dropped."""
    if "model" in values:
        return "it names an instruction of its own"
    try:
        model = hypothesis_model(base, values)
        for name, other in earlier.items():
            if _same(other, model):
                return f"the same as {name!r} for this model"
            check_comparable(other, model, compare)
    except MmaprobeError as error:
        return str(error)
    return model


def _moved_inputs(own: Question, question: Question, base: Model) -> Inputs:
    """The restrictions of inputs for the other model. The index of the addend in `zero_terms`, which is the number of
    products, becomes that of the other model. Raises RetargetError."""
    inputs, length = own.inputs, question.length
    terms = tuple(length if index == own.length else index for index in inputs.zero_terms)
    beyond = [str(index) for index in inputs.zero_terms if index != own.length and index >= length]
    if beyond:
        raise RetargetError(
            f"{own.id} makes no sense for {base.reference}: "
            f"zero_terms names the product {beyond[0]}, and there are {counted(length, 'product')}"
        )
    window = inputs.exponents
    for fmt in (base.a, base.b, base.c):
        if window is not None and admitted(inputs, fmt) != "numbers":
            raise RetargetError(
                f"{own.id} makes no sense for {base.reference}: "
                f"no {fmt.name} has an exponent from {window.min} to {window.max}"
            )
    return inputs.model_copy(update={"zero_terms": terms})


def same_arithmetic(first: Model, second: Model) -> bool:
    """Whether two models have the same operands, and expressions of the same normal form."""
    one, other = first.unit, second.unit
    return one.operands == other.operands and normal(one.result) == normal(other.result)


def _same(first: Model, second: Model) -> bool:
    """Whether two hypotheses are the same model. Two instructions with the same arithmetic are different hypotheses."""
    bases = [model.instruction for model in (first, second)]
    return bases[0] == bases[1] and same_arithmetic(first, second)


def _model(file: YamlFile, base: str | None, name: str, values: dict[str, Any]) -> Model:
    """The model of one hypothesis: its own `model`, else the file's, with the hypothesis's parameters. Raises
    InputError."""
    if base is None and "model" not in values:
        message = "which model is changed? the file needs a key `model`, or the hypothesis a reference in its place"
        raise file.error(("hypotheses", name), message)
    path: tuple[str, ...] = ("hypotheses", name, "model") if "model" in values else ("model",)
    try:
        model = parse_reference(str(values.get("model", base)))
        path = ("hypotheses", name)
        return hypothesis_model(model, {key: value for key, value in values.items() if key != "model"})
    except ParameterError as error:
        raise file.error((*path, error.parameter), error.message) from None
    except MmaprobeError as error:
        key = getattr(error, "name", None)
        raise file.error((*path, key) if key in values else path, str(error)) from None
