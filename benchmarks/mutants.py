"""One change to the datapath at a time, each told apart from the original with a vector or proved equivalent to it.

Both sides run in one process over one carrier: the original, and a shadow of the datapath's modules in which one piece
of text is replaced. The mutants are data, benchmarks/mutants/*.yaml.

`python -m benchmarks.mutants [--only TEXT] [--timeout 60] [--store FILE] [--cluster ADDRESS] [-o FILE]`

With a store what was decided is not asked again; with a cluster each mutant is one piece of work for a worker.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType

import yaml

from benchmarks.pages import put_page, table_head
from mmaprobe.cli.line import StatusLine
from mmaprobe.cli.options import opened_pool
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel import closed
from mmaprobe.queries.kernel.questions.problem import Problem, evaluate_on
from mmaprobe.queries.search.distinguish import Options, SolverFaultError
from mmaprobe.queries.search.witness import Witness
from mmaprobe.queries.solvers.pool import Pool
from mmaprobe.queries.solvers.store import Store, result_key
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.carriers.algebra import Bits, WidthError
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.tables.reference import member_of, parse_reference

FOLDER = Path(__file__).with_suffix("")
SMTMODEL = Path(__file__).parents[1] / "smtmodel"
#: in the order in which they import each other
DATAPATH = ("arithmetic", "arithmetic.decode", "arithmetic.rounding", "arithmetic.alignment", "arithmetic.ieee",
            "nodes.index", "nodes.node", "nodes.element",
            "nodes.repeat", "nodes.cut", "nodes.round", "nodes.product", "nodes.sums", "nodes.exact", "nodes.fused",
            "nodes.grid", "nodes.scale", "nodes", "nodes.chains", "units", "units.unit", "families", "families.parts",
            "families.sketch", "families.functions", "families.member")  # fmt: skip
VOLTA, HOPPER = "volta/mma/m8n8k4.{0}.f16.f16.{0}", "hopper/mma/m16n8k16.{0}.f16.f16.{0}"
FP8 = "hopper/wgmma/m64n8k32.{0}.e4m3.e4m3"
NVFP4 = "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3"
MODELS = {
    "volta32": VOLTA.format("f32"),
    "volta32-two": VOLTA.format("f32") + "@length=2",
    "volta32-normalised": VOLTA.format("f32") + "@product=normalised",
    "volta32-nearest": VOLTA.format("f32") + "@align_rounding=nearest_even",
    "volta32-partials": VOLTA.format("f32") + "@partials=normalised",
    "volta32-carry3": VOLTA.format("f32") + "@carry_bits=3",
    "volta32-carry5": VOLTA.format("f32") + "@carry_bits=5",
    "volta16": VOLTA.format("f16"),
    "volta16-low": VOLTA.format("f16") + "@exponent_floor=none",
    "volta16-one": VOLTA.format("f16") + "@length=1",
    "volta16-two": VOLTA.format("f16") + "@length=2",
    "volta16-edge": VOLTA.format("f16") + "@length=1,exponent_floor=-27",
    "volta16-high": VOLTA.format("f16") + "@length=2,exponent_floor=-10",
    "volta16-over": VOLTA.format("f16") + "@length=1,exponent_floor=-24,zero_sign=positive",
    "volta16-partials": VOLTA.format("f16") + "@partials=normalised",
    "ampere16": "ampere/mma/m16n8k16.f16.f16.f16.f16@length=4,block=2",
    "ampere-bf16": "ampere/mma/m16n8k8.f32.bf16.bf16.f32@length=2",
    "hopper32": HOPPER.format("f32") + "@length=6",
    "hopper16": HOPPER.format("f16") + "@length=4",
    "fp8": FP8.format("f32") + "@length=4",
    "fp8-two": FP8.format("f32") + "@length=2",
    "fp8-f16": FP8.format("f16") + "@length=4",
    "fp8-fma": FP8.format("f16") + "@family=fma-chain,length=1,output_rounding=nearest_even",
    "fp8-nearest": FP8.format("f32") + "@length=4,align_rounding=nearest_even",
    "mxfp8": "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e5m2.e5m2.ue8m0@length=4,scale_block=2",
    "nvfp4": NVFP4 + "@length=8,scale_block=4,group=4",
    "nvfp4-narrow": NVFP4 + "@length=8,scale_block=4,group=4,fraction_bits=12",
    "nvfp4-tiny": NVFP4 + "@length=2,scale_block=2,group=2,fraction_bits=4",
    "cdna1": "cdna1/mfma/f32_32x32x4f16",
    "cdna1-short": "cdna1/mfma/f32_32x32x4f16@length=1",
    "cdna2": "cdna2/mfma/f32_32x32x4f16@length=2,group=2",
    "cdna2-one": "cdna2/mfma/f32_32x32x4f16@length=1,group=1,input_zeros=signed",
    "cdna2-four": "cdna2/mfma/f32_32x32x4f16",
    "cdna2-bf16": "cdna2/mfma/f32_32x32x2bf16",
    "cdna3": "cdna3/mfma/f32_32x32x8_f16@length=4",
    "cdna3-bf16": "cdna3/mfma/f32_32x32x4_2b_bf16@length=2",
    "cdna3-fp8": "cdna3/mfma/f32_16x16x32_fp8_fp8@length=4",
    "fma16": "ieee/fma/f16@length=2",
    "fma16-one": "ieee/fma/f16",
    "fma32": "ieee/fma/f32",
    "emulated": "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16@length=4,block=2",
}  # fmt: skip


def source_of(module: str) -> str:
    """The text of a module of the datapath."""
    path = Path(SMTMODEL, *module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


closed.PACKAGES = (*closed.PACKAGES, "benchmarks.")  # mutants are problems that the project itself does not state


@dataclass(frozen=True)
class Mutant:
    """`old`, found once in a file of the datapath, becomes `new`. `equivalent` says why nothing changes."""

    file: str
    id: str
    note: str
    old: str
    new: str
    models: tuple[str, ...]
    equivalent: str = ""

    def source(self) -> str:
        """The mutated file. Raises ValueError unless the old text is found exactly once."""
        text = source_of(self.file)
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.id}: {self.old!r} is found {count} times in {self.file}.py")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutated(Problem):
    """A model against itself by a shadow of the datapath, a module of that name."""

    shadow: str = ""

    def evaluate(self, operands: Operands[Bits], traced: bool = True) -> tuple[Evaluation, Evaluation]:
        model = self.right
        member = member_of(model)
        unit = sys.modules[self.shadow].FUNCTIONS[member.family](**member.values).unit(model.a, model.b, model.c)
        changed = unit.evaluate(operands.a, operands.b, operands.c, operands.scale_a, operands.scale_b)
        return evaluate_on(self.left, operands, traced), Evaluation(*changed)

    @property
    def sides(self) -> tuple[str, str]:
        return "original", "mutant"


@dataclass
class Outcome:
    """What came of one mutant: the last model asked, who decided there, and the models proved equal before it. `vector`
    tells the two apart."""

    mutant: Mutant
    verdict: str = "unknown"
    model: str = ""
    decider: str = ""
    vector: str = ""
    equal: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def expected(self) -> bool:
        wanted = "equal" if self.mutant.equivalent else "different"
        return self.verdict == wanted


def who(proof: Proof) -> str:
    """Who decided: simulation, an engine, or the terms themselves, where both sides became one."""
    if proof.verdict == "equal":
        return ", ".join(dict.fromkeys(engine.split()[0] for engine in proof.engines)) or "one term"
    if proof.verdict == "different" and not proof.tried:
        return "simulation"
    return next((answer.engine for answer in reversed(proof.tried) if answer.status == "sat"), "nobody")


@contextmanager
def shadowed(mutant: Mutant) -> Iterator[ModuleType]:
    """The families of a copy of the datapath in which the mutant's file is changed."""
    package = f"shadow_{mutant.id.replace('-', '_')}"
    modules = {name: ModuleType(name) for name in (package, *(f"{package}.{name}" for name in DATAPATH))}
    for name in (package, *(f"{package}.{name}" for name in DATAPATH if "." not in name)):
        modules[name].__path__ = []
    try:
        for name in DATAPATH:
            text = mutant.source() if name == mutant.file else source_of(name)
            text = text.replace(
                "from mmaprobe.smtmodel.arithmetic import ieee", f"from {package}.arithmetic import ieee"
            )
            for other in DATAPATH:
                text = text.replace(f"from mmaprobe.smtmodel.{other} import", f"from {package}.{other} import")
            module = modules[f"{package}.{name}"]
            sys.modules.update(modules)
            exec(compile(text, f"{package}/{name}.py", "exec"), module.__dict__)
            outer, _, last = f"{package}.{name}".rpartition(".")
            setattr(modules[outer], last, module)
        yield modules[f"{package}.families.member"]
    finally:
        for name in modules:
            sys.modules.pop(name, None)


