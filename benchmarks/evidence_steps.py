"""The parts of `make evidence`: what is asked of one instruction, and what is kept of the answers."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages import read_rows, write_rows
from mmaprobe.cli.main import main
from mmaprobe.hypotheses.library import library, question_named
from mmaprobe.queries.compare.observed import agrees
from mmaprobe.queries.search.samples import sample_rows, subnormal_rows, tie_rows
from mmaprobe.runner.answers import answered_row, provenance
from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.devices import Device, open_device
from mmaprobe.smtmodel.base.errors import IncompleteError, MmaprobeError
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_batch, evaluate_rows
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands, layout_of
from mmaprobe.smtmodel.inputs.vectors import Vector, open_text, read_vectors, to_hex
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference

Result = dict[str, Any]
Seed = int | tuple[int, ...]
Maker = Callable[[Model, int, Seed], list[Patterns]]
FINDINGS = Path(__file__).parent / "findings"
CHUNK = 1 << 16  # random vectors asked and judged together
KEPT = 100  # answers kept of the random vectors, and as many of those that the model does not explain
CHECKED = 4096  # vectors asked in every position
FAMILIES = {"f16": "nvidia-f16", "bf16": "nvidia-bf16", "tf32": "nvidia-tf32", "f64": "any", "e2m1": "nvidia-fp8",
            "e4m3": "nvidia-fp8", "e5m2": "nvidia-fp8", "e3m2": "nvidia-fp8", "e2m3": "nvidia-fp8"}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One instruction: how many rows, columns and products it has, the folder of its answers, its device's name as a
    template, how many random vectors to ask, seconds for an answer (`timeout`) and for a solver (`patience`)."""

    reference: str
    shape: tuple[int, int, int]
    folder: Path
    template: str
    count: int
    timeout: float
    patience: float
    store: Path

    @property
    def model(self) -> Model:
        return parse_reference(self.reference)

    def device(self, position: str = "") -> str:
        """The device's name; `position`: "" or what cuda: and hip: devices take after the instruction."""
        arch, unit, name = self.reference.split("/")
        return self.template.format(arch=arch, unit=unit, instruction=name, reference=self.reference, position=position)


def command(*arguments: str) -> Result:
    """One command of mmaprobe with --json; its document, with `exit_code`. Raises IncompleteError without one, and
    KeyboardInterrupt if the command says that it was interrupted."""
    out, errors, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main([*arguments, "--json"])
        except SystemExit as end:
            code = int(end.code or 0)
    lines = errors.getvalue().splitlines()
    if "interrupted" in lines:
        raise KeyboardInterrupt
    try:
        document: Result = json.loads(out.getvalue())
    except ValueError:
        last = lines[-1] if lines else ""
        raise IncompleteError(f"mmaprobe {arguments[0]} ended with exit code {code}: {last}") from None
    if document.get("error"):
        raise IncompleteError(f"mmaprobe {arguments[0]}: {document['error']}")
    return document | {"exit_code": code}


def answers(device: Device, model: Model, operands: Sequence[Patterns]) -> Patterns:
    """The results of many inputs (as in `evaluate_batch`) on any device."""
    if isinstance(device, BatchDevice):
        return device.patterns(*operands)
    a, b, c, *scales = (side.tolist() for side in operands)
    rows = (
        Operands(tuple(x), tuple(y), z, tuple(map(tuple, rest)))
        for x, y, z, *rest in zip(a, b, c, *scales, strict=True)
    )
    found = [d for _, d in device.answers(Vector(model, row) for row in rows)]
    return np.array(found, dtype=np.uint64)


# --- the same answers whatever the row, column and neighbours --------------------------------------------------------


