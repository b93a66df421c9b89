"""Completion, help, colours, quiet and verbose, and defaults from a file."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from mmaprobe.cli.commands.explain import terminal
from mmaprobe.cli.completion import PROGRAM, SHELLS, VARIABLE
from mmaprobe.cli.config import ENVIRONMENT
from mmaprobe.cli.main import main
from mmaprobe.cli.manual import manual
from mmaprobe.hypotheses.claim import claims
from mmaprobe.hypotheses.family import families
from mmaprobe.hypotheses.library import library
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.inputs.restrictions import RESTRICTIONS, WINDOW, parse_inputs
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.studies.file import studies
from tests.places import DOCS, ROOT

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
ROW = {"model": VOLTA, "a": ["3c00"], "b": ["3c00"], "c": "3f800000", "d": "40000000"}


def run(*arguments: str, code: int = 0, config: str = "") -> Result:
    result = CliRunner().invoke(main, list(arguments), env={ENVIRONMENT: config})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


# -- completion


def completed(*words: str) -> list[str]:
    *before, incomplete = words
    return [item.value for item in ShellComplete(main, {}, PROGRAM, VARIABLE).get_completions(before, incomplete)]


def test_names_are_completed() -> None:
    volta = volta_models()
    assert completed("prove", "volta/") == volta
    assert completed("prove", VOLTA, "volta/") == volta
    assert completed("explain", "volta/") == completed("device", "volta/") == volta
    assert completed("explain", VOLTA, "{}", "--against", "volta/") == volta
    assert completed("identify", "") == sorted(families())
    assert completed("separate", "nvidia-f1") == ["nvidia-f16"]
    assert completed("study", "") == sorted(studies())
    assert set(completed("distinguish", "carry-bits-a")) == {
        name for name in library() if name.startswith("carry-bits-a")
    }
    assert "hopper" in completed("datasheet", "hop")
    assert completed("verify", "ootomo-not-worse-f") == [
        one for one in claims() if one.startswith("ootomo-not-worse-f")
    ]
    assert "--timeout" in completed("prove", "--t")
    assert "distinguish" in completed("dist")


def test_what_is_no_name_may_be_a_file() -> None:
    [item] = ShellComplete(main, {}, PROGRAM, VARIABLE).get_completions(["distinguish"], "./my")
    assert (item.value, item.type) == ("./my", "file")


FILES = {"A B [C]", "A B D1 D2", "ANSWERS", "C", "DIR", "FILE", "OUT", "RESULTS...", "VECTOR"}


@pytest.mark.parametrize("name", sorted(main.commands))
def test_files_and_models_are_completed_wherever_they_stand(name: str) -> None:
    command = main.commands[name]
    context = click.Context(command)
    for parameter in command.params:
        shown = parameter.make_metavar(context) if parameter.metavar is None else parameter.metavar
        items = parameter.shell_complete(context, "volta/")
        if shown in FILES:
            assert {item.type for item in items} <= {"file", "dir"}, parameter.name
            assert items, parameter.name
        if "MODEL" in shown:
            assert volta_models() == [item.value for item in items], parameter.name


def volta_models() -> list[str]:
    return sorted(one for one in INSTRUCTIONS if one.startswith("volta/"))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_of_the_shell(shell: str, tmp_path: Path) -> None:
    script = run("completion", shell).stdout
    assert f"{VARIABLE}={shell}_complete" in script
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"no {shell} to read the script")
    path = tmp_path / "script"
    path.write_text(script)
    subprocess.run([program, "-n", str(path)], check=True)


# -- help, colours


def test_the_list_of_commands_says_whole_sentences() -> None:
    lines = run("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert len(lines) == len(main.commands)
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


def test_the_man_page_is_what_help_says() -> None:
    page = DOCS / "mmaprobe.1"
    assert page.read_text(encoding="utf-8") == manual(), "`make man` writes it"


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_help_has_an_example(name: str) -> None:
    assert f"\n  mmaprobe {name} " in run(name, "--help").stdout.partition("\n")[2]


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_option_says_what_it_does(name: str) -> None:
    for parameter in main.commands[name].params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.name


@pytest.mark.parametrize("name", ["distinguish", "prove"])
def test_every_restriction_of_inputs_is_in_the_help(name: str) -> None:
    shown = re.sub(r"\s+|-(?=\s)", "", run(name, "--help").stdout)
    for word in RESTRICTIONS:
        parse_inputs(word)
        assert word in shown
    assert WINDOW in shown
    with pytest.raises(UnknownNameError):
        parse_inputs("restricted")
    with pytest.raises(ParameterError, match="admit none"):
        parse_inputs("special, finite")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("value", "welcome"), [(None, True), ("", True), ("1", False)])
def test_colours(value: str | None, welcome: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """https://no-color.org: present and not empty."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    assert terminal(Terminal())[1] is welcome
    assert terminal(io.StringIO())[1] is False


