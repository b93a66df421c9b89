"""README and docs: every command that can run here prints what is shown, and every name in them exists."""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from mmaprobe.cli.config import load_defaults
from mmaprobe.cli.main import main
from mmaprobe.hypotheses.claim import build_claims
from mmaprobe.hypotheses.family import build_family
from mmaprobe.hypotheses.schema import build_question
from mmaprobe.queries.plans.rulefile import RuleFile
from mmaprobe.runner.wiring import PortFile
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.yamlfile import YamlFile, read_yaml, validate
from mmaprobe.smtmodel.families.parameters import PARAMETERS
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.gpus import GPUS
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from mmaprobe.studies.file import build_study
from tests import documentation, records
from tests.documentation import DRAWN, PAGES, PICTURES, Block, Terminal, blocks, commands, matches, played, update
from tests.marks import some_slow
from tests.pages.documented import REFERENCE, check_command, mentioned, prose
from tests.places import ROOT
from tests.tables.test_recordings import left_open

pytestmark = pytest.mark.pages

LANGUAGES = {"", "console", "sh", "yaml", "python", "toml", "text", "mermaid"}
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
WITH_CONSOLE = [
    name for name, page in zip(NAMES, PAGES, strict=True) if any(b.language == "console" for b in blocks(page))
]
pages = pytest.mark.parametrize("name", NAMES)


# -- what is shown is what is printed


SLOW = [f"docs/{name}.md" for name in ("my-rtl", "plans", "prove", "report", "studies/README", "tutorial")]
#: pages whose commands need what is not always there; `make test-torch` runs those that need PyTorch
NEEDS = {"docs/torch.md": ["torch"], "docs/jax.md": ["jax"], "docs/my-rtl.md": ["yosys", "iverilog", "cocotb"]}