def read_mutants() -> list[Mutant]:
    """Every mutant, in the order of the datapath."""
    found = []
    for name in DATAPATH:
        path = FOLDER / f"{name.rpartition('.')[2]}.yaml"
        rows = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []
        found += [Mutant(name, **{**row, "models": tuple(row["models"])}) for row in rows]
    repeated = [name for name, count in Counter(mutant.id for mutant in found).items() if count > 1]
    if repeated:
        raise ValueError(f"repeated: {', '.join(repeated)}")
    for mutant in found:
        mutant.source()
    return found


def ask(mutant: Mutant, timeout: float) -> Outcome:
    """The mutant on its models in turn, until one tells it apart."""
    outcome, start = Outcome(mutant), time.monotonic()
    with shadowed(mutant) as shadow:
        for name in mutant.models:
            model = parse_reference(MODELS[name])
            try:
                proof = prove(
                    Mutated(model, model, shadow=shadow.__name__), Options("bitwuzla", timeout), confirm=False
                )
            except (WidthError, SolverFaultError) as error:
                outcome.verdict, outcome.decider, outcome.model = "error", f"{type(error).__name__}: {error}", name
                break
            if proof.interrupted:
                raise KeyboardInterrupt
            outcome.decider, outcome.model, outcome.verdict = who(proof), name, proof.verdict
            outcome.vector = vector(model, proof.witness) if proof.witness is not None else ""
            if proof.verdict != "equal":
                break
            outcome.equal.append(name)
    outcome.seconds = time.monotonic() - start
    return outcome