# -- misspelt names


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prve",), "Did you mean 'prove'?"),
        (("list", "modles"), "Did you mean 'models'?"),
        (("export", "rows.jsonl", "--format", "juint"), "'fpcore'. Did you mean 'junit'?"),
        (("export", "rows.jsonl", "--format", "sv"), "a kind of file: verilog, coverage, memh, cocotb write it"),
        (("prove", VOLTA, "--property", "order-independant"), "Did you mean 'order-independent'?"),
        (("prove", VOLTA, VOLTA, "--slover", "z3"), "No such option '--slover'. (Did you mean one of: '--solver'"),
        (("run", "rows.jsonl", "--device", "cuda:m16n8k16.f32.f16.f16.f23"), "did you mean 'mma/m16n8k16.f32.f16.f16."),
        (("list", "Ada"), "Did you mean 'ada-lovelace'?"),
        (("list", "4090"), "Did you mean 'RTX 4090'?"),
        (("identify", "Ada", "--device", f"model:{VOLTA}"), "or name a GPU of `mmaprobe list gpus`"),
        (("prove", "ada/mma/m16n8k16.f32.f16.f16.f32", VOLTA), "'ada-lovelace/mma/m16n8k16.f32.f16.f16.f32'?"),
        (("device", "cuda:hoper/mma/m16n8k16.f32.f16.f16.f32"), "did you mean 'hopper/mma/m16n8k16.f32.f16.f16.f32'?"),
    ],
)  # fmt: skip
def test_a_misspelt_name_is_told_the_nearest(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    words = tuple(str(tmp_path / word) if word == "rows.jsonl" else word for word in words)
    assert message in run(*words, code=2).stderr


def test_the_option_that_goes_with_a_family_says_so() -> None:
    assert re.search(r"--model MODEL +With FAMILY: take formats", run("identify", "--help").output)
    assert re.search(r"--model MODEL +Take formats", run("separate", "--help").output)  # which always has one


def test_what_is_near_nothing_is_told_what_there_is() -> None:
    answer = run("export", "rows.jsonl", "--format", "xyzzy", code=2).stderr
    assert "'xyzzy' is not one of 'csv'" in answer
    assert "Did you mean" not in answer


@pytest.mark.parametrize("command", ["evaluate", "export", "run"])
@pytest.mark.parametrize("text", ["", "{"])
def test_a_file_that_gives_nothing_is_bad_input(command: str, text: str, tmp_path: Path) -> None:
    (path := tmp_path / "rows.jsonl").write_text(text)
    rest = {"export": ("--format", "csv"), "run": ("--device", f"model:{VOLTA}")}.get(command, ())
    answer = run(command, str(path), *rest, code=2)
    wrong = (
        "1: not JSON: Expecting property name enclosed in double quotes at column 2"
        "; vectors are JSON objects, one a line"
        if text
        else " the file has no vector"
    )
    assert answer.stderr == f"error: {path}:{wrong}\n"  # and nothing about 0 rows
    assert answer.stdout == ""


@pytest.mark.parametrize(("name", "timed"), [("distinguish", "each pair of models"), ("prove", "the whole proof"),
                         ("verify", "each case"), ("separate", "all pairs together"),
                         ("identify", "everything together")])  # fmt: skip
def test_every_help_says_what_the_time_is_for(name: str, timed: str) -> None:
    assert f"Seconds for {timed}." in re.sub(r"\s+", " ", run(name, "--help").stdout)


# -- quiet and verbose


def test_quiet_and_verbose(tmp_path: Path) -> None:
    path, store = tmp_path / "rows.jsonl", str(tmp_path / "store.sqlite")
    path.write_text(json.dumps({**ROW, "d": "40000001"}) + "\n")
    assert "observed 40000001" in run("evaluate", str(path), code=1).stderr
    quiet = run("--quiet", "evaluate", str(path), "--json", code=1)
    assert quiet.stderr == ""
    assert json.loads(quiet.stdout)["mismatches"] == 1
    assert "no such file" in run("-q", "evaluate", "none.jsonl", code=2).stderr
    small = f"{VOLTA}@length=2,block=2,fraction_bits=6"
    proof = ("prove", small, f"{small},carry_bits=4", "--store", store)
    plain, loud = (run(*words, *proof, "--fresh").stderr for words in ((), ("--verbose",)))
    assert len(loud.splitlines()) > len(plain.splitlines())
    assert "exclude" in run("-q", "-v", "list", "models", code=2).stderr


# -- defaults from a file


def config(folder: Path, text: str) -> str:
    path = folder / "config.toml"
    path.write_text(text)
    return str(path)


def test_defaults_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    wanted = "ampere/mma/m16n8k16.f32.f16.f16.f32"
    text = f'timeout = 5\nmodel = "{VOLTA}"\n[evaluate]\nmodel = "{wanted}"\njson = true\n'
    document = json.loads(run("evaluate", str(path), config=config(tmp_path, text)).stdout)
    assert [one["model"] for one in document["models"]] == [wanted]
    assert document["produced"]["defaults"] == str(tmp_path / "config.toml")
    given = run("evaluate", str(path), "--model", VOLTA, config=config(tmp_path, text))  # the command line prevails
    assert [one["model"] for one in json.loads(given.stdout)["models"]] == [VOLTA]
    assert "defaults" not in json.loads(run("evaluate", str(path), "--json").stdout)["produced"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timeot = 5", "1: timeot: unknown option 'timeot'; did you mean 'timeout'?"),
        ("\n[prve]\ntimeout = 5", "2: prve: unknown command 'prve'; did you mean 'prove'?"),
        ("[prve]", "1: prve: unknown command 'prve'; did you mean 'prove'?"),
        ("timeout = 5\n[ verify ]\ntimeout = 6\n[prove]\n'timeot' = 5", "5: timeot: unknown option 'timeot'; did you"),
        ("[prove", " not TOML"),
        ('timeout = "soon"', "1: timeout: 'soon' is not"),
        ("[prove]\ntimeout = [5]", "2: timeout: [5] is not a number"),
        ("timeout = -1", "1: timeout: -1"),
        ("[prove]\nconfirm = [true]", "2: confirm: [True] is not a value of this option"),
        ("store = 5", "1: store: 5 is not a value of this option; text is in quotes"),
        ('[verify]\nsolver = "zz3"', "2: solver: 'zz3' is not one of"),  # of another command than the one given
        ("[prove.deep]\nx = 1", "1: deep: unknown option"),
    ],
)
def test_bad_defaults_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = config(tmp_path, text)
    assert f"error: {path}:{message}" in run("prove", VOLTA, VOLTA, config=path, code=2).stderr


def test_where_the_file_is(tmp_path: Path) -> None:
    missing = run("list", "models", config=str(tmp_path / "none.toml"), code=2)
    assert "cannot be read" in missing.stderr
    folder = tmp_path / "mmaprobe"
    folder.mkdir()
    config(folder, "timeot = 5")
    environment = {key: value for key, value in os.environ.items() if key != ENVIRONMENT}
    command = [sys.executable, "-m", "mmaprobe.cli.main", "list", "models"]
    done = subprocess.run(
        command, env={**environment, "XDG_CONFIG_HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "timeot" in done.stderr


def test_citation_and_changes_are_of_this_version() -> None:
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_what_is_to_be_cited_can_be_found() -> None:
    """The papers by the identifiers that the page of papers links, each with all that the format asks for."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "version", "type"} <= cited.keys()
    page = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for paper in cited["references"]:
        assert {"type", "title", "authors", "year"} <= paper.keys()
        assert all({"given-names", "family-names"} == author.keys() for author in paper["authors"])
        assert f'["{paper["title"]}"](https://doi.org/{paper["doi"]})'.lower() in page.lower()