@pytest.mark.parametrize("name", some_slow(WITH_CONSOLE, *SLOW))
def test_commands_print_what_is_shown(name: str, tmp_path: Path) -> None:
    for needed in NEEDS.get(name, []):
        if find_spec(needed) is None and shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed")
    folder, home = tmp_path / "clone", tmp_path / "home"
    folder.mkdir()
    wrong = []
    results = list(played(ROOT / name, Terminal(folder, home)))
    for position, (command, printed, status) in enumerate(results):
        asks = position + 1 < len(results) and results[position + 1][0].text == "echo $?"
        if status and not asks:
            wrong.append(f"{name}:{command.line}: {command.text}\nends with {status}, and no `echo $?` follows")
        if not matches(command.shown, printed):
            difference = difflib.unified_diff(command.shown, printed, "shown", "printed", lineterm="", n=1)
            wrong.append("\n".join([f"{name}:{command.line}: {command.text}", *difference]))
    kept = ROOT / PICTURES
    for picture in sorted((folder / PICTURES).iterdir()):
        if picture.read_bytes() != (kept / picture.name).read_bytes():
            wrong.append(f"{picture.name} is not what is kept in docs/pictures")
    assert not wrong, "\n\n".join([*wrong, f"to write what is printed: python -m tests.documentation --update {name}"])


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the process that has its modules, too: nobody holds the pipe of what it prints any more."""
    (tmp_path / "clone").mkdir()
    terminal = Terminal(tmp_path / "clone", tmp_path / "home")
    assert terminal.run("mmaprobe list families | head -n 1")
    monkeypatch.setattr(documentation, "LIMIT", 3)
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        terminal.run("mmaprobe order --device 'command:sleep 300' --formats f32,f32,f32 --length 8 --timeout 300")
    assert raised.value.__context__ is None  # that all of it has ended is not waited for in vain
    assert terminal.run("echo on") == ["on"]


def test_every_picture_is_drawn_and_shown() -> None:
    drawn, shown = set(), set()
    for page in PAGES:
        for block in blocks(page):
            if block.language == "console":
                names = {name for command in commands(block) for name in DRAWN.findall(command.text)}
                drawn |= {f"{name}{kind}.svg" for name in names for kind in ("", "-column")}
        shown |= set(re.findall(r'(?:src|srcset)="pictures/(\S+?)"', prose(page)))
    assert drawn == shown == {path.name for path in (ROOT / PICTURES).iterdir()}


# -- what is not run


@pages
def test_commands_that_are_not_run_exist(name: str) -> None:
    for arguments, fragment in mentioned(ROOT / name):
        try:
            check_command(arguments, fragment)
        except (click.UsageError, MmaprobeError) as error:
            text = error.format_message() if isinstance(error, click.UsageError) else str(error)
            pytest.fail(f"{name}: mmaprobe {' '.join(arguments)}: {text}")


@pages
def test_models_exist(name: str) -> None:
    page = ROOT / name
    texts = [prose(page), *(block.text for block in blocks(page) if block.language != "console")]
    for reference in REFERENCE.findall("".join(texts)):
        parse_reference(reference)


@pages
def test_make_targets_exist(name: str) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    text = (ROOT / name).read_text(encoding="utf-8")
    named = {one or other for one, other in re.findall(r"^make (\w+)|`make (\w+)`", text, re.M)}
    assert named <= targets


@pages
def test_extras_exist(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"(?:\.|mmaprobe)\[(\w+)\]", (ROOT / name).read_text(encoding="utf-8"))
    assert set(named) <= set(project["optional-dependencies"])


@pages
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), f"{name}: {target}"
        if anchor:
            assert anchor in {_anchor(line) for line in re.findall(r"^#+ (.*)$", prose(other), re.M)}, target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pages
def test_every_page_is_in_the_table_of_contents(name: str) -> None:
    contents = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    local = name.removeprefix("docs/")
    folder = local.partition("/")[0]
    if folder in ("studies", "gpus") and not local.endswith("/README.md"):  # which lists them
        contents = (ROOT / "docs" / folder / "README.md").read_text(encoding="utf-8")
        local = local.partition("/")[2]
    assert name in ("README.md", "docs/README.md") or f"]({local})" in contents


# -- other languages


def _every(language: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language == language]


def _place(block: Block) -> str:
    return f"{block.page.relative_to(ROOT)}:{block.line}"


def test_languages_are_known() -> None:
    assert {block.language for page in PAGES for block in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("block", _every("yaml"), ids=_place)
def test_yaml_loads(block: Block) -> None:
    if block.text.startswith("unit: "):
        assert parse_unit(block.text, _place(block))
        return
    if block.text.startswith("plan: "):
        assert parse_plan(block.text, _place(block), parse_reference)
    elif block.text.startswith("a: "):
        assert validate(read_yaml(block.text, _place(block)), PortFile).d
    elif block.text.startswith("rules: "):
        assert validate(read_yaml(block.text, _place(block)), RuleFile).elements
    else:
        load(read_yaml(block.text, _place(block)))


def load(file: YamlFile) -> object:
    if "hypotheses" in file.data:
        return build_question(file)
    if "curves" in file.data:
        return build_study(file)
    return build_family(file) if {"parameters", "candidates"} & set(file.data) else build_claims(file)


@pytest.mark.parametrize("block", _every("toml"), ids=_place)
def test_toml_loads(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(block.text)
    for name in main.commands:
        load_defaults(main, path, name)


@pytest.mark.parametrize("block", _every("python"), ids=_place)
def test_python_is_run(block: Block) -> None:
    assert block.name, f"{_place(block)}: a program has a file name, and a command of the page runs it"
    texts = [c.text for other in blocks(block.page) if other.language == "console" for c in commands(other)]
    assert any(f"python{mark}{block.name}" in text for text in texts for mark in (" ", ":", " -m pytest "))


# -- pages that speak of tables


def test_every_parameter_is_on_its_page() -> None:
    page = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8").splitlines()
    for name, row in PARAMETERS.items():
        start = f"| `{name}` | {row.meaning} | {row.admits()} |"
        assert sum(line.startswith(start) for line in page) == 1, f"docs/parameters.md needs: {start}"
    shown = [line.split("|")[1].strip(" `") for line in page if re.match(r"\| `\w+` \|", line)]
    assert shown == list(PARAMETERS)


def _architectures_page() -> str:
    return (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8")


def test_every_architecture_is_on_its_page() -> None:
    for arch in _architectures():
        assert f"`mmaprobe datasheet {arch} " in _architectures_page(), arch


def test_recorded_results_are_on_the_page_of_architectures() -> None:
    expected = set()
    for reference, rows in records.rows("recorded.jsonl.gz").items():
        gpus = ", ".join(f"{gpu} {count}" for gpu, count in sorted(Counter(row["gpu"] for row in rows).items()))
        counts = [sum(int(x, 16) != 0 for x in row["a"]) for row in rows]
        low, high = min(counts), max(counts)
        span = str(high) if low == high else f"{low} to {high}"
        expected.add(f"| `{reference}` | {gpus} | {span} | {left_open(reference)} |")
    lines = re.findall(r"^\| `[^`]+` \| \w+ \d+.*$", _architectures_page(), re.M)
    assert len(lines) == len(set(lines))
    assert set(lines) == expected


def test_no_page_denies_a_recording_that_is_there() -> None:
    """An architecture with rows is not said to have none, and the other way round."""
    recorded = {row.arch for row in INSTRUCTIONS.values() if row.recorded}
    titles = {arch: re.sub("^Rtx", "RTX", arch.replace("-", " ").title()) for arch in _architectures()}
    for arch, title in titles.items():
        title = {"riscv": "RISC-V"}.get(arch, title.upper() if arch.startswith("cdna") else title)
        section = _architectures_page().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert section, title
        assert ("no recording" in " ".join(section.split())) == (arch not in recorded), arch
    assert "rests on Xie alone" not in re.sub("Turing rests on Xie alone", "", _disagreements_page())


def _architectures() -> set[str]:
    return {row.arch for row in INSTRUCTIONS.values()}


def _disagreements_page() -> str:
    return " ".join((ROOT / "docs" / "disagreements.md").read_text(encoding="utf-8").split())


def test_numbers_of_vectors_are_on_the_page_of_architectures() -> None:
    recorded, computed = (
        Counter(reference.partition("/")[0] for reference, rows in records.rows(name).items() for _ in rows)
        for name in ("recorded.jsonl.gz", "mma_sim_public.jsonl.gz")
    )
    expected = {f"| {arch} | {recorded[arch]} | {computed[arch]} |" for arch in _architectures() & set(GPUS)}
    assert set(re.findall(r"^\| [\w-]+ \| \d+ \| \d+ \|$", _architectures_page(), re.M)) == expected


# -- the mechanism itself


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "...", "d"], ["a", "b", "c", "d"], True),
        (["a", "...", "d"], ["a", "d"], True),
        (["a", "...", "d"], ["a", "b"], False),
        (["in 1.2 s, by bitwuzla"], ["in 30.7 s, by bitwuzla"], True),
        (["in 1.2 s, by bitwuzla"], ["in 1.2 s, by z3"], False),
        (["in 1.2 s"], ["in 1.2 ms"], False),
        (["d = ... (f32)"], ["d = 3f80 (f32)"], True),
        (["d = 3f80"], ["d = 3f81"], False),
        ([], ["a"], False),
        (["a"], [], False),
    ],
)
def test_what_is_shown_stands_for_what_is_printed(shown: list[str], printed: list[str], same: bool) -> None:
    assert matches(shown, printed) == same


def _page(folder: Path, *lines: str) -> Path:
    page = folder / "page.md"
    page.write_text("\n".join(lines) + "\n")
    return page


def test_a_page_is_played_and_updated(tmp_path: Path) -> None:
    page = _page(
        tmp_path, "```text note.txt", "one", "```", "```console", "$ cat note.txt \\", "  note.txt", "wrong", "$ false",
        "$ echo $?", "...", "$ mmaprobe list studies | head -1", "other", "```", "end",
    )  # fmt: skip
    assert update(page) == 2
    lines = page.read_text().splitlines()
    assert lines[4:11] == ["$ cat note.txt \\", "  note.txt", "one", "one", "$ false", "$ echo $?", "..."]
    assert lines[12].startswith("architectures-compensated ")
    assert lines[13:] == ["```", "end"]
    assert update(page) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mmaprobe distinguisch carry-bits-volta", "no such command"),
        ("mmaprobe distinguish carry-bits-volta --timout 3", "No such option"),
        ("mmaprobe distinguish carry-bits-vlta", "carry-bits-vlta"),
        ("mmaprobe verify fp8-looses", "fp8-looses"),
        ("mmaprobe study valero", "valero"),
        ("mmaprobe separate nvidia-f17", "nvidia-f17"),
        ("mmaprobe prove --property fast volta/mma/m8n8k4.f32.f16.f16.f32", "fast"),
        ("mmaprobe list modles", "modles"),
        ("mmaprobe identify any --device command:'ssh host mmaprobe device volta/mma/m8n8k5'", "m8n8k5"),
        ("mmaprobe datasheet hoper -o x.html", "hoper"),
        ("mmaprobe distinguish carry-bits-volta --json > x && mmaprobe report x", "Missing option"),
    ],
)
def test_what_does_not_exist_is_found(tmp_path: Path, text: str, message: str) -> None:
    found = []
    for arguments, fragment in mentioned(_page(tmp_path, "```sh", text + "   # why", "```")):
        try:
            check_command(arguments, fragment)
        except (click.UsageError, MmaprobeError) as error:
            found.append(error.format_message() if isinstance(error, click.UsageError) else str(error))
    assert len(found) == 1
    assert message in found[0]


def test_fragments_and_placeholders_are_admitted(tmp_path: Path) -> None:
    page = _page(tmp_path, "`mmaprobe --quiet COMMAND`, `mmaprobe report`, `mmaprobe study NAME -o DIR`, `mmaprobe`")
    found = list(mentioned(page))
    assert len(found) == 4
    for arguments, fragment in found:
        check_command(arguments, fragment)