def vector(model: Model, witness: Witness) -> str:
    """The nonzero terms of a witness and its two results."""
    operands = witness.operands

    def digits(pattern: int, width: int) -> str:
        return f"{pattern:0{width}x}"

    terms = []
    for x, y in zip(operands.a, operands.b, strict=True):
        if x or y:
            terms.append(f"{digits(x, model.a.digits)}·{digits(y, model.b.digits)}")
    if operands.c:
        terms.append(digits(operands.c, model.c.digits))
    results = [digits(result, model.d.digits) for result in (witness.left, witness.right)]
    factors = [" ".join(f"{x:02x}" for x in side) for side in (operands.scale_a, operands.scale_b) if side]
    scaled = f" scaled {' by '.join(factors)}" if factors else ""
    return f"{' + '.join(terms) or 'zeros'}{scaled}: {results[0]}, {results[1]}"


def row(outcome: Outcome) -> str:
    mutant, where, what = outcome.mutant, outcome.model, outcome.mutant.equivalent
    if outcome.verdict == "equal":
        where = ", ".join(outcome.equal)
    elif outcome.verdict == "error":
        what = what or outcome.decider
    elif outcome.vector:
        what = outcome.vector
        what += f" (equal on {', '.join(outcome.equal)})" if outcome.equal else ""
    cells = (
        mutant.file,
        mutant.id,
        mutant.note,
        where,
        outcome.verdict,
        f"{outcome.seconds:.1f}",
        outcome.decider,
        what,
    )
    # joined here, as in all tables of pages: libraries pad columns, so that one longer cell would change every line
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many came out how, and who said so."""
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    different = [outcome for outcome in outcomes if outcome.verdict == "different"]
    simulated = sum(outcome.decider == "simulation" for outcome in different)
    lines = [f"{len(outcomes)} mutants: " + ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items()))]
    lines.append(f"Of the different ones simulation alone found {simulated}, a solver {len(different) - simulated}.")
    by_term = sum(outcome.decider == "one term" for outcome in outcomes if outcome.verdict == "equal")
    lines.append(f"Of the equal ones {by_term} became one term with the original, the others needed a solver.")
    surprises = [outcome.mutant.id for outcome in outcomes if not outcome.expected]
    lines.append(f"Not as noted: {', '.join(surprises) or 'none'}.")
    return "\n\n".join(lines)


def campaign(
    mutants: Sequence[Mutant], timeout: float, pool: Pool, store: Store | None, show: Callable[[Outcome], object]
) -> list[Outcome]:
    """The outcomes in the order of the mutants; `show` gets each in turn. What the store has is not asked again, and
    what was decided is in the store as soon as it is known."""
    outcomes: list[Outcome] = []

    def asked(mutant: Mutant) -> Outcome:
        key = result_key("mutant", mutant=asdict(mutant), models=[MODELS[name] for name in mutant.models])
        known = None if store is None else store.find_result(key)
        if known is not None:
            return Outcome(mutant, **known)
        outcome = pool.run(ask, mutant, timeout)
        if store is not None and outcome.verdict in ("equal", "different"):
            store.record_result(key, {name: value for name, value in vars(outcome).items() if name != "mutant"})
        return outcome

    def take(mutant: Mutant, result: Callable[[], Outcome]) -> None:
        outcomes.append(result())
        show(outcomes[-1])

    pool.gather(asked, mutants, take)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose file or id contains this")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each model")
    parser.add_argument("--store", type=Path, help="keep what was decided in this file")
    parser.add_argument("--cluster", metavar="ADDRESS", help="a dask scheduler, whose workers do the work")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    head = ("file", "mutant", "what it changes", "model", "verdict", "seconds", "by", "vector, or why equivalent")
    lines = table_head(*head)

    mutants = [mutant for mutant in read_mutants() if arguments.only in f"{mutant.file}/{mutant.id}"]
    line = StatusLine()
    pieces = Pieces(line.show, "mutants", len(mutants))

    def show(outcome: Outcome) -> None:
        lines.append(row(outcome))
        line.say(f"{lines[-1]} {'' if outcome.expected else 'NOT AS NOTED'}".rstrip())
        pieces.next()

    try:
        with opened_pool(arguments.cluster, width=1) as pool, ExitStack() as stack:
            store = stack.enter_context(Store(arguments.store)) if arguments.store else None
            outcomes = campaign(mutants, arguments.timeout, pool, store, show)
    except MmaprobeError as error:
        line.say(f"error: {error}")
        sys.exit(error.exit_code)
    finally:
        line.end()
    models = "\n".join(f"- {name}: `{reference}`" for name, reference in MODELS.items())
    text = f"# {(__doc__ or '').splitlines()[0]}\n\n{summary(outcomes)}\n\n" + "\n".join(lines)
    text += f"\n\nA vector is its nonzero terms and the results, original first. The models:\n\n{models}\n"
    put_page(text, arguments.output)
    sys.exit(0 if all(outcome.expected for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
