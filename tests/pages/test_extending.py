"""The examples of docs/extending.md, carried out on a copy of the project: each in so many files as the page says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.places import ROOT

pytestmark = pytest.mark.pages

PAGE = ROOT / "docs" / "extending.md"
PLAN = """plan: doubled
formats: {a: f32, b: f32, c: f32, d: f32}
units: {fma: ieee/fma/f32}
roundings: {r: round(f32)}
steps:
  d: sum(STAGE, +0)
"""
STAGES = {"doubled": "double(4, fma, r)", "tailed": "double(4, chain(fma, tail=fma), r)",
          "promoted": "promote(double(4), fma, r)"}  # fmt: skip
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
MINUS = """unit: minus
formats: {a: f16, b: f16, c: f16, d: f16}
length: 1
roundings: {r: round(f16)}
steps:
  d: r(exact(minus(a[0] * b[0]), c))
"""
#: a unit with a second addend, and numbers that are added beside the products; and one that rounds twice
ADDED = """unit: added
formats: {a: e2m1, b: e2m1, c: e4m3, d: e4m3, c2: e4m3, m: e2m1}
length: 2
roundings: {r: round(e4m3)}
steps:
  d: r(exact(a[0:2] * b[0:2], each(k in range(2), m[k]), c, c2))
"""
INPUT = {"a": ["6", "0"], "b": ["6", "0"], "c": "38", "c2": "30", "m": ["2", "4"]}  # 4 * 4 + 1 + 2^-1 + 1 + 2
SUM = "5a"  # 20, the even one of 20 and 22
#: of operands, in commands that evaluate by arrays and by terms
OPERANDS = [
    ("explain added.yaml input.jsonl", "  c2  30 2^-1"),
    ("explain added.yaml input.jsonl", "  m0 2 1    m1 4 2"),
    ("explain added.yaml input.jsonl", f"d = {SUM}"),
    ("evaluate input.jsonl", "1 row, 0 mismatches"),
    ("run input.jsonl --device 'command:sh device.sh'", f'"c2": "30", "m": ["2", "4"], "d": "{SUM}"'),
    ("prove added.yaml turned.yaml --certificate same", "equal: proved in"),
    ("check same", "2 products of e2m1 and e2m1, c in e4m3, c2 in e4m3, m in e2m1, d in e4m3"),
    ("prove added.yaml twice.yaml --solver bitwuzla --certificate other", "\n    c2 = "),
    ("check other", ": not equal: on this input left gives "),
    ("explain added.yaml lacking.jsonl", "c2: this field is missing"),
    ("explain ieee/fma/f32 more.jsonl", "c2: ieee/fma/f32 takes no c2"),
]
#: and in the other commands
OPERANDS_EVERYWHERE = [
    ("show added.yaml", "formats: {a: e2m1, b: e2m1, c: e4m3, d: e4m3, c2: e4m3, m: e2m1}"),
    ("run input.jsonl --device model:added.yaml", f'"c2": "30", "m": ["2", "4"], "d": "{SUM}"'),
    ("export input.jsonl --format csv", "id,model,d,predicted,c,a0,a1,b0,b1,c2,m0,m1"),
    ("export input.jsonl --format smt2", "(= c2 #b00110000)"),
    ("distinguish added.yaml twice.yaml --solver bitwuzla", '"c2": "'),
    ("prove --property order-independent added.yaml --certificate order", ": proved in"),
    ("check order", "is order-independent"),
    ("prove --property error-bound added.yaml", "|d - exact| <= 2^-4 * |exact|"),
    ("compare model:added.yaml 'command:sh device.sh' -n 1", "no difference"),
    ("compare model:added.yaml model:twice.yaml -n 1 --json", '"operands": {"a": '),
    ("compare model:added.yaml model:twice.yaml -n 1 --json", '"c2": "'),
    (
        "compare --gemm a.npy b.npy a.npy d.npy --model added.yaml",
        "c2: added.yaml needs it, and it cannot be given here",
    ),
    ("cover added.yaml --no-pairs --timeout 10 -o cover.jsonl", "cover.jsonl: "),
    ("evaluate cover.jsonl", ", 0 mismatches"),
    ("order --device model:wide.yaml", "starts from: "),
    ("identify --device model:wide.yaml", "c2: the unit needs it, and it cannot be given here"),
    ("simulate a.npy b.npy --model added.yaml -o d.npy", "it takes c2, which no plan has"),
    ("run input.jsonl --device python:device.py:matmul", "it takes no c2"),
]
#: the same in Python: an input that decides has all its operands, and is evaluated with them
IN_PYTHON = """
import mmaprobe
case = mmaprobe.distinguish("added.yaml", "twice.yaml", solver="bitwuzla").differences[0].left
shown = mmaprobe.explain("added.yaml", case.a, case.b, case.c, **case.more)
assert shown.explanations[0].model.reference == "added.yaml"
assert float(shown.d) == float(case.d), (shown.d, case.d)
for lacking in ({}, {"c2": 0}, {**case.more, "c3": 0}):
    try:
        mmaprobe.explain("added.yaml", case.a, case.b, case.c, **lacking)
    except mmaprobe.MmaprobeError as error:
        print(error)