def places(job: Job) -> list[str]:
    """Where a vector can stand, what can surround it and, for `wgmma`, more columns and A in registers, as what
    devices take after an instruction."""
    m, n, _ = job.shape
    stand = [
        (0, 0, "zero", 0), (0, 0, "random", 1), (m - 1, n - 1, "zero", 0), (m - 1, n - 1, "random", 2),
        (m // 2, 1, "random", 3), (1, n - 2, "random", 4), (m // 2 - 1, n // 2, "random", 5),
    ]  # fmt: skip
    found = [f"?row={r},column={c},neighbours={around},seed={seed}" for r, c, around, seed in stand]
    if "/wgmma/" in job.reference:
        found += [
            "?row=17,column=3,neighbours=random,seed=6,a=registers",
            "?row=40,column=23,neighbours=random,seed=7,columns=24",
            "?row=63,column=255,neighbours=random,seed=8,columns=256",
            "?row=9,column=130,neighbours=random,seed=9,columns=256,a=registers",
        ]
    return found


def position(job: Job) -> Result:
    """Whether answers depend on where a vector stands and on what surrounds it."""
    if "{position}" not in job.template or job.shape[:2] == (1, 1):
        return {"skipped": "the device has no positions"}
    operands, first, asked = random_bits(job.model, CHECKED, 5), None, []
    for place in places(job):
        with open_device(job.device(place), job.timeout) as device:
            found = answers(device, job.model, operands)
        first = found if first is None else first
        asked.append({"position": place, "differ": int(np.count_nonzero(found != first))})
    return {"vectors": CHECKED, "independent": not any(each["differ"] for each in asked), "positions": asked}


# --- random bits against the model -----------------------------------------------------------------------------------


def random_bits(model: Model, count: int, seed: Seed) -> list[Patterns]:
    """Inputs as in `evaluate_batch`: any bits, in half of the rows with exponents below the top (so, mostly finite)."""
    layout, rng = layout_of(model), np.random.default_rng(seed)
    tame = rng.random(count) < 0.5
    columns = []
    for fmt in layout.formats:
        bits = rng.integers(0, 1 << 63, count, dtype=np.uint64) << np.uint64(1) | rng.integers(0, 2, count).astype("u8")
        bits &= np.uint64((1 << (fmt.field_width + fmt.signed)) - 1)
        below = bits & ~np.uint64(1 << (fmt.field_width - 1))
        columns.append(np.where(tame & (fmt.specials == "ieee"), below, bits))
    return _sides(layout, columns)


def shaped_bits(model: Model, count: int, seed: Seed) -> list[Patterns]:
    """Inputs that make a unit align, cut, carry, cancel and tie (queries/search/samples.py)."""
    layout, numbers = layout_of(model), np.random.SeedSequence(seed).generate_state(3).tolist()
    tied, small = count // 5, subnormal_rows(layout, count // 5, numbers[0])
    rows = [small, tie_rows(layout, model.d, tied, numbers[1])]
    rows.append(sample_rows(layout, count - sum(map(len, rows)), numbers[2]))
    return _sides(layout, list(np.concatenate(rows).T))


def _sides(layout: Layout, columns: Sequence[Patterns]) -> list[Patterns]:
    """Columns in the order of a layout as `evaluate_batch` takes them."""
    parts = layout.split(columns)
    sides = [np.stack(side, axis=1) for side in (parts.a, parts.b, parts.scale_a, parts.scale_b) if side]
    return [*sides[:2], parts.c, *sides[2:]]


def random(job: Job) -> Result:
    """Vectors of random bits against the model."""
    return _in_chunks(job, "random", random_bits)


def shaped(job: Job) -> Result:
    """As many vectors with terms at the distances at which units cut bits off, against the model."""
    return _in_chunks(job, "shaped", shaped_bits)


def _in_chunks(job: Job, name: str, make: Maker) -> Result:
    """Vectors against the model, a chunk at a time; chunks of an earlier run count."""
    path, model = job.folder / f"{name}-chunks.jsonl", job.model
    done = read_rows(path)
    chunks = [min(CHUNK, job.count - start) for start in range(0, job.count, CHUNK)]
    if [entry["vectors"] for entry in done] != chunks[: len(done)]:
        done = []  # of another --count
    with open_device(job.device(), job.timeout) as device, path.open("a" if done else "w") as stream:
        for number in range(len(done), len(chunks)):
            before = sum(entry["mismatches"] for entry in done)
            operands = make(model, chunks[number], (1, number))
            done.append(_chunk(device, model, operands, f"{name}-{number}", before))
            stream.write(json.dumps(done[-1]) + "\n")
            stream.flush()
    rows = [row for entry in done for row in entry["rows"]]
    write_rows(rows, job.folder / f"{name}.jsonl")
    path.unlink()
    return {name: sum(entry[name] for entry in done) for name in ("vectors", "mismatches", "finite")}


def _chunk(device: Device, model: Model, operands: Sequence[Patterns], name: str, before: int) -> Result:
    """What a device says of one chunk, and the answers that are kept: the first of the first chunk, and those that the
    model does not explain."""
    found, expected = answers(device, model, operands), evaluate_batch(model, *operands)
    wrong = [index for index in np.flatnonzero(found != expected) if not _agrees(model, expected[index], found[index])]
    count = len(found)
    first = np.linspace(0, count - 1, min(KEPT, count), dtype=int).tolist() if name.endswith("-0") else []
    chosen = [*first, *map(int, wrong[: max(0, KEPT - before)])]
    fmt = model.d
    field = (found & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    return {
        "vectors": count,
        "mismatches": len(wrong),
        "finite": int(np.count_nonzero(field <= np.uint64(fmt.largest_field))),
        "rows": [_kept(device, model, operands, index, found, f"{name}-{index}") for index in dict.fromkeys(chosen)],
    }


def _agrees(model: Model, predicted: Any, observed: Any) -> bool:
    """Whether two results are the same, or NaNs of a model that names no pattern."""
    return agrees(model, int(predicted), Vector(model, Operands((), (), 0), d=int(observed))) is True


def _kept(device: Device, model: Model, operands: Sequence[Patterns], index: int, found: Patterns, name: str) -> Result:
    a, b, c, *scales = (side[index].tolist() for side in operands)
    vector = Vector(model, Operands(tuple(a), tuple(b), c, tuple(map(tuple, scales))), id=name)
    return answered_row(vector, int(found[index]), provenance(device.name), device.description)


# --- special values --------------------------------------------------------------------------------------------------


def special_vectors(model: Model) -> Iterator[Vector]:
    """NaNs of several kinds, infinities, zeros of both signs, and sums beyond the range; others are zero products."""
    one = {
        side: getattr(model, side).bias << (getattr(model, side).fraction + getattr(model, side).padding)
        for side in "abc"
    }
    a, b, c = model.a, model.b, model.c
    minus = {side: one[side] | getattr(model, side).sign_bit for side in "abc"}
    cases: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
        "all zeros": ((0,), (0,), 0),
        "negative zero addend": ((0,), (0,), c.sign_bit),
        "all negative zeros": ((a.sign_bit,) * model.length, (0,) * model.length, c.sign_bit),
        "1 - 1": ((one["a"],), (one["b"],), minus["c"]),
        "1 * 1 - 1 * 1": ((one["a"], minus["a"]), (one["b"], one["b"]), 0),
        "1 * 1 - 1 * 1 - 0": ((one["a"], minus["a"]), (one["b"], one["b"]), c.sign_bit),
        "largest products": ((a.largest,) * model.length, (b.largest,) * model.length, 0),
        "largest negative products": ((a.largest | a.sign_bit,) * model.length, (b.largest,) * model.length, 0),
        "largest addend, largest product": ((a.largest,), (b.largest,), c.largest),
        "NaN addend": ((0,), (0,), c.nan),
        "negative NaN addend": ((0,), (0,), c.nan | c.sign_bit),
        "signalling NaN addend with payload": ((0,), (0,), c.infinity | 5),
        "infinite addend": ((0,), (0,), c.infinity),
        "infinite addend, product below": ((minus["a"],), (one["b"],), c.infinity),
    }  # fmt: skip
    if a.specials in ("ieee", "all_ones"):
        cases["NaN factor"] = ((a.nan,), (one["b"],), 0)
        cases["negative NaN factor"] = ((a.nan | a.sign_bit,), (one["b"],), 0)
    if a.specials == "ieee":
        cases["signalling NaN factor"] = ((a.infinity | 1 << a.padding,), (one["b"],), 0)
        cases["infinity times zero"] = ((a.infinity,), (0,), 0)
        cases["infinity minus infinity"] = ((a.infinity,), (one["b"],), c.infinity | c.sign_bit)
        cases["infinite product"] = ((a.infinity | a.sign_bit,), (one["b"],), one["c"])
    scales: tuple[tuple[int, ...], ...] = ()
    if model.scale is not None:
        scales = ((model.scale.bias << model.scale.fraction,) * model.scales,) * 2
    for name, (left, right, addend) in cases.items():
        yield Vector(model, Operands(left, right, addend, scales), id=name)


def specials(job: Job) -> Result:
    """The results of special values, beside the model's."""
    seen = _against_model(job, "specials", list(special_vectors(job.model)))
    return {"results": seen, "mismatches": [name for name, one in seen.items() if one["device"] != one["model"]]}


def _against_model(job: Job, name: str, vectors: Sequence[Vector]) -> dict[str, dict[str, str]]:
    """The device's result and the model's of each vector, by its id; the answers are kept in NAME.jsonl."""
    model, rows = job.model, []
    expected = evaluate_rows(model, [vector.operands for vector in vectors])
    with open_device(job.device(), job.timeout) as device:
        results = [d for _, d in device.answers(vectors)]
    seen = {}
    for vector, d, predicted in zip(vectors, results, expected, strict=True):
        assert d is not None
        extra = {**vector.extra, "predictions": {model.reference: to_hex(predicted, model.d)}}
        rows.append(answered_row(replace(vector, extra=extra), d, provenance(device.name), device.description))
        seen[str(vector.id)] = {"device": to_hex(d, model.d), "model": to_hex(predicted, model.d)}
    write_rows(rows, job.folder / f"{name}.jsonl")
    return seen


# --- every condition of the datapath, and every unit next to it ------------------------------------------------------


def cover(job: Job) -> Result:
    """The vectors of `mmaprobe cover`, against the model: every condition of its datapath, every change of one
    parameter."""
    if not _covering(job).exists():
        raise IncompleteError(f"{job.reference}: no vectors were found for its conditions")
    with open_text(_covering(job)) as stream:
        vectors = list(read_vectors(stream, str(_covering(job))))
    seen = _against_model(job, "cover", vectors)
    wrong = [
        name for name, one in seen.items() if not _agrees(job.model, int(one["model"], 16), int(one["device"], 16))
    ]
    return {"vectors": len(seen), "mismatches": wrong}


def _covering(job: Job) -> Path:
    return job.folder / "cover-vectors.jsonl"


# --- questions of the library, and which candidate it is -------------------------------------------------------------


def representative(reference: str) -> bool:
    """Whether an instruction stands for those of its unit and result with the same inputs: the library is asked of
    the longest, and of equal formats of A and B."""
    model, where = parse_reference(reference), reference.rpartition("/")[0]
    alike = [
        other.length
        for other in INSTRUCTIONS.values()
        if (f"{other.arch}/{other.unit}", other.a, other.b, other.c)
        == (where, model.a.name, model.b.name, model.c.name)
    ]
    return model.a == model.b and model.length == max(alike, default=model.length)


def question_names(reference: str) -> list[str]:
    """The questions that make sense for an instruction: those that are open, and those of the library."""
    names, width = [], parse_reference(reference).d.width
    for name in [*map(str, sorted(FINDINGS.glob("*.yaml"))), *(library() if representative(reference) else ())]:
        with contextlib.suppress(MmaprobeError):
            asked = question_named(name, None if _is_own(name, reference) else reference)  # raises if it makes no sense
            if all(model.d.width == width for model in asked.models.values()):
                names.append(name)
    return names


def _is_own(name: str, reference: str) -> bool:
    """Whether a question is about the instruction by itself."""
    return reference in {model.reference.partition("@")[0] for model in question_named(name).models.values()}


def prepare_cover(job: Job, progress: Callable[[str], None]) -> None:
    """Vectors for every condition of the datapath; needs no device."""
    _find(job, _covering(job), "every condition", progress, "cover", job.reference, "--no-pairs",
          "--timeout", str(3 * job.patience))  # fmt: skip


def prepare_questions(job: Job, progress: Callable[[str], None]) -> None:
    """Vectors for every question; needs no device."""
    folder = job.folder / "questions"
    folder.mkdir(parents=True, exist_ok=True)
    for name in question_names(job.reference):
        other = [] if _is_own(name, job.reference) else ["--model", job.reference]
        _find(job, folder / f"{Path(name).stem}.jsonl", Path(name).stem, progress, "distinguish", name, *other,
              "-n", "2", "--timeout", str(job.patience))  # fmt: skip


def _find(job: Job, target: Path, what: str, progress: Callable[[str], None], *asked: str) -> None:
    """Vectors by a command, unless they are there. What fails is tried again the next time."""
    if target.exists():
        return
    progress(f"{job.reference}: vectors for {what}")
    partial = target.with_suffix(".part")
    try:
        command(*asked, "-o", str(partial), "--store", str(job.store))
    except IncompleteError as error:
        progress(f"{job.reference}: no vectors for {what}: {error}")
    else:
        partial.rename(target)


def questions(job: Job) -> Result:
    """The vectors of every question put to the device: which hypotheses are left standing."""
    paths = [job.folder / "questions" / f"{Path(name).stem}.jsonl" for name in question_names(job.reference)]
    lines = [path.read_text() for path in sorted(paths) if path.exists()]
    if not any(lines):
        return {"skipped": "no question has a vector"}
    asked = job.folder / "questions.jsonl"
    asked.write_text("".join(lines))
    found = command("run", str(asked), "--device", job.device(), "-o", str(job.folder / "questions-answers.jsonl"))
    standing = {one["id"].partition("@")[0]: one["standing"] for one in found["questions"]}
    unpredicted = {one["id"].partition("@")[0]: one["unpredicted"] for one in found["questions"] if one["unpredicted"]}
    return {"answers": found["answered"], "standing": standing, "unpredicted": unpredicted}


def identify(job: Job) -> Result:
    """Which candidate of the family of its formats the device implements."""
    if job.reference not in INSTRUCTIONS:
        return {"skipped": "no family has units of its kind"}
    family = "nvidia-block-scaled" if job.shape[2] == 64 else FAMILIES.get(job.model.a.name, "any")
    if job.reference.startswith("cdna"):
        family = "amd-mfma"
    found = command("identify", family, "--device", job.device(), "--model", job.reference, "--store", str(job.store),
                    "--timeout", str(6 * job.patience), "-o", str(job.folder / "identify-answers.jsonl"))  # fmt: skip
    names = ("family", "verdict", "candidates", "decided", "undecided", "validated", "seconds", "device")
    return {name: found[name] for name in names} | {"questions": found["questions"]}


STEPS: dict[str, Callable[[Job], Result]] = {
    "position": position, "specials": specials, "random": random, "shaped": shaped, "cover": cover,
    "questions": questions, "identify": identify,
}  # fmt: skip

#: what steps need before a device is asked
PREPARED: dict[str, Callable[[Job, Callable[[str], None]], None]] = {
    "cover": prepare_cover, "questions": prepare_questions,
}  # fmt: skip
