"""Model references: `arch/unit/instruction[@name=value,...]`, the names of models on the command line and in files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import MmaprobeError, NotModelledError, ParameterError, UnknownNameError, nearest
from mmaprobe.smtmodel.base.files import is_file
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.exceptions import DOCUMENTS, Document
from mmaprobe.smtmodel.families.member import FUNCTIONS, Member
from mmaprobe.smtmodel.families.parameters import FAMILY, PARAMETERS, assignments, format_parameter, parse_parameter
from mmaprobe.smtmodel.nodes import Flags, Node
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.multiword import is_scheme, parse_scheme
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.plan_files import plan_named, plans
from mmaprobe.smtmodel.tables.absent import not_modelled
from mmaprobe.smtmodel.tables.gpus import GPUS, architecture_of, gpu_named, gpus_of
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.units.turns import TURN, unit_of_turn
from mmaprobe.smtmodel.units.unit_files import read_unit, shipped_unit, units

PLAN, LENGTH = "plan:", "@length="  # before a plan's name; between the name and K
FLAGS = "flags"  # the parameter of a reference whose model gives the exceptions instead of the result
#: the documents that define which exceptions an instruction signals; all of them define IEEE's own operations
SIGNALLING: Mapping[str, tuple[Document, ...]] = {
    "ieee/": DOCUMENTS, "x86/avx512/vfmadd-ph": ("x86",), "arm/neon/fmlal": ("arm",),
    "riscv/v/vfwmaccbf16": ("riscv",), "power10/mma/xvf32gerpp": ("power",),
}  # fmt: skip
MULADD = "ieee/muladd/"  # the beginning of the names of units that round the product and the sum
DESIGNS = (".sv", ".svh", ".v", ".vhd", ".vhdl")  # the ends of the names of files of hardware designs
CORE = ".fpcore"  # the end of a path

_NOT_ONE_CHANGE = ("length", "nan", "scale_format", "output")  # parameters that `one_change_away` keeps
_IEEE = re.compile(r"ieee/fma/(\w+)(?:\.(\w+)\.(\w+)\.(\w+))?")
_SHAPE = re.compile(r"((?:hopper/wgmma|blackwell/tcgen05mma(?:_block_scale)?)/m)(64|128)n([0-9]{1,9})(k.*)")


@lru_cache(maxsize=4096)  # called for every vector of a file
def normalised_name(arch: str, unit: str, instruction: str) -> str:
    """The reference of an instruction whose parts are written as in vector files (upper case, spaces)."""
    return "/".join(part.strip().lower().replace(" ", "-") for part in (arch, unit, instruction))


def is_unit_file(text: str) -> bool:
    """Whether a reference is the path of a unit file."""
    return text.endswith(".yaml")


def keys_of(path: str) -> Collection[str]:
    """The keys of a YAML file; empty if there is no file, or no key. Raises InputError where it is not YAML."""
    from mmaprobe.smtmodel.base.yamlfile import read_yaml_file  # a model of the table needs no YAML

    data = read_yaml_file(path).data if is_file(path) else None
    return data.keys() if isinstance(data, dict) else ()


def parse_reference(text: str) -> Model:
    """The model of a reference, or of the path of a unit file (it ends in .yaml) or of an FPCore expression (.fpcore),
    or of a plan for a given K (plan:NAME@length=64; NAME: a plan shipped with the package, or the path of a plan file).

    Raises UnknownNameError, ParameterError, or InputError for a unit file.
    """
    if is_plan(text.strip()):
        return _model_of_plan(text.strip())
    path, _, changes = text.strip().partition("@")
    if not is_unit_file(path) and not path.endswith(CORE):
        return _known_model(text)
    if path.endswith(CORE):
        from mmaprobe.smtmodel.units.fpcore import read_fpcore

        if is_digits(length := changes.removeprefix("length=")) and length != changes:
            return Model(text.strip(), read_fpcore(Path(path), int(length)))
        if not changes:
            return Model(path, read_fpcore(Path(path)))
    if changes.startswith(f"{FLAGS}="):
        return with_flags(parse_reference(path), changes.partition("=")[2])
    if path.endswith(CORE):
        raise ParameterError(path, f"an expression takes no {changes}: a length=K after @, or {FLAGS}=DOCUMENT")
    if "plan" in keys_of(path):
        raise ParameterError(path, f"a plan is a model for a given number of products: {PLAN}{path}{LENGTH}64")
    unit = read_unit(Path(path))
    if changes:
        one = f"`mmaprobe show {path} --change {changes}`"
        raise ParameterError(
            path, f"a unit file has no parameters to change: change its text, or save what {one} prints"
        )
    return Model(path, unit)


def is_plan(text: str) -> bool:
    """Whether a reference names a plan."""
    return text.startswith(PLAN)


def names_plan(text: str) -> bool:
    """Whether a text names a plan for any K: plan:NAME, a scheme such as markidis@products=3, or the path of a plan
    file. Raises InputError where a file is not YAML."""
    if is_scheme(text):
        return True
    if is_plan(text):
        return LENGTH not in text
    return is_unit_file(text) and "plan" in keys_of(text)


def parse_plan_reference(text: str) -> Plan:
    """The plan that a text names; for a model, the plan in which the model takes K in tiles, from c on. Raises the
    errors of `parse_reference`."""
    return Named(text.strip()).plan


def parse_plan_path(text: str) -> Plan:
    """The plan of plan:NAME, of a scheme, or of the path of a plan file, with or without `plan:` before it; plan:MODEL
    is the plan in which a model takes K in tiles. Raises the errors of `parse_reference`."""
    name = text.strip().removeprefix(PLAN)
    if is_scheme(name):
        scheme = parse_scheme(name)
        return scheme.plan(parse_reference(scheme.unit))
    if name in plans() or (is_unit_file(name) and ("plan" in (keys := keys_of(name)) or "unit" not in keys)):
        return plan_named(name, parse_reference)
    try:
        return Plan.chained(parse_reference(name))
    except UnknownNameError:
        return plan_named(name, parse_reference)  # its error names the nearest plan


@dataclass(frozen=True)
class Named:
    """The model, or the plan for any K, that a text names. Each property is computed once, at its first use, and raises
    the errors of `names_plan`, `parse_reference` or `parse_plan_reference`."""

    text: str

    @cached_property
    def is_plan(self) -> bool:
        """Whether the text names a plan for any K."""
        return names_plan(self.text)

    @cached_property
    def model(self) -> Model:
        """The model."""
        return parse_reference(self.text)

    @cached_property
    def plan(self) -> Plan:
        """The plan; for a model, the plan in which it takes K in tiles."""
        return parse_plan_path(self.text) if self.is_plan else Plan.chained(self.model)


def _model_of_plan(text: str) -> Model:
    name, _, value = text.rpartition(LENGTH)
    if not name or not is_digits(value.strip()):
        raise ParameterError(text, f"a plan is a model for a given number of products: {name or text}{LENGTH}64")
    return Model(text, unit_of_plan(parse_plan_path(name), int(value)))


@lru_cache(maxsize=4096)
def _known_model(text: str) -> Model:
    base, at, tail = text.strip().partition("@")
    changes = assignments(tail.split(",") if at else [])
    document = changes.pop(FLAGS, None)
    model = with_parameters(_base_model(base.lower(), at + tail if list(changes) == ["length"] else ""), changes)
    return model if document is None else with_flags(model, document)


def with_flags(model: Model, document: str) -> Model:
    """The model whose result is the exceptions that a model signals, as a document defines them. Raises
    NotModelledError where no document defines them, and ParameterError."""
    name = next((own for own in DOCUMENTS if own == document), None)
    if name is None:
        raise ParameterError(FLAGS, f"{document or 'nothing'} is none of {', '.join(DOCUMENTS)}")
    base = model.instruction
    known = [one for start, one in SIGNALLING.items() if base == start or (start[-1] == "/" and base.startswith(start))]
    if not is_unit_file(base) and not known:
        raise NotModelledError(f"{base}: its documents define no exceptions that are modelled; they do for "
                               f"{', '.join(SIGNALLING)}")  # fmt: skip
    if known and name not in known[0]:
        raise ParameterError(FLAGS, f"{base} has those of {', '.join(known[0])}, not of {document}")
    reference = f"{model.reference}{',' if '@' in model.reference else '@'}{FLAGS}={name}"
    return Model(reference, replace(model.unit, result=Flags(model.unit.result, name)))


def _base_model(base: str, length: str = "") -> Model:
    """The model of a name without changes; `length`: the @length= after it, which a plan in its place would have."""
    ieee = _IEEE.fullmatch(base)
    if ieee:
        d, a, b, c = (name or ieee.group(1) for name in ieee.groups())
        return _ieee_chain(base, d, a, b, c)
    if base.startswith(TURN):
        return Model(base, unit_of_turn(base))
    shape = _SHAPE.fullmatch(base)
    if shape and int(shape.group(3)) in range(8, 257, 8) and (shape.group(2) == "64" or "tcgen05" in base):
        base = f"{shape.group(1)}64n8{shape.group(4)}"  # M and N do not enter the arithmetic
    if base in units():
        return Model(base, shipped_unit(base))
    row = INSTRUCTIONS.get(base)
    if row is None:
        from mmaprobe.smtmodel.tables.sparse import sparse_rows

        row = sparse_rows().get(base)
    if row is None:
        if reason := not_modelled(base):
            raise NotModelledError(f"{base}: {reason}")
        if architecture_of(base) and (gpu := gpu_named(base)):
            hint = f'a GPU has several instructions: `mmaprobe list "{gpu[0]}"` shows them'
            raise ParameterError(gpu[0], f"{hint}, docs/generations.md what changes from GPU to GPU")
        if reason := not_modelled(f"{base}/"):
            raise NotModelledError(f"{base}: {reason}")
        if gpus_of(base):
            raise ParameterError(base, f"an architecture has several instructions: `mmaprobe list {base}` shows them")
        if base.endswith(".yml"):
            raise ParameterError(base, "the name of a unit file ends in .yaml")
        if base.endswith((".jsonl", ".jsonl.gz")):
            raise ParameterError(base, "a file of vectors, where a model is wanted")
        if base.endswith(DESIGNS):
            use = "--device rtl:FILE,top=NAME asks it (docs/my-rtl.md)"
            raise ParameterError(base, f"a design, where a model is wanted: {use}")
        if base == "ieee/fma" or base.startswith("ieee/fma/"):
            raise ParameterError(base, "it is written ieee/fma/FORMAT, or ieee/fma/D.A.B.C with four formats")
        if base.startswith(MULADD):
            known = ", ".join(name for name in units() if name.startswith(MULADD))
            own = f"other formats are a unit file's: `mmaprobe show {MULADD}f32 > mine.yaml` is one to change"
            raise ParameterError(base, f"of these there are {known}; {own}")
        raise _unknown_error(base, length)
    return Model.of(base, FORMATS[row.a], FORMATS[row.b], FORMATS[row.c], row.member)


def _unknown_error(base: str, length: str) -> MmaprobeError:
    """The error for an unknown name, with the names that it begins, or near names with as many parts."""
    known = [*INSTRUCTIONS, *units(), *(f"{PLAN}{name}" for name in plans())]
    if any(name.startswith(f"{base}/") for name in known):
        return ParameterError(base, f"the beginning of several names: `mmaprobe list models {base}` shows them")
    parts = base.count("/") + 1
    near = {"/".join(name.split("/")[:parts]) for name in known} | {gpu for gpus in GPUS.values() for gpu in gpus}
    near = {name for name in near if name.startswith(f"{base.partition('/')[0]}-")} or near  # ada/... is ada-lovelace's
    if is_plan(meant := nearest(base, near) or ""):
        base, near = f"{base}{length}", {f"{meant}{length}"}
    return UnknownNameError("model", base, near, hint=" (`mmaprobe list models` shows all)")


def _ieee_chain(base: str, name: str, *operands: str) -> Model:
    """A chain of IEEE fused multiply-adds in one format, or with factors of other formats (`f64.f32.f32.f64`)."""
    a, b, c = (format_named(operand) for operand in operands)
    values = {"length": 1, "output": parse_parameter("output", name), "output_rounding": "nearest_even"}
    return Model.of(base, a, b, c, FUNCTIONS["fma-chain"](**values))


def member_of(model: Model) -> Member:
    """The family and parameters of an instruction of the table. Raises NotModelledError for a unit file."""
    if model.member is None:
        raise NotModelledError(
            f"{model.reference} is a unit file, an expression without parameters of a family: this needs an "
            "instruction of the table, which has them"
        )
    return model.member


def with_parameters(model: Model, changes: Mapping[str, Any]) -> Model:
    """The model with other parameters, which its reference names. Raises UnknownNameError or ParameterError."""
    if not changes:
        return model
    if model.member is None:
        what = "an order of additions" if model.reference.startswith(TURN) else "a unit file"
        raise ParameterError("@", f"{model.reference} is {what}: it has no parameters to change")
    base, _, earlier = model.reference.partition("@")
    given: dict[str, Any] = dict(part.split("=", 1) for part in earlier.split(",")) if earlier else {}
    member = model.member
    if FAMILY in changes and earlier:  # another family has other parameters
        member = member_of(_base_model(base))
        takes = FUNCTIONS[changes[FAMILY]].takes if changes[FAMILY] in FUNCTIONS else ()
        changes = {name: value for name, value in given.items() if name in takes} | dict(changes)
        given = {}
    member = member.changed(changes)
    reference = base + "@" + ",".join(f"{name}={member.text(name)}" for name in {**given, **changes})
    return Model.of(reference, model.a, model.b, model.c, member)


@lru_cache(maxsize=64)
def one_change_away(model: Model, numbers: frozenset[int]) -> Mapping[Node, tuple[str, str, Model]]:
    """Models with one parameter of an instruction's family changed, by their expressions: (parameter, value, model).
    `numbers`: the values tried for parameters that take numbers. Empty for a unit file."""
    models: dict[Node, tuple[str, str, Model]] = {}
    if model.member is None:
        return models
    for name in (FAMILY, *model.member.values):
        row = PARAMETERS[name]
        fitting = [n for n in sorted(numbers) if row.low is not None and row.low <= n <= (row.high or 0)]
        values: list[Any] = [
            *row.names,
            *fitting,
            *([False, True] if row.boolean else []),
            *([None] if row.none else []),
        ]
        for value in values if name not in _NOT_ONE_CHANGE else ():
            try:
                changed = with_parameters(model, {name: value})
                models.setdefault(changed.unit.result, (name, format_parameter(value), changed))
            except ParameterError:
                continue
    models.pop(model.unit.result, None)
    return models
