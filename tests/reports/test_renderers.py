"""Drawings outside browsers: librsvg and CairoSVG, which know neither variables nor media queries of style sheets,
paint every kind of drawing as it is meant, and alike."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mmaprobe
from mmaprobe.cli.main import main
from mmaprobe.reports.drawings.sheet import LETTER, SIZE, SMALL, TITLE
from mmaprobe.reports.drawings.svg import SVG
from tests.explain.test_explain import AMPERE, CDNA3_FP8, EQUATION_10, HOPPER, NVFP4, VOLTA
from tests.places import ROOT

pytestmark = pytest.mark.curves

NAME = f"{{{SVG}}}"
SCALE = 2  # pixels of a picture for one of the drawing
WRAPS = {"a": ["3fff"] * 4, "b": ["3fff"] * 4, "c": "3fffffff"}
LATE = {"a": ["40", "38", "44"], "b": ["40", "39", "c8"], "c": "b3b00001"}

#: kind of drawing -> the command that draws it
COMMANDS = {
    "explain": ["explain", AMPERE, json.dumps(EQUATION_10)],
    "explain, two models": ["explain", AMPERE, json.dumps(EQUATION_10), "--against", HOPPER],
    "explain, a column": ["explain", AMPERE, json.dumps(EQUATION_10), "--against", HOPPER, "--width", "85"],
    "explain, carry bits": ["explain", VOLTA, json.dumps(WRAPS), "--against", f"{VOLTA}@carry_bits=3"],
    "explain, a late addend": ["explain", CDNA3_FP8, json.dumps(LATE)],
    "explain, scales": [
        "explain", NVFP4, json.dumps({"a": ["2"], "b": ["4"], "c": "3f800000", "scale_a": ["38"] * 4,
                                      "scale_b": ["38"] * 4}),
    ],
    "show, a unit": ["show", "cdna3/mfma/f32_16x16x32_fp8_fp8"],
    "show, a plan": ["show", "plan:cublas/split-k@length=4096", "--width", "85"],
    "order": ["order", "--device", f"model:{HOPPER}"],
}  # fmt: skip

#: kept in the documentation; the curves of studies are drawn by matplotlib, each for a page and for a column
KEPT = sorted([*(ROOT / "docs" / "pictures").glob("*.svg"), *(ROOT / "docs" / "studies").glob("*-column.svg")])

Pixels = Any  # an array of rows of pixels: red, green, blue


@dataclass(frozen=True)
class Place:
    """A text of a drawing and the box of its letters in pixels of the drawing."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


@pytest.fixture(scope="session")
def renderers() -> dict[str, Callable[[str, int, int], Pixels]]:
    """Name -> what paints a document so many pixels wide and high. Tests are skipped where one of them is absent."""
    program = shutil.which("rsvg-convert")
    if program is None:
        pytest.skip("no rsvg-convert: apt-get install librsvg2-bin")
    try:
        import cairosvg
    except (ImportError, OSError) as error:  # OSError: the package without its library
        pytest.skip(f"no CairoSVG ({error}): pip install cairosvg, and install the library (apt-get install libcairo2)")

    def librsvg(text: str, width: int, height: int) -> Pixels:
        command = [program, "--width", str(width), "--height", str(height)]
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return pixels(done.stdout)

    def cairo(text: str, width: int, height: int) -> Pixels:
        return pixels(cairosvg.svg2png(text.encode(), output_width=width, output_height=height))

    return {"librsvg": librsvg, "CairoSVG": cairo}


def pixels(png: bytes) -> Pixels:
    """The colours of a picture; a place that is not painted is red, which no drawing has."""
    from PIL import Image

    painted = Image.open(io.BytesIO(png)).convert("RGBA")
    ground = Image.new("RGBA", painted.size, (255, 0, 0, 255))
    return np.asarray(Image.alpha_composite(ground, painted).convert("RGB"))


def grey(image: Pixels) -> Pixels:
    return image @ np.array([0.299, 0.587, 0.114])


