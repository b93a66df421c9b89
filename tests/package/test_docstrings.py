"""What `import mmaprobe` says of its names: each function its shapes, units, errors and source, each result its parts.

The words are held against what the functions do: every argument of a wrong type, every array of a wrong shape and every
impossible number of seconds is the error that the docstring promises, and every source named is there.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.cli.main import main
from tests.places import ROOT

PUBLIC = [getattr(mmaprobe, name) for name in mmaprobe.__all__]
FUNCTIONS = [one for one in PUBLIC if inspect.isfunction(one)]
CLASSES = [one for one in PUBLIC if inspect.isclass(one)]
PARTS = ("Shapes: ", "Units: ", "Raises MmaprobeError", "Source: ")
NAMES_ALONE = ("unit", "plan", "units", "plans", "formats", "claims", "gpus")  # take names and no arrays: no shapes
HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
SCALED = "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0"
MATRIX, ROW = np.ones((2, 2), np.float16), np.ones(2, np.float16)


def ones(a: Any, b: Any, c: Any) -> Any:
    return a @ b + c


def product(a: Any, b: Any) -> Any:
    return a @ b


GOOD: dict[str, dict[str, Any]] = {  # of each function: arguments that it takes
    "matmul": {"a": MATRIX, "b": MATRIX, "unit": HOPPER},
    "dot": {"a": ROW, "b": ROW, "unit": HOPPER},
    "explain": {"unit": HOPPER, "a": ROW, "b": ROW},
    "distinguish": {"left": HOPPER, "right": f"{HOPPER}@fraction_bits=24"},
    "prove": {"left": HOPPER, "right": HOPPER},
    "bound": {"unit": HOPPER},
    "verify": {"claim": "ootomo-not-worse-f16@terms=2,split=toward_zero"},
    "order": {"device": ones, "formats": "f16,f16,f32,f32", "length": 2},
    "identify": {"device": ones, "formats": "f16,f16,f32,f32", "length": 2},
    "identify_gemm": {"function": product, "formats": "f16,f16,f16", "length": 2, "shape": (2, 2), "timeout": 5.0},
    "plans_of": {"a": MATRIX, "b": MATRIX, "d": MATRIX, "timeout": 5.0},
    "invariant": {"of": product, "formats": "f16,f16,f16", "length": 2},
    "unit": {"reference": HOPPER},
    "plan": {"reference": "cublas/plain"},
    "study": {"study": "navarro-cub", "sizes": [32]},
    **{name: {} for name in ("units", "plans", "formats", "claims", "gpus")},
}


def paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n")]


def said_of(parameter: str, text: str) -> str | None:
    """The words after a parameter's name, to the end of their clause."""
    found = re.search(rf"`{parameter}`((?:[^`;.]|`[^`]*`|\.(?! |$))*)", text)
    return None if found is None else found[1]


def lacks(function: Callable[..., Any], text: str) -> list[str]:
    """What the docstring of a function does not say."""
    found = {part: [one for one in paragraphs(text) if one.startswith(part)] for part in PARTS}
    wanted = [part for part in PARTS if part != "Shapes: " or function.__name__ not in NAMES_ALONE]
    missing = [part for part in wanted if len(found[part]) != 1 or len(found[part][0].split()) < 5]
    if missing:
        return missing
    shapes, units, source = (" ".join(found[part]) for part in ("Shapes: ", "Units: ", "Source: "))
    places = [*re.findall(r"docs/[\w/.-]+\.md", source), *re.findall(r"`mmaprobe (\w+)", source)]
    if not places or not all((ROOT / place).is_file() or place in main.commands for place in places):
        missing.append("Source: a page or a command that is there")
    for name, parameter in inspect.signature(function).parameters.items():
        kind = str(parameter.annotation)
        if kind == "Any" and not re.search(r"[KMN]\b|element|number|array|as many", said_of(name, shapes) or ""):
            missing.append(f"the shape of {name}")
        elif kind == "float" and "second" not in (said_of(name, units) or ""):
            missing.append(f"the unit of {name}")
        elif said_of(name, text) is None:
            missing.append(name)
    return missing


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_a_function_says_shapes_units_errors_and_source(function: Callable[..., Any]) -> None:
    assert lacks(function, inspect.getdoc(function) or "") == []


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_a_docstring_with_a_part_left_out_is_found(function: Callable[..., Any]) -> None:
    parts = (inspect.getdoc(function) or "").split("\n\n")
    for number, part in enumerate(parts[1:], 1):
        assert lacks(function, "\n\n".join([*parts[:number], *parts[number + 1 :]])), part
        if part.startswith(PARTS):
            assert lacks(function, "\n\n".join([*parts[:number], part.split()[0], *parts[number + 1 :]])), part


@pytest.mark.parametrize("kind", CLASSES, ids=lambda one: one.__name__)
def test_a_class_says_what_its_parts_are(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    parts = [one.name for one in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    parts += [name for name, one in vars(kind).items() if isinstance(one, property) or inspect.isroutine(one)]
    own = [name for name in parts if not name.startswith("_")]
    assert text
    assert [name for name in own if f"`{name}`" not in text and not inspect.getdoc(getattr(kind, name, None))] == []


# -- what the words promise


def cases(*annotations: str) -> list[Any]:
    found = []
    for function in FUNCTIONS:
        for name, parameter in inspect.signature(function).parameters.items():
            if not annotations or str(parameter.annotation) in annotations:
                found.append(pytest.param(function, name, id=f"{function.__name__}-{name}"))
    return found


def refuses(function: Callable[..., Any], name: str, value: Any) -> None:
    good = dict(GOOD[function.__name__])
    if name == "plan":
        del good["unit"]
    if name.startswith("scale"):
        good["unit"] = SCALED
    with pytest.raises(mmaprobe.MmaprobeError, match=r"\w+"):
        function(value) if name == "words" else function(**{**good, name: value})


@pytest.mark.parametrize(("function", "name"), cases())
def test_an_argument_of_a_wrong_type_is_refused(function: Callable[..., Any], name: str) -> None:
    refuses(function, name, object())


@pytest.mark.parametrize(("function", "name"), cases("Any"))
@pytest.mark.parametrize("shape", [(1, 1, 3), (0, 3), (3, 5)])
def test_an_array_of_a_wrong_shape_is_refused(function: Callable[..., Any], name: str, shape: tuple[int, ...]) -> None:
    refuses(function, name, np.ones(shape, np.float32 if name == "c" else np.float16))


@pytest.mark.parametrize(("function", "name"), cases("float"))
@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "60", True])
def test_an_impossible_time_is_refused(function: Callable[..., Any], name: str, seconds: Any) -> None:
    refuses(function, name, seconds)