try:
    mmaprobe.matmul(case.a[None], case.b[:, None], unit="added.yaml")
except mmaprobe.MmaprobeError as error:
    print(error)
"""
#: two units with a new node: by a rule, and by a solver
CERTIFIED = [
    ("prove minus.yaml turned.yaml --certificate rule --solver bitwuzla --no-confirm", "equal: proved in"),
    ("check rule", "checked: 4 files as written, no proof by a solver needed"),
    ("prove minus.yaml thrice.yaml --certificate query --solver bitwuzla --no-confirm", ", by bitwuzla 0"),
    ("check query", "checked: 5 files as written, 1 proof verified"),
]
#: the node of the example with a rounding of its own: texts of its two files, and others in their places
ROUNDED = {
    "smtmodel/nodes/minus.py": {
        '"IEEE 754-2019, 5.5.1"\n': '"IEEE 754-2019, 5.5.1"\n    how: Rounding\n',
        "context.value(self.term)": "context.value(Round(self.term, self.how))",
        "import Context, Number, Unary, Value": "import Context, Number, Unary, Value\n"
        "from mmaprobe.smtmodel.nodes.round import Round, Rounding",
    },
    "smtmodel/units/written.py": {
        '"r(exact(minus(r(exact(a[0:4] * b[0:4]))), c))"': '"r(c)", (Option("HOW", "how", "a rounding"),)',
        "minus(TERM)": "minus(TERM, round(FORMAT, MODE))",
    },
}
#: what was added -> commands that could not run before, and what they say
EXAMPLES = {
    "an algorithm": [("list algorithms", "markidis-three")],
    "a family": [(f"show {VOLTA}@family=two-roundings", "d: r(exact(r(exact(a[0:4] * b[0:4])), c))")],
    "a parameter": [
        (
            "distinguish ieee/fma/f32@flush_outputs=true ieee/fma/f32@flush_outputs=true,tiny=before_rounding "
            "--solver bitwuzla",
            "right gives 80000000",
        ),
    ],
    "a property": [(f"prove --property commutative {VOLTA} --solver bitwuzla --no-confirm", ": proved in")],
    "a node": [
        ("show minus.yaml", "d: r(exact(minus(a[0] * b[0]), c))"),
        ("distinguish minus.yaml ieee/fma/f16 --solver bitwuzla", "left gives bc00"),
        ("prove --property order-independent minus.yaml --solver bitwuzla --no-confirm", ": proved in"),
        ("prove --property error-bound minus.yaml", "no rule says what minus loses"),
        *CERTIFIED,
    ],
    "a claim": [
        ("verify 8192.yaml", "holds in"),
        ("verify 8196.yaml", "8196 products 1 * 1 give 8192"),
        ("verify 8196.yaml --certificate none", "no certificate is written for such a verdict"),
    ],
    "a key": [("list formats --json", '"bias": 127, "infinity": true')],
    "an operand": OPERANDS,
    "a multiplier": [
        (
            "identify --device model:flushed.yaml --formats f16,f16,f16,f16 --length 1 --save mine.yaml",
            "d: r(exact(flushed(a[0] * b[0], -15), c))",
        ),
        ("prove flushed.yaml mine.yaml --solver bitwuzla --no-confirm", "equal: proved in"),
    ],
    "a stage": [
        ("show plan:doubled.yaml@length=20", "repeat(i in range(8), +0, r(exact(a[i + 12] * b[i + 12], acc)))"),
        ("prove plan:doubled.yaml plan:tailed.yaml --length 30", "equal for K = 30: proved"),
        ("prove plan:doubled.yaml plan:tailed.yaml --timeout 5", "equal: unknown after"),
        ("prove --property error-bound plan:doubled.yaml --length 28", "for K = 28: |d - exact| <= "),
        ("prove --property error-bound plan:doubled.yaml --length 28", "a stage of Doubled is not one step repeated"),
        ("prove plan:promoted.yaml plan:promoted.yaml", "equal for every K"),
    ],
    "a solver": [("distinguish ieee/fma/f16 ieee/fma/f16@nan=none --solver z3-seeded", "z3-seeded")],
    "an instruction": [
        ("list models", "mine/mma/half"),
        ("prove mine/mma/half ieee/fma/f16 --solver bitwuzla --no-confirm", "equal: "),
    ],
}


@pytest.fixture
def copy(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Always in one place, so that what no example changes is compiled once; beside it, and not in the user's cache."""
    place = tmp_path_factory.getbasetemp() / "extended"
    shutil.rmtree(place, ignore_errors=True)
    for name in ("mmaprobe", *(link.name for link in (ROOT / "mmaprobe").iterdir() if link.is_symlink())):
        shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(place.with_name("extended-bytecode")))
    return place


