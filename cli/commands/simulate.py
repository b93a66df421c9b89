"""The `simulate` command: matrix products as a model or a plan computes them."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import Choice, FileName, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names, models, plans
from mmaprobe.cli.factors import factor_options
from mmaprobe.cli.options import ADDEND, CONVERT, JSON, print_json, progress, refuse, say

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mmaprobe.queries.plans.planmap import PlanMap
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.plans import Plan


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="A B [C]", shell_complete=file_names)
@click.option(
    "--model", metavar="MODEL", shell_complete=models, help="The model of one instruction, which takes K in tiles."
)
@click.option(
    "--plan", metavar="PLAN", shell_complete=plans,
    help="How K is divided and sums are added: plan:NAME (`list plans`), the path of a plan file, of rules by "
    "hand, or of the result of `identify --gemm --json` (.json).",
)  # fmt: skip
@click.option(
    "-o",
    "--output",
    required=True,
    type=FileName(dir_okay=False),
    metavar="D",
    help="Where the result goes: .npy, or .npz when the inputs are.",
)
@ADDEND
@CONVERT
@factor_options
@click.option(
    "--metadata", type=FileName(), metavar="FILE",
    help="Of a sparse instruction: the place of each kept element of A in its four (of tf32, its two); A has these "
    "alone, half of K.",
)  # fmt: skip
@click.option(
    "--engine", type=Choice(["auto", "numpy", "compiled", "cuda"]), default="auto", show_default=True,
    help="compiled: C code, built by this machine's compiler; auto: compiled where that is possible and pays off; "
    "cuda: the same code on an NVIDIA GPU.",
)  # fmt: skip
@click.option("--threads", type=WholeNumber(1), help="Processor cores to use (default: all).")
@JSON
def simulate(
    files: tuple[str, ...], model: str | None, plan: str | None, output: Path, convert: Any, engine: Any,
    threads: int | None, metadata: Path | None, as_json: bool, addend: Path | None, **factors: Path | None,
) -> None:  # fmt: skip
    """Compute D = C + A * B bit for bit as a unit or plan does. A unit takes K in tiles of its length.

    A, B and C are .npy files: floating-point numbers exact in the model's formats (or --convert), or bit patterns as
    unsigned integers; C (also --c) may be a bias: one row (1 x N) or one column (M x 1). With .npz files every name
    that A and B share is one product. alpha and beta belong to plans; without one, scale the matrices yourself.

    \b
    mmaprobe simulate a.npy b.npy -o d.npy --model hopper/mma/m16n8k16.f32.f16.f16.f32
    mmaprobe simulate a.npy b.npy -o d.npy --plan plan:cublas/split-k
    """
    from mmaprobe.cli.array_files import load, with_addend
    from mmaprobe.documents.explain import Simulate, SimulatedProduct
    from mmaprobe.queries.plans.planmap import PlanMap
    from mmaprobe.smtmodel.base.errors import InputError
    from mmaprobe.smtmodel.tables.reference import parse_reference
    from mmaprobe.smtmodel.tables.sparse import is_sparse

    files = with_addend(files, addend, "two matrix files are needed, and C where there is one: A B [--c C]")
    if (model is None) == (plan is None):
        raise click.UsageError("give --model (a unit) or --plan (how a library divides K), one of the two")
    if engine == "cuda":
        refuse("the GPU computes the product", "threads")
    how = parse_reference(model) if model is not None else _map_or_plan(plan or "")
    if (how.plan if isinstance(how, PlanMap) else how).scale is None:
        refuse(f"{how.reference} takes no scale factors", *factors)
    if model is None or not is_sparse(model):
        refuse(f"{how.reference} is no sparse instruction", "metadata")
    tables = [load(Path(name)) for name in files]
    given = factors | {"metadata": metadata}
    scales = {key: load(path) for key, path in given.items() if path is not None}
    names = [name for name in tables[0] if all(name in table for table in tables)]
    if len({"" in table for table in tables}) > 1:
        single = files[next(place for place, table in enumerate(tables) if "" in table)]
        archive = files[next(place for place, table in enumerate(tables) if "" not in table)]
        raise InputError(
            f"an archive, as .npz files are; {single} is one array: give files of one kind, or {archive}:NAME", archive
        )
    if not names:
        raise InputError(
            f"matrices of .npz files are multiplied name by name, and no name is in every file: write {files[0]}:NAME "
            "for one of its matrices", files[0]
        )  # fmt: skip
    if unused := sorted({name for table in tables for name in table} - {*names}):
        say(f"left out, since not every file has it: {', '.join(unused)}")
    kind = ".npy" if "" in names else ".npz"
    if output.suffix != kind and not (output.exists() and not output.is_file()):  # /dev/null and the like take either
        raise InputError(f"the inputs are {kind} files: name the output {kind}", str(output))
    results: dict[str, NDArray[Any]] = {}
    products: list[SimulatedProduct] = []
    for name in names:
        start = time.perf_counter()
        own = {key: _factors(key, table, name) for key, table in scales.items()}
        shown = [f"{file}:{name}" if name else file for file in files]
        results[name] = _product(how, shown, [table[name] for table in tables], convert, engine, threads, own)
        seconds = time.perf_counter() - start
        progress("")
        products.append(SimulatedProduct(name=name, shape=results[name].shape, seconds=round(seconds, 3)))
    _save(output, results)
    for one in products:
        say(f"{one.name or output.name}: {'x'.join(map(str, one.shape))} in {one.seconds:.2f} s")
    if as_json:
        print_json(Simulate(model=how.reference, output=str(output), products=products))


def _map_or_plan(text: str) -> PlanMap | Plan:
    """The map of plans or the plan that --plan names. Raises MmaprobeError."""
    from mmaprobe.queries.plans.mapping import read_map
    from mmaprobe.smtmodel.base.errors import ParameterError
    from mmaprobe.smtmodel.tables.reference import LENGTH, is_unit_file, keys_of, parse_plan_path

    if text.endswith(".json") or (is_unit_file(text) and "rules" in keys_of(text)):
        return read_map(Path(text))
    if LENGTH in text:
        raise ParameterError("--plan", f"{text}: the matrices say K: {text.partition(LENGTH)[0]}")
    return parse_plan_path(text)


def _factors(option: str, table: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """The scale factors for the product `name`: those of that name in an .npz file, or the one matrix of a .npy file.
    Raises InputError."""
    from mmaprobe.smtmodel.base.errors import InputError

    for key in (name, ""):
        if key in table:
            return table[key]
    raise InputError(f"--{option.replace('_', '-')}: no matrix {name!r} in its file, which has {', '.join(table)}")


def _product(
    how: Model | Plan | PlanMap,
    files: Sequence[str],
    matrices: Sequence[NDArray[Any]],
    convert: Any,
    engine: Any,
    threads: int | None,
    factors: dict[str, Any],
) -> NDArray[Any]:  # fmt: skip
    """One product of matrices, or of stacks of matrices: numbers in NumPy's type of the result's format, else bit
    patterns. `files`: the names of the matrices in errors; `factors`: scale factors by operand, and `metadata` of a
    sparse instruction. Raises MmaprobeError."""
    from mmaprobe.cli.array_files import errors_name
    from mmaprobe.queries.plans.planmap import PlanMap
    from mmaprobe.queries.plans.rules import Shape
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.plans.gemm import simulate
    from mmaprobe.smtmodel.tables.sparse import sparse_product

    model = how.plan if isinstance(how, PlanMap) else how
    if engine == "cuda":
        from mmaprobe.runner.gpu.cuda import launcher_here
        from mmaprobe.runner.gpu.cuda_product import CudaProduct

        engine = CudaProduct(launcher_here())
    from mmaprobe.smtmodel.base.progress import Count
    from mmaprobe.smtmodel.evaluate.numbers import check_convert, from_numbers, to_numbers, type_of
    from mmaprobe.smtmodel.evaluate.operands import check_addend

    check_addend(model, len(files) == 3, files[-1])
    check_convert(matrices, convert)
    formats = (model.a, model.b, model.c)
    sides = []
    for file, matrix, fmt in zip(files, matrices, formats, strict=False):
        with errors_name(file):
            sides.append(from_numbers(matrix, fmt, convert))

    def report(done: int, total: int) -> None:
        progress(Count(done, total, "rows"))

    addend, places = sides[2] if len(sides) == 3 else None, factors.pop("metadata", None)
    for key, side in factors.items():
        with errors_name(f"--{key.replace('_', '-')}"):
            factors[key] = from_numbers(side, model.formats[key])

    how_to = partial(simulate, engine=engine, threads=threads, progress=report, scales=factors)

    def multiply(own: Model | Plan) -> NDArray[Any]:
        if places is None or not isinstance(own, Model):
            return how_to(sides[0], sides[1], addend, own)
        return sparse_product(sides[0], places, sides[1], addend, own, partial(how_to, model=own))

    with errors_name(", ".join(files), "A and B", "C"):
        if isinstance(how, PlanMap) and sides[0].ndim == sides[1].ndim == 2:
            out = how.product(Shape(sides[0].shape[0], sides[1].shape[1], sides[0].shape[1]), multiply)
        else:
            out = multiply(model)
    own = type_of(model.d).isbuiltin == 1  # .npy files have NumPy's own types only: bit patterns for others
    return to_numbers(out, model.d) if own else out


def _save(path: Path, results: dict[str, NDArray[Any]]) -> None:
    import numpy as np

    from mmaprobe.smtmodel.base.files import whole_file

    with whole_file(path) as stream:
        into = stream if stream.seekable() else io.BytesIO()  # NumPy asks where it is in a file
        if "" in results:
            np.save(into, results[""])
        else:  # as numpy.savez does it, to which a matrix cannot have every name
            with zipfile.ZipFile(into, "w") as archive:
                for name, matrix in results.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, matrix)
        if isinstance(into, io.BytesIO):
            stream.write(into.getvalue())