def size_of(document: str) -> tuple[int, int]:
    """Width and height of a picture of the document in pixels."""
    _, _, width, height = map(float, ET.fromstring(document).attrib["viewBox"].split())
    return round(width * SCALE), round(height * SCALE)


def places(document: str) -> Iterator[Place]:
    """The texts of a drawing of this package; matplotlib's are shapes."""
    root = ET.fromstring(document)
    for sheet in root.findall(f"{NAME}g[@transform]"):
        x, y = map(float, re.findall(r"-?[\d.]+", sheet.attrib["transform"]))
        for element in sheet.iter(f"{NAME}text"):
            text, css = element.text or "", element.get("class", "")
            size = TITLE if "title" in css else SMALL if "small" in css else SIZE
            width, base = len(text) * LETTER * size / SIZE, y + float(element.attrib["y"])
            back = {"start": 0.0, "middle": width / 2, "end": width}[element.attrib["text-anchor"]]
            left = x + float(element.attrib["x"]) - back
            if text.strip():
                yield Place(text, left, base - 0.75 * size, left + width, base + 0.1 * size)


def check(document: str, renderers: dict[str, Callable[[str, int, int], Pixels]]) -> None:
    """A light ground, several colours, every text in its place and readable, and no renderer with a picture of its
    own."""
    from PIL import Image

    size, texts = size_of(document), list(places(document))
    images = {name: paint(document, *size) for name, paint in renderers.items()}
    for name, image in images.items():
        assert Image.fromarray(image).getcolors(8) is None, f"{name}: few colours"
        assert (image[[3, 3, -4, -4], [3, -4, 3, -4]] == 255).all(), f"{name}: the ground is not white"
        assert (grey(image) > 200).mean() > 0.6, f"{name}: most is dark"
        unread = [place.text for place in texts if contrast(image, place) < 90]
        assert not unread, f"{name}: {unread}"
    one, other = (coarse(image) for image in images.values())
    assert np.abs(one - other).mean() < 6
    assert np.abs(one - other).max() < 100


def contrast(image: Pixels, place: Place) -> float:
    """How much darker or lighter than its ground a text is, of 255."""
    rows = slice(round(place.top * SCALE), round(place.bottom * SCALE))
    part = grey(image[rows, round(place.left * SCALE) : round(place.right * SCALE)])
    return float(part.max() - part.min())


def coarse(image: Pixels, step: int = 16) -> Pixels:
    """The mean of each square of so many pixels, as letters of different fonts have the same darkness."""
    height, width = (length // step * step for length in image.shape[:2])
    return grey(image[:height, :width]).reshape(height // step, step, width // step, step).mean(axis=(1, 3))


@pytest.mark.parametrize("kind", COMMANDS)
def test_what_commands_draw(kind: str, tmp_path: Path, renderers: Any) -> None:
    path = tmp_path / "x.svg"
    done = CliRunner().invoke(main, [*COMMANDS[kind], "--svg", str(path)])
    assert done.exit_code in (0, 1), done.output
    assert list(places(path.read_text()))
    check(path.read_text(), renderers)


def test_what_reports_contain(tmp_path: Path, renderers: Any) -> None:
    """Their drawings have no style sheet of their own."""
    results = tmp_path / "x.json"
    results.write_text(CliRunner().invoke(main, [*COMMANDS["explain, two models"], "--json"]).stdout)
    page = tmp_path / "x.html"
    done = CliRunner().invoke(main, ["report", str(results), "-o", str(page)])
    assert done.exit_code == 0, done.output
    drawings = re.findall(r"<svg.*?</svg>", page.read_text(), re.DOTALL)
    assert len(drawings) == 2
    for one in drawings:
        check(one, renderers)


def test_what_notebooks_show(renderers: Any) -> None:
    halves = np.full(4, 0.5, np.float16)
    check(mmaprobe.explain(VOLTA, halves, halves, 1.0)._repr_svg_(), renderers)
    check(mmaprobe.order(f"model:{VOLTA}", "f16,f16,f32,f32", 4)._repr_svg_(), renderers)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_pictures_of_the_documentation(path: Path, renderers: Any) -> None:
    check(path.read_text(), renderers)