def rows() -> dict[str, tuple[int, str]]:
    found = re.findall(r"^\| (an? [a-z]+) \| (\d) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (int(files), example) for name, files, example in found}


@pytest.mark.parametrize("added", EXAMPLES)
def test_an_example(added: str, copy: Path) -> None:
    files, example = rows()[added]
    if named := re.search(r"\(extending/(\w+\.diff)\)", example):
        diff = PAGE.parent / "extending" / named[1]
        subprocess.run(["git", "apply", str(diff)], cwd=copy, check=True)
        changed = re.findall(r"^\+\+\+ b/(.*)$", diff.read_text(encoding="utf-8"), re.MULTILINE)
        (write_inputs if added == "an operand" else write_units)(copy)
        for ones in (8192, 8196):
            text = f"plan: volta/mma/m8n8k4.f16.f16.f16.f16\nones: {ones}\n"
            (copy / f"{ones}.yaml").write_text(text, encoding="utf-8")
        for name, stage in STAGES.items():
            (copy / f"{name}.yaml").write_text(PLAN.replace("STAGE", stage), encoding="utf-8")
    else:
        changed = ["smtmodel/units/library/mine/mma/half.yaml"]
        (copy / changed[0]).parent.mkdir(parents=True)
        (copy / changed[0]).write_text(MINUS.replace("minus(a[0] * b[0])", "a[0] * b[0]"), encoding="utf-8")
    assert len(changed) == files <= 3
    says(copy, EXAMPLES[added])


@pytest.mark.slow
def test_an_operand_in_every_command(copy: Path) -> None:
    subprocess.run(["git", "apply", str(PAGE.parent / "extending" / "operand.diff")], cwd=copy, check=True)
    write_inputs(copy)
    says(copy, OPERANDS_EVERYWHERE)
    done = subprocess.run([sys.executable, "-c", IN_PYTHON], cwd=copy, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    wanted = ("c2: added.yaml needs them", "m: .* needs them", "c3: added.yaml takes none", ".* takes c2, .*")
    assert re.fullmatch("".join(f"{line}\n" for line in wanted), done.stdout)


def test_a_new_node_with_a_rounding_of_its_own(copy: Path) -> None:
    """Two that differ in it alone are no equal ones."""
    subprocess.run(["git", "apply", str(PAGE.parent / "extending" / "node.diff")], cwd=copy, check=True)
    for name, changes in ROUNDED.items():
        text = (copy / name).read_text(encoding="utf-8")
        for old, new in changes.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (copy / name).write_text(text, encoding="utf-8")
    write_units(copy, ", round(f16, down)")
    (copy / "up.yaml").write_text((copy / "minus.yaml").read_text().replace("down", "up"), encoding="utf-8")
    says(copy, [*CERTIFIED, ("prove minus.yaml up.yaml --solver bitwuzla --no-confirm", "equal: no; ")])


def write_units(copy: Path, more: str = "") -> None:
    """A unit with the node of the example, and two that compute the same; one with another multiplier. `more`:
    arguments of the node."""
    once, product = f"minus(a[0] * b[0]{more})", "minus(a[0] * b[0])"
    terms = {"minus": f"{once}, c", "turned": f"c, {once}", "thrice": f"minus(minus({once}{more}){more}), c",
             "flushed": "flushed(a[0] * b[0], -15), c"}  # fmt: skip
    for name, text in terms.items():
        (copy / f"{name}.yaml").write_text(MINUS.replace(f"{product}, c", text), encoding="utf-8")


def write_inputs(copy: Path) -> None:
    """Units with the operands of the example, an input of them, and a program that is one of the units."""
    once = "exact(a[0:2] * b[0:2], each(k in range(2), m[k]), c, c2)"
    turned = "exact(c2, c, a[0:2] * b[0:2], each(k in range(2), m[k]))"
    twice = "exact(r(exact(a[0:2] * b[0:2], each(k in range(2), m[k]), c)), c2)"
    assert ADDED.count(once) == 1
    for name, text in (("added", once), ("turned", turned), ("twice", twice)):
        (copy / f"{name}.yaml").write_text(ADDED.replace(once, text), encoding="utf-8")
    wide = ADDED.replace("e2m1", "f16").replace("e4m3", "f32")
    (copy / "wide.yaml").write_text(wide, encoding="utf-8")
    lacking = {name: value for name, value in INPUT.items() if name != "c2"}
    more = {"a": ["3f800000"], "b": ["3f800000"], "c": "00000000", "c2": "00"}
    rows = {"input": INPUT | {"d": SUM}, "lacking": lacking, "more": more | {"model": "ieee/fma/f32"}}
    for name, row in rows.items():
        (copy / f"{name}.jsonl").write_text(json.dumps({"model": "added.yaml"} | row) + "\n", encoding="utf-8")
    (copy / "device.sh").write_text(f"{sys.executable} -m mmaprobe.cli.main device added.yaml\n", encoding="utf-8")
    (copy / "device.py").write_text("def matmul(a, b, c):\n    return a @ b + c\n", encoding="utf-8")
    for name in "abd":
        np.save(copy / f"{name}.npy", np.full((2, 2), name == "d", dtype=ml_dtypes.float4_e2m1fn))


#: what the commands of a copy say, one after another in a process that loads its modules once
COMMANDS = """
import json, shlex, sys
from click.testing import CliRunner
from mmaprobe.cli.main import main
done = [CliRunner().invoke(main, shlex.split(command)) for command in json.load(sys.stdin)]
print(json.dumps([one.stdout + one.stderr for one in done]))
"""


def says(copy: Path, wanted: Sequence[tuple[str, str]]) -> None:
    """Commands of the copy say what is wanted of them."""
    commands = list(dict.fromkeys(command for command, _ in wanted))
    done = subprocess.run([sys.executable, "-c", COMMANDS], cwd=copy, input=json.dumps(commands), capture_output=True,
                          text=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    texts = dict(zip(commands, json.loads(done.stdout), strict=True))
    assert [(command, message, texts[command]) for command, message in wanted if message not in texts[command]] == []


def test_what_is_said_to_be_possible_is_shown() -> None:
    assert set(EXAMPLES) <= rows().keys()
    assert {name for name, (_, example) in rows().items() if ".diff" in example} < set(EXAMPLES)
