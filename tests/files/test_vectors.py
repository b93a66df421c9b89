"""Vector files: what a row must hold, where an error points, and the way back to text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.documents.devices import Mismatch, ModelCount
from mmaprobe.queries.compare import observed as evaluating
from mmaprobe.queries.compare.observed import ObservedVector, Report, evaluate_vectors
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector, open_text, parse_pattern, read_vectors, to_hex
from mmaprobe.smtmodel.tables.reference import parse_reference

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
ROW: dict[str, Any] = {"model": VOLTA, "a": ["3c00", "4000"], "b": ["3c00", "3c00"], "c": "3f800000", "d": "40800000"}
SCALED = "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
SCALED_ROW: dict[str, Any] = {
    "model": SCALED, "a": ["2"] * 64, "b": ["2"] * 64, "c": "0", "scale_a": ["38"] * 4, "scale_b": ["38"] * 4,
}  # fmt: skip
REMOVED = "\0removed"


def row_with(**changes: Any) -> str:
    """The text of a good row with fields changed or removed."""
    fields = {**ROW, **changes}
    return json.dumps({key: value for key, value in fields.items() if value is not REMOVED})


def read(*lines: str) -> list[Vector]:
    return list(read_vectors([line + "\n" for line in lines], "rows.jsonl"))


def fault(text: str) -> str:
    """The message of a bad row, without the place; it must point to the row, the third line of its file."""
    with pytest.raises(InputError) as caught:
        read(row_with(), "", text)
    assert (caught.value.file, caught.value.line) == ("rows.jsonl", 3)
    place, message = str(caught.value)[:14], str(caught.value)[14:]
    assert place == "rows.jsonl:3: "
    return message


def test_a_good_row() -> None:
    [vector] = read(row_with(id="first"))
    assert vector.model == parse_reference(VOLTA)
    assert vector.operands == Operands((0x3C00, 0x4000), (0x3C00, 0x3C00), 0x3F800000)
    assert (vector.d, vector.id, vector.line) == (0x40800000, "first", 1)


def test_architecture_unit_and_instruction_name_a_model() -> None:
    parts = {"arch": "Ada Lovelace", "unit": "MMA", "instruction": "M16N8K32.F32.E4M3.E4M3.F32"}
    [vector] = read(row_with(model=REMOVED, **parts, a=["38"], b=["38"], d=REMOVED))
    assert vector.model == parse_reference("ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32")
    assert vector.d is None


def test_tf32_patterns_are_those_of_f32() -> None:
    [vector] = read(row_with(model="ampere/mma/m16n8k8.f32.tf32.tf32.f32", a=["3f800000"], b=["3F801FFF"]))
    assert vector.operands == Operands((0x3F800000,), (0x3F801FFF,), 0x3F800000)


def test_blank_lines_are_skipped_and_counted() -> None:
    assert [vector.line for vector in read("", row_with(), "   ", "\t", row_with())] == [2, 5]


@pytest.mark.parametrize("lines", [(), ("", " ")])
def test_a_file_without_a_vector_is_no_input(lines: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"^rows.jsonl: the file has no vector$"):
        read(*lines)


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("modle", "model"), ("scale_A", "scale_a"), ("prediction", "predictions"), ("instuction", "instruction")],
)
def test_a_field_that_is_nearly_a_known_one_is_a_slip(slip: str, meant: str) -> None:
    row = json.loads(row_with())
    row[slip] = row.pop(meant, {})
    with pytest.raises(InputError, match=rf"^rows.jsonl:1: {slip}: unknown field; did you mean '{meant}'\?$"):
        read(json.dumps(row))


def test_other_fields_are_kept() -> None:
    others = {"source": "somewhere", "sides": [1], "models": "of both", "name": "x"}
    [vector] = read(row_with(**others))
    assert vector.extra == others
    assert others.items() <= vector.to_json().items()


@pytest.mark.parametrize("field", ["a", "b"])
@pytest.mark.parametrize("pattern", ["10000", "fffff", "0123456789", "03c00x", "g", "3c 0", "", "3.5", "nan"])
def test_patterns_of_elements(field: str, pattern: str) -> None:
    message = fault(row_with(**{field: ["3c00", pattern]}))
    assert message.startswith(f"{field}[1]: ")
    assert repr(pattern) in message


@pytest.mark.parametrize("pattern", [1, None, 1.5, True, ["3c00"], {"hex": "3c00"}])
def test_patterns_that_are_no_strings(pattern: Any) -> None:
    assert fault(row_with(a=[pattern, "0"])).startswith("a[0]: ")
    assert fault(row_with(c=pattern)).startswith("c: ")


@pytest.mark.parametrize("field", ["c", "d"])
@pytest.mark.parametrize("pattern", ["100000000", "fffffffff", "xyz", "", "1.0"])
def test_patterns_of_addend_and_result(field: str, pattern: str) -> None:
    message = fault(row_with(**{field: pattern}))
    assert message.startswith(f"{field}: ")
    assert repr(pattern) in message


@pytest.mark.parametrize("pattern", ["0x3c", "0X3c", "+3c0", "-0", "-1", "3_c0", " 3c0", "3c0 ", "3c\n", "\uff13c"])
def test_only_hexadecimal_digits_make_a_pattern(pattern: str) -> None:
    assert fault(row_with(a=[pattern, "0"])).startswith("a[0]: ")
    assert fault(row_with(a=["3c00", "0"], b=["3c00", pattern])).startswith("b[1]: ")
    assert fault(row_with(c=pattern)).startswith("c: ")
    assert fault(row_with(d=pattern)).startswith("d: ")


def test_a_pattern_has_every_digit_unless_it_is_zero_and_case_does_not_matter() -> None:
    [vector] = read(row_with(a=["0", "001F"], b=["0ABC", "0abc"], c="0"))
    assert vector.operands == Operands((0, 0x1F), (0xABC, 0xABC), 0)
    assert fault(row_with(a=["3c", "3c00"])) == "a[0]: '3c': a pattern of f16 has 4 digits, zeros included"
    assert fault(row_with(a=["3c0", "03c00"])).startswith("a[0]: '3c0': a pattern")
    assert fault(row_with(c="3f8")) == "c: '3f8': a pattern of f32 has 8 digits, zeros included"


@pytest.mark.parametrize("name", FORMATS)
def test_the_widest_pattern_of_each_format(name: str) -> None:
    fmt = FORMATS[name]
    widest = (1 << fmt.width) - 1
    assert parse_pattern(to_hex(widest, fmt), fmt, "a") == widest
    assert len(to_hex(0, fmt)) == len(to_hex(widest, fmt)) == -(-fmt.width // 4)
    with pytest.raises(ValueError, match=r"a: .* too wide"):
        parse_pattern(f"{widest + 1:x}", fmt, "a")


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"a": []}, "a: "),
        ({"b": []}, "b: "),
        ({"a": REMOVED}, "a: "),
        ({"b": REMOVED}, "b: "),
        ({"a": "3c00"}, "a: "),
        ({"a": {"0": "3c00"}}, "a: "),
        ({"c": REMOVED}, "c: this field is missing"),
        ({"c": None}, "c: "),
        ({"a": ["0"] * 3}, "b: 2 elements, but a has 3"),
        ({"b": ["0"]}, "b: 1 elements, but a has 2"),
        ({"a": ["0"] * 5, "b": ["0"] * 5}, "a: 5 elements, but"),
        ({"model": REMOVED}, "model: "),
        ({"model": REMOVED, "arch": "volta", "unit": "mma"}, "instruction: "),
        ({"model": REMOVED, "arch": "volta", "instruction": "m8n8k4.f32.f16.f16.f32"}, "unit: "),
        ({"model": VOLTA.replace("volta", "vlta")}, "model: unknown model"),
        ({"model": VOLTA + "@carry_bits=40"}, "model: carry_bits: 40 is impossible"),
        ({"model": VOLTA + "@cary_bits=4"}, "model: unknown parameter 'cary_bits'; did you mean 'carry_bits'"),
        ({"model": REMOVED, "arch": "Volta", "unit": "mma", "instruction": "m8n8k5"}, "instruction: unknown model"),
    ],
    ids=str,
)
def test_rows_with_wrong_fields(changes: dict[str, Any], start: str) -> None:
    assert fault(row_with(**changes)).startswith(start)


@pytest.mark.parametrize("side", ["scale_a", "scale_b"])
@pytest.mark.parametrize(
    ("scales", "start"),
    [(REMOVED, ""), ([], ""), (["38"] * 3, ""), (["38"] * 5, ""), ("38", ""), (["38", "38", "100", "38"], "[2]")],
    ids=range(6),
)
def test_scale_factors(side: str, scales: Any, start: str) -> None:
    assert fault(row_with(**{**SCALED_ROW, side: scales, "d": REMOVED})).startswith(f"{side}{start}: ")


def test_scale_factors_count() -> None:
    [one, double] = read(row_with(**SCALED_ROW), row_with(**{**SCALED_ROW, "scale_b": ["40"] * 4}))
    assert (one.operands.scale_a, double.operands.scale_b) == ((0x38,) * 4, (0x40,) * 4)
    assert [row.predicted for row in evaluate_vectors([one, double])] == [0x42800000, 0x43000000]
    assert fault(row_with(scale_a=["38"])).startswith("scale_a: ")


@pytest.mark.parametrize("field", ["arch", "unit", "instruction"])
def test_names_that_are_no_strings(field: str) -> None:
    parts: dict[str, Any] = {"arch": "volta", "unit": "mma", "instruction": "m8n8k4.f32.f16.f16.f32", field: 5}
    assert fault(row_with(model=REMOVED, **parts))


BROKEN = ["{", '{"model": ', "nonsense", "{'a': 1}", row_with() + row_with(), "}", "[" * 100_000]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_broken_json(text: str) -> None:
    assert "JSON" in fault(text)


@pytest.mark.parametrize("text", ["[1]", '"text"', "7", "null", "true"])
def test_json_that_is_no_object(text: str) -> None:
    assert fault(text) == "a JSON object is needed"


# --- files --------------------------------------------------------------------------------------------------------


def packed(folder: Path, count: int) -> Path:
    path = folder / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("".join(row_with(id=k) + "\n" for k in range(count)).encode()))
    return path


def read_path(path: Path) -> Iterator[Vector]:
    with open_text(path) as stream:
        yield from read_vectors(stream, str(path))


def test_compressed_file(tmp_path: Path) -> None:
    assert [vector.id for vector in read_path(packed(tmp_path, 5))] == [0, 1, 2, 3, 4]


def test_compressed_file_cut_off(tmp_path: Path) -> None:
    path = packed(tmp_path, 3000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    got: list[Any] = []
    with pytest.raises(InputError, match="cannot be read") as caught:
        got.extend(vector.id for vector in read_path(path))
    assert caught.value.file == str(path)
    assert caught.value.line is not None
    assert 0 < caught.value.line < 3000


@pytest.mark.parametrize("damage", [b"junk", b"\x1f\x8b\x08\x00junk that goes on and on"])
def test_damaged_compressed_file(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(damage)
    with pytest.raises(InputError, match="cannot be read"):
        list(read_path(path))


def test_compressed_file_with_a_flipped_bit(tmp_path: Path) -> None:
    path = packed(tmp_path, 3000)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(bytes(content))
    with pytest.raises(InputError):
        list(read_path(path))


def test_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xff\xfe{}\n")
    with pytest.raises(InputError, match="cannot be read"):
        list(read_path(path))


def test_missing_file_and_directory(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none.jsonl", "no such file"), (tmp_path, "cannot be read")):
        with pytest.raises(InputError, match=words) as caught:
            open_text(path)
        assert caught.value.file == str(path)


# --- the way back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reference",
    [
        VOLTA,
        VOLTA + "@product=normalised,carry_bits=3",
        VOLTA + "@block_order=2-0-1-3",
        "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
        "ada-lovelace/mma/m16n8k32.f32.e4m3.e5m2.f32",
        "ieee/fma/f64@length=3",
        SCALED,
    ],
)
def test_a_vector_comes_back_from_its_text(reference: str) -> None:
    model = parse_reference(reference)
    a, b = (tuple(range(5, 5 + min(3, model.length))) for _ in range(2))
    scales = (tuple(range(1, 1 + model.scales)), tuple(range(9, 9 + model.scales)))
    extra = {"question": "why", "predictions": {"x": "0"}, "exercises": ["carry"]}
    vectors = [
        Vector(model, Operands(a, b, (1 << model.c.width) - 1, scales), d=3, id="some-1", extra=extra),
        Vector(model, Operands(a[:1], b[:1], 0, scales)),
        Vector(model, Operands(a[:1], b[:1], 0, scales), d=0, id=7),
    ]
    again = read(*(json.dumps(vector.to_json()) for vector in vectors))
    for line, (vector, copy) in enumerate(zip(vectors, again, strict=True), start=1):
        assert copy == replace(vector, line=line)
        assert copy.to_json() == vector.to_json()


def test_text_has_all_digits_and_a_schema() -> None:
    document = Vector(parse_reference(VOLTA), Operands((1,), (2,), 3), d=4).to_json()
    assert document == {"schema": 1, "model": VOLTA, "a": ["0001"], "b": ["0002"], "c": "00000003", "d": "00000004"}


# --- evaluation ---------------------------------------------------------------------------------------------------


def three(count: int) -> list[str]:
    """Rows 1 * 1 + 2 * 1 + 1 = 4, with one mismatch in each three rows and one row without a result."""
    return [row_with(id=k, d=["40800000", "40800001", REMOVED][k % 3]) for k in range(count)]


@pytest.mark.parametrize("good", [0, 1, 7])
def test_an_error_comes_after_the_rows_before_it(good: int) -> None:
    rows: list[ObservedVector] = []
    with pytest.raises(InputError, match=rf"rows\.jsonl:{good + 1}: "):
        rows.extend(evaluate_vectors(read_vectors([*three(good), "{", *three(2)], "rows.jsonl")))
    assert [row.vector.id for row in rows] == list(range(good))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_batches_change_nothing(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "BATCH", size)
    rows: list[ObservedVector] = []
    with pytest.raises(InputError):
        rows.extend(evaluate_vectors(read_vectors([*three(7), "["], "rows.jsonl")))
    assert [(row.vector.id, row.predicted, row.agrees) for row in rows] == [
        (k, 0x40800000, [True, False, None][k % 3]) for k in range(7)
    ]


def test_models_may_alternate_and_may_be_overridden() -> None:
    half = "volta/mma/m8n8k4.f16.f16.f16.f16"
    lines = [row_with(), row_with(model=half, c="3c00", d="4400"), row_with(a=["3c00"], b=["0"])]
    rows = list(evaluate_vectors(read(*lines)))
    assert [row.model.reference for row in rows] == [VOLTA, half, VOLTA]
    assert [row.predicted for row in rows] == [0x40800000, 0x4400, 0x3F800000]
    assert [row.agrees for row in rows] == [True, True, False]
    rounded = parse_reference(VOLTA + "@product=rounded_f16")
    assert {row.model for row in evaluate_vectors(read(lines[0], lines[2]), rounded)} == {rounded}


def test_a_nan_agrees_with_a_nan_unless_the_model_names_its_own() -> None:
    nan = {"a": ["7c00", "0"], "b": ["0", "0"]}
    named = row_with(**nan, d="7fc00000"), row_with(**nan, d="7fffffff"), row_with(**nan, d="7f800000")
    assert [row.agrees for row in evaluate_vectors(read(*named))] == [False, True, False]
    anything = VOLTA + "@nan=none"
    free = [row_with(**nan, model=anything, d=d) for d in ("7fc00000", "ffffffff", "7f800000", "0")]
    assert [row.agrees for row in evaluate_vectors(read(*free))] == [True, True, False, False]


def test_the_report_counts_by_model() -> None:
    report = Report(keep=True)
    with pytest.raises(InputError):
        report.take(evaluate_vectors(read_vectors([*three(7), "{"], "rows.jsonl")))
    document = report.document()
    assert (document.rows, document.mismatches) == (7, 2)
    assert document.models == [ModelCount(model=VOLTA, rows=7, mismatches=2, unobserved=2)]
    assert document.first_mismatches[0] == Mismatch(
        line=2, id=1, model=VOLTA, observed="40800001", predicted="40800000"
    )
    assert [vector.extra["predictions"] for vector in report.predicted] == [{VOLTA: "40800000"}] * 7


def test_predictions_already_in_the_file_are_kept() -> None:
    report = Report(keep=True)
    report.take(evaluate_vectors(read(row_with(predictions={"mine": "0"}))))
    assert report.predicted[0].extra["predictions"] == {"mine": "0", VOLTA: "40800000"}


def test_a_model_given_for_all_rows_counts_where_their_own_is_not_here(tmp_path: Path) -> None:
    """Rows of another folder name their unit file by a path that means nothing here."""
    model = parse_reference(ROW["model"])
    row = {**ROW, "model": "elsewhere.yaml"}
    with pytest.raises(InputError, match=r"elsewhere\.yaml: no such file"):
        list(read_vectors([json.dumps(row)], "rows.jsonl"))
    [vector] = read_vectors([json.dumps(row)], "rows.jsonl", instead=model)
    assert vector.model == model
    assert vector.to_json()["model"] == "elsewhere.yaml"  # as it was
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**row, "d": "40000000"}) + "\n")
    for command in ("evaluate", str(path)), ("export", str(path), "--format", "junit"):
        result = CliRunner().invoke(main, [*command, "--model", model.reference])
        assert result.exit_code in (0, 1), result.output
        assert CliRunner().invoke(main, list(command)).exit_code == 2


def test_a_model_given_for_all_rows_takes_their_formats() -> None:
    """Rows whose own model is known are not read in other formats than its own."""
    model = parse_reference("hopper/wgmma/m64n8k32.f32.e4m3.e4m3")
    vectors = list(read_vectors([json.dumps(ROW)], "rows.jsonl", instead=model))
    assert vectors[0].model.reference == ROW["model"]
    with pytest.raises(InputError, match="takes other formats than"):
        list(evaluate_vectors(vectors, model))


def test_what_another_model_does_not_take_is_named(tmp_path: Path) -> None:
    """Scale factors of another number, and more products, are no matter of each other."""
    models = []
    for blocks in (1, 2):
        size = 4 // blocks
        terms = [
            f"each(k in range({size * i}, {size * i + size}), scale(a[k] * b[k], scale_a[{i}], scale_b[{i}]))"
            for i in range(blocks)
        ]
        path = tmp_path / f"{blocks}.yaml"
        path.write_text(
            "unit: blocks\nformats: {a: e2m1, b: e2m1, c: f32, d: f32, scale: ue8m0}\nlength: 4\n"
            f"scale_block: {size}\n"
            f"steps:\n  d: round(fused({', '.join(terms)}, c, F=25), f32, toward_zero)\n"
        )
        models.append(parse_reference(str(path)))
    given = Operands((2,) * 4, (2,) * 4, 0, ((127,), (127,)))
    with pytest.raises(InputError, match="takes 2 scale factors of each side, not 1"):
        list(evaluate_vectors([Vector(models[0], given)], models[1]))
    one, more = (parse_reference(f"volta/mma/m8n8k4.f32.f16.f16.f32@length={length}") for length in (4, 8))
    with pytest.raises(InputError, match="takes at most 4 products, not 8"):
        list(evaluate_vectors([Vector(more, Operands((0,) * 8, (0,) * 8, 0))], one))
