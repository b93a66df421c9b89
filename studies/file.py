"""Study files, shipped (in the folder `library`) and of users."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import Field, StrictBool, StrictFloat, StrictInt

from mmaprobe.queries.kernel.equality.plan_units import plan_key
from mmaprobe.queries.plans.bound_samples import exact_element
from mmaprobe.smtmodel.algorithms import parse_reduction
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.base.files import names_file
from mmaprobe.smtmodel.base.yamlfile import Strict, YamlFile, located, read_yaml, read_yaml_file, validate
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.plan_files import beside
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from mmaprobe.studies.study import (
    ALLOWED,
    DISTRIBUTIONS,
    LARGEST,
    MEASURES,
    Distribution,
    Kind,
    Measure,
    Sampled,
    Series,
    Study,
)

Number = StrictInt | StrictFloat
DRAWN_IN = ("f32", "f64")
#: key of a curve's subject -> the kinds of study with such curves, in words
SUBJECTS = {"reduction": "sum", "plan": "product or bias", "bound": "product or bias"}


class _Curve(Strict):
    label: str = ""
    plan: str = ""
    reduction: str = ""
    bound: str = ""
    minus: str = ""
    group: str = ""
    dashed: StrictBool = False


class _StudyFile(Strict):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str = ""
    kind: Kind = "product"
    format: str = "f32"
    grid: str = ""
    factor: Number = 1
    addend_factor: Number = 1
    distributions: list[Distribution] = Field(default=["normal", "uniform"], min_length=1)
    sizes: list[StrictInt] = Field(min_length=1)
    length: StrictInt | None = Field(default=None, ge=1, le=LARGEST)
    rows: StrictInt | None = Field(default=None, ge=1)
    repeats: StrictInt = Field(default=1, ge=1)
    measures: list[Measure] | None = Field(default=None, min_length=1)
    axis: str = ""
    curves: list[_Curve] = Field(min_length=1)


def build_study(file: YamlFile) -> Study:
    """The study in a file. Raises InputError with line and key."""
    given = validate(file, _StudyFile)
    for key, name, allowed in (("format", given.format, DRAWN_IN), ("grid", given.grid, ("", *FORMATS))):
        if name not in allowed:
            raise file.error((key,), f"{name!r} is none of {', '.join(filter(None, allowed))}")
    if given.kind == "sum" and (given.rows or given.length or given.grid or given.format != "f32"):
        raise file.error(("kind",), "a study of kind `sum` has no `rows`, `length` or `grid`, and its format is f32")
    if given.kind != "bias" and given.addend_factor != 1:
        raise file.error(("addend_factor",), "only a study of kind `bias` has addends")
    measures = tuple(given.measures or MEASURES[given.kind])
    for at, name in enumerate(measures):
        if name not in ALLOWED[given.kind]:
            raise file.error(("measures", at), f"{name} is none of {', '.join(ALLOWED[given.kind])}")
    series = tuple(_series(file, given.kind, at, curve) for at, curve in enumerate(given.curves))
    labels = [one.label for one in series]
    for at, label in enumerate(labels):
        if label in labels[:at]:
            raise file.error(("curves", at), f"a second curve with the label {label!r}")
    alike = given.model_dump(exclude={"sizes", "curves", "distributions", "measures", "axis"})
    study = Study(
        **alike, sizes=tuple(sorted(set(given.sizes))), series=series, distributions=tuple(given.distributions),
        measures=measures, axis=given.axis or ("exponents from -n to n" if given.length else "n"),
        sampled=tuple(
            _sampled(file, at, name) for at, name in enumerate(given.distributions) if name not in DISTRIBUTIONS
        ),
    )  # fmt: skip
    least, most = study.least_and_most
    if study.sizes[0] < least or study.sizes[-1] > most:
        what = "ranges of exponents" if study.length else "lengths"
        raise file.error(("sizes",), f"{what} from {least} to {most} are needed")
    return study


def _sampled(file: YamlFile, at: int, name: str) -> Sampled:
    """The .npy file that a study draws from. A relative path is tried in the folder of the study's file, then in the
    working directory. Raises InputError."""
    from mmaprobe.studies.run import numbers_of

    if not name.endswith(".npy"):
        known = ", ".join(map(repr, DISTRIBUTIONS))
        raise file.error(("distributions", at), f"{name!r} is none of {known}, and not the path of a .npy file")
    path = Path(file.name).parent / name
    path = path if path.exists() else Path(name)
    try:
        sampled = Sampled(name, str(path), hashlib.sha256(path.read_bytes()).hexdigest()[:12])
        numbers_of(sampled)
    except OSError as error:
        raise file.error(("distributions", at), f"{name}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise file.error(("distributions", at), f"{name}: {error}") from None
    return sampled


def _series(file: YamlFile, kind: Kind, at: int, curve: _Curve) -> Series:
    """One curve of a file. Paths in the curve are tried in the folder of the file first. Raises InputError."""
    key, *others = [name for name in SUBJECTS if getattr(curve, name)] or [""]
    if not key or others:
        raise file.error(("curves", at), f"a curve has one of {', '.join(SUBJECTS)}")
    if (key == "reduction") != (kind == "sum"):
        raise file.error(("curves", at, key), f"a {key} stands in studies of kind {SUBJECTS[key]}, not {kind}")
    if curve.minus and key != "plan":
        raise file.error(("curves", at, "minus"), "only a curve of a plan has `minus`, the plan that is subtracted")
    as_written = {name: getattr(curve, name) for name in (key, "minus") if getattr(curve, name)}
    texts = {name: beside(Path(file.name).parent, text) for name, text in as_written.items()}
    for name, text in texts.items():
        with located(file, ("curves", at, name)):
            if kind == "sum":
                parse_reduction(text)
                continue
            plan = parse_plan_path(text)
            if plan.scale is not None:
                raise file.error(("curves", at, name), f"{text} takes scale factors, of which a study draws none")
            if name == "plan" and not curve.minus and (other := _another_product(plan)):
                raise file.error(("curves", at, name), f"{text} {other}: errors here are those against A * B")
    label = curve.label or {"bound": f"{as_written[key]}, proved bound"}.get(key, as_written[key])
    label += f" - {curve.minus}" if curve.minus and not curve.label else ""
    bound = key == "bound"
    named = ".yaml" in "".join(texts.values())
    identity = " - ".join(plan_key(parse_plan_path(text)) for text in texts.values()) if named else ""
    return Series(
        label, texts[key], texts.get("minus", ""), curve.dashed or bound, curve.group or label, bound, identity
    )


def _another_product(plan: Plan) -> str:
    """What a plan gives exactly for one product, in words, if it computes something else than A * B, as with alpha or
    ReLU; else empty."""
    for a in (plan.a.one, plan.a.one | plan.a.sign_bit):
        exact = exact_element(plan, [a], [plan.b.one], 0)
        product = math.prod(Fraction(exact_value(*one)) for one in ((a, plan.a), (plan.b.one, plan.b)))
        if exact not in (None, product):
            return f"gives {exact} for a product of {product}"
    return ""


@cache
def studies() -> dict[str, Study]:
    """The shipped studies by name."""
    folder = files("mmaprobe.studies") / "library"
    every = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda entry: entry.name)
    read = [build_study(read_yaml(entry.read_text(encoding="utf-8"), str(entry))) for entry in every]
    return {study.id: study for study in read}


def study_named(name: str) -> Study:
    """The study of a name, or of the file with this path. Raises UnknownNameError and InputError."""
    if names_file(name):
        return build_study(read_yaml_file(name))
    try:
        return studies()[name]
    except KeyError:
        hint = " (`mmaprobe list studies` shows all; the path of a study file works too)"
        raise UnknownNameError("study", name, studies(), hint=hint) from None
