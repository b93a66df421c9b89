"""The loader of hypothesis files: every fault names file, line and key, and every shipped file loads."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from mmaprobe.hypotheses.family import parameters_of
from mmaprobe.hypotheses.library import library, question_named
from mmaprobe.hypotheses.schema import Question, build_question
from mmaprobe.smtmodel.base.errors import InputError, UnknownNameError
from mmaprobe.smtmodel.base.yamlfile import read_file, read_yaml
from mmaprobe.smtmodel.tables.reference import parse_reference

NAME = "mine.yaml"
LINES = {
    "id": "id: mine",
    "question": "question: How many carry bits?",
    "source": "source: a paper",
    "model": "model: volta/mma/m8n8k4.f32.f16.f16.f32",
    "inputs": "inputs: {finite: true}",
    "hypotheses": "hypotheses:",
    "two": "  two: {carry_bits: 2}",
    "three": "  three: {carry_bits: 3}",
    "expect": "expect: different",
}
SHIPPED = sorted(Path(str(files("mmaprobe.hypotheses"))).glob("pairs/**/*.yaml"))


def text_with(**changes: str) -> str:
    """The good file with some lines replaced or, for new names, added at the end; an empty line is left out."""
    return "".join(line + "\n" for line in ({**LINES, **changes}).values() if line)


def load(text: str, name: str = NAME) -> Question:
    return build_question(read_yaml(text, name))


def fault(text: str) -> InputError:
    """The error of a file. Its message must start with the place that its attributes name."""
    with pytest.raises(InputError) as caught:
        load(text)
    error = caught.value
    place = f"{error.file}:{error.line}" if error.line is not None else error.file
    assert str(error).startswith(f"{place}: {error.key}: " if error.key else f"{place}: ")
    assert error.exit_code == 2
    assert error.file == NAME
    return error


def test_the_good_file_loads() -> None:
    question = load(text_with(observed="observed: {Titan V: three}", note="note: text"))
    assert list(question.models) == ["two", "three"]
    assert [parameters_of(model)["carry_bits"] for model in question.models.values()] == [2, 3]
    assert question.inputs.finite
    assert not question.inputs.nonnegative
    assert (question.expect, question.observed, question.note) == ("different", {"Titan V": "three"}, "text")
    assert question.pairs == [("two", "three")]
    assert question.length == 4


def test_a_hypothesis_may_be_a_reference() -> None:
    volta = "volta/mma/m8n8k4.f32.f16.f16.f32"
    question = load(text_with(model="", two=f"  two: {volta}@carry_bits=2", three=f"  three: {volta}@carry_bits=3"))
    assert {name: model.reference for name, model in question.models.items()} == {
        "two": f"{volta}@carry_bits=2", "three": f"{volta}@carry_bits=3"}  # fmt: skip
    mixed = load(text_with(three=f"  three: {volta}@fraction_bits=24"))
    assert parameters_of(mixed.models["two"])["carry_bits"] == 2
    assert mixed.models["three"].reference == f"{volta}@fraction_bits=24"
    error = fault(text_with(three="  three: volta/mma/m8n8k4.f32.f16.f16.f33"))
    assert "did you mean" in str(error)
    error = fault(text_with(model=""))
    assert error.line == 6
    assert "hypotheses.two: which model is changed? the file needs a key `model`" in str(error)


#: what is wrong, the lines of the file, the line and the key at fault, and words of the message
FAULTS: list[tuple[str, dict[str, str], int, str | None, str]] = [
    ("unknown key", {"question": "qestion: x"}, 2, "qestion", "did you mean 'question'"),
    ("far from any key", {"note": "zzz: x"}, 10, "zzz", "known: id, question"),
    ("unknown key inside", {"inputs": "inputs: {finit: true}"}, 5, "inputs.finit", "did you mean 'finite'"),
    ("unknown key deep inside", {"inputs": "inputs:\n  exponents:\n    min: 1\n    maxi: 2"}, 8,
     "inputs.exponents.maxi", "did you mean 'max'"),
    ("unknown parameter", {"three": "  three: {cary_bits: 3}"}, 8, "hypotheses.three.cary_bits", "'carry_bits'"),
    ("repeated key", {"note": "expect: equal"}, 10, "expect", "first on line 9"),
    ("repeated hypothesis", {"three": "  two: {carry_bits: 3}"}, 8, "two", "first on line 7"),
    ("repeated parameter", {"three": "  three:\n    carry_bits: 3\n    carry_bits: 4"}, 10, "carry_bits", "line 9"),
    ("impossible number", {"three": "  three: {carry_bits: 40}"}, 8, "hypotheses.three.carry_bits", "from 0 to 16"),
    ("negative number", {"three": "  three: {carry_bits: -1}"}, 8, "hypotheses.three.carry_bits", "-1 is impossible"),
    ("number below its lines", {"three": "  three:\n    block: 4\n    fraction_bits: 0"}, 10,
     "hypotheses.three.fraction_bits", "0 is impossible"),
    ("block that does not divide", {"three": "  three: {block: 3}"}, 8, "hypotheses.three.block", "does not divide"),
    ("fraction of a bit", {"three": "  three: {carry_bits: 2.5}"}, 8, "hypotheses.three.carry_bits", "2.5"),
    ("truth for a number", {"three": "  three: {carry_bits: true}"}, 8, "hypotheses.three.carry_bits", "true"),
    ("nothing for a number", {"three": "  three: {carry_bits: }"}, 8, "hypotheses.three.carry_bits", "none"),
    ("list for a number", {"three": "  three: {carry_bits: [2]}"}, 8, "hypotheses.three.carry_bits", "[2]"),
    ("misspelt value", {"three": "  three: {product: normalized}"}, 8, "hypotheses.three.product", "'normalised'"),
    ("wrapping an exact sum", {"three": "  three: {carry_bits: 3, align_rounding: sticky}"}, 8,
     "hypotheses.three.carry_bits", "must be exact"),
    ("wide NaN", {"three": "  three: {nan: 1ffffffff}"}, 8, "hypotheses.three.nan", "wider than the 32 bits"),
    ("words in a block order", {"three": "  three: {block_order: [[0, x, 1, 2]]}"}, 8,
     "hypotheses.three.block_order", ""),
    ("lists too deep in a block order", {"three": "  three: {block_order: [[0, [1], 2, 3]]}"}, 8,
     "hypotheses.three.block_order", ""),
    ("fractions in a block order", {"three": "  three: {block_order: [[0, 1.0, 2, 3]]}"}, 8,
     "hypotheses.three.block_order", ""),
    ("a product left out", {"three": "  three: {block_order: [[0, 1, 2, 2]]}"}, 8,
     "hypotheses.three.block_order", "every product"),
    ("hypothesis without parameters", {"three": "  three:"}, 8, "hypotheses.three", "keys with values"),
    ("list of hypotheses", {"two": "  - {carry_bits: 2}", "three": ""}, 6, "hypotheses", "keys with values"),
    ("one hypothesis", {"three": ""}, 6, "hypotheses", "at least two"),
    ("no hypothesis", {"hypotheses": "hypotheses: {}", "two": "", "three": ""}, 6, "hypotheses", "at least two"),
    ("twins", {"three": "  three: {carry_bits: 2}"}, 8, "hypotheses.three", "the same model as hypothesis 'two'"),
    ("twins by default", {"two": "  two: {}", "three": "  three: {product: unnormalised}"}, 8,
     "hypotheses.three", "the same model as hypothesis 'two'"),
    ("observed what is not a hypothesis", {"observed": "observed: {T4: four}"}, 10, "observed.T4", "two, three"),
    ("observed a number", {"observed": "observed:\n  V100: two\n  T4: 3"}, 12, "observed.T4", "text is needed"),
    ("empty window", {"inputs": "inputs:\n  finite: true\n  exponents: {min: 3, max: 2}"}, 7,
     "inputs.exponents", "min 3 is above max 2"),
    ("half a window", {"inputs": "inputs: {exponents: {min: 3}}"}, 5, "inputs.exponents.max", "missing"),
    ("window of words", {"inputs": "inputs: {exponents: {min: 3, max: a}}"}, 5, "inputs.exponents.max", "whole number"),
    ("zero term beyond the addend", {"inputs": "inputs:\n  zero_terms:\n    - 4\n    - 5"}, 8,
     "inputs.zero_terms.1", "4 products"),
    ("negative zero term", {"inputs": "inputs:\n  zero_terms: [0, -1]"}, 6, "inputs.zero_terms", "start at 0"),
    ("zero term in words", {"inputs": "inputs: {zero_terms: [0, a]}"}, 5, "inputs.zero_terms.1", "a whole number"),
    ("special and finite", {"inputs": "inputs: {special: true, finite: true}"}, 5, "inputs", "admit none"),
    ("number for a truth", {"inputs": "inputs: {finite: 1}"}, 5, "inputs.finite", "true or false"),
    ("quoted truth", {"inputs": "inputs: {finite: 'true'}"}, 5, "inputs.finite", "true or false"),
    ("unknown model", {"model": "model: volta/mma/m8n8k4.f32.f16.f16.f23"}, 4, "model",
     "did you mean 'volta/mma/m8n8k4.f32.f16.f16.f32'"),
    ("unknown model of a hypothesis", {"three": "  three:\n    model: ampare/mma/m16n8k16.f32.f16.f16.f32"}, 9,
     "hypotheses.three.model", "did you mean 'ampere/mma/m16n8k16.f32.f16.f16.f32'"),
    ("number for a model", {"model": "model: 5"}, 4, "model", "text is needed"),
    ("misspelt verdict", {"expect": "expect: differs"}, 9, "expect", "'different' or 'equal'"),
    ("id with blanks", {"id": "id: My own"}, 1, "id", "small letters"),
    ("missing key", {"expect": ""}, 1, "expect", "missing"),
    ("unclosed bracket", {"three": "  three: {carry_bits: 3"}, 9, None, "not YAML"),
    ("tab", {"three": "\tthree: {carry_bits: 3}"}, 8, None, "not YAML"),
    ("two documents", {"note": "---\nid: other"}, 10, None, "a second document begins"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "line", "key", "words"), [row[1:] for row in FAULTS], ids=[r[0] for r in FAULTS])
def test_faults_name_line_and_key(changes: dict[str, str], line: int, key: str | None, words: str) -> None:
    error = fault(text_with(**changes))
    assert (error.line, error.key) == (line, key)
    assert words in str(error)


@pytest.mark.parametrize("value", ["!!python/object:os.system x", "!!int abc", "2024-13-45", "&a [*a]"])
def test_values_that_yaml_cannot_construct(value: str) -> None:
    assert fault(text_with(note=f"note: {value}")).line == 10


def test_hypotheses_of_other_input_formats() -> None:
    error = fault(text_with(three="  three:\n    model: ampere/mma/m16n8k16.f32.bf16.bf16.f32"))
    assert error.line in (8, 9)
    assert error.key is not None
    assert error.key.startswith("hypotheses.three")
    assert "bf16" in str(error)


def test_bad_parameter_of_the_model_reference() -> None:
    error = fault(text_with(model="model: volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=40"))
    assert error.line == 4
    assert error.key is not None
    assert error.key.startswith("model")
    assert "40 is impossible" in str(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("# only a comment\n\n", "empty"),
        ("hello\n", "keys and values"),
        ("- a\n- b\n", "keys and values"),
        ("null\n", "keys and values"),
    ],
)
def test_files_without_keys(text: str, words: str) -> None:
    error = fault(text)
    assert (error.line, error.key) == (1, None)
    assert words in str(error)


def test_control_characters() -> None:
    assert "not YAML" in str(fault(text_with(note="note: \x00")))


def test_brackets_without_end() -> None:
    fault("a: " + "[" * 5000)


def test_zero_terms_may_name_the_addend() -> None:
    question = load(text_with(inputs="inputs: {zero_terms: [1, 4]}"))
    assert question.inputs.zero_terms == (1, 4)


def test_window_of_one_exponent() -> None:
    window = load(text_with(inputs="inputs: {exponents: {min: 3, max: 3}}")).inputs.exponents
    assert window is not None
    assert (window.min, window.max) == (3, 3)


def test_parameters_of_the_file_and_of_a_hypothesis_add_up() -> None:
    question = load(
        text_with(
            model="model: volta/mma/m8n8k4.f32.f16.f16.f32@product=normalised",
            three="  three: {model: ampere/mma/m16n8k16.f32.f16.f16.f32, carry_bits: 3}",
        )
    )
    two, three = (parameters_of(question.models[name]) for name in ("two", "three"))
    assert (two["product"], two["carry_bits"], two["length"]) == ("normalised", 2, 4)
    assert (three["product"], three["carry_bits"], three["length"]) == ("unnormalised", 3, 16)
    assert question.length == 4


# --- files on disk ------------------------------------------------------------------------------------------------


def test_a_file_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text_with(), encoding="utf-8")
    assert question_named(str(path)).id == "mine"
    path.write_text(text_with(three="  three: {carry_bits: 2}"), encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.yaml:8: hypotheses\.three: the same model"):
        question_named(str(path))


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    with pytest.raises(InputError, match="no such file") as caught:
        question_named(str(path))
    assert caught.value.file == str(path)


def test_directory_as_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        question_named(str(tmp_path))
    assert caught.value.file == str(tmp_path)


def test_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(text_with(question="question: how m\xf6gen").encode("latin-1"))
    with pytest.raises(InputError, match="cannot be read") as caught:
        read_file(path)
    assert caught.value.file == str(path)


def test_unknown_id_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'carry-bits-volta'"):
        question_named("carry-bits-vlta")


def test_very_long_id() -> None:
    with pytest.raises(UnknownNameError, match="unknown hypothesis"):
        question_named("a" * 5000)


# --- the library --------------------------------------------------------------------------------------------------


def test_every_shipped_file_is_in_the_library() -> None:
    assert SHIPPED
    assert sorted(library()) == sorted(path.stem for path in SHIPPED)
    assert len({path.stem for path in SHIPPED}) == len(SHIPPED)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_file(path: Path) -> None:
    question = load(read_file(path), str(path))
    assert question.id == path.stem
    assert library()[question.id] == question
    assert question.source, "a shipped question says where it is from"
    assert question.question.endswith("?")
    for model in question.models.values():
        assert parse_reference(model.reference) == model
