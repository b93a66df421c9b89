"""The documentation as the tests see it: its blocks, the commands in them, and what these print.

A ```console block is a terminal. `$ ` begins a command; a line that ends in a backslash goes on. The other lines
are what the command prints on both streams: `...` alone on a line stands for any lines, `...` in a line for any text of
it; times (`1.2 s`) equal each other, and blank lines at the end do not count. A command must end with 0, or be followed
by `$ echo $?`. Commands of one file run in one folder, in order. A fence with a second word, ```python unit.py, is a
file that is in that folder.

`python -m tests.documentation --update [FILE...]` writes what the commands print into the blocks where it differs.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from mmaprobe.smtmodel.base.folders import cache_folder
from tests.places import ROOT
from tests.preloaded import client

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LIMIT = 120  # seconds for one command
#: engines race, and the winner chooses the vector: here one answers alone, so that vectors are the same everywhere
DEFAULTS = 'solver = "bitwuzla"\n'
TIME = re.compile(r"\b\d+(\.\d+)? (s|ms|min)\b")
ANY = "..."
PICTURES = Path("docs", "pictures")  # what commands draw here is kept, and compared
DRAWN = re.compile(rf"--svg {PICTURES}/(\S+)\.svg")
COLUMN = rf"--width 85 --svg {PICTURES}/\1-column.svg"  # what narrow windows show: each is drawn once more like this


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and file name, the number of its first line, its lines."""

    page: Path
    line: int
    language: str
    name: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


@dataclass(frozen=True)
class Command:
    """A command, the number of the line it starts on, and the numbers (from, to) of the lines it is shown to print."""

    text: str
    line: int
    start: int
    shown: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    language = name = ""
    inside: list[str] | None = None
    start = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```") and inside is None:
            language, _, name = line[3:].strip().partition(" ")
            inside, start = [], number + 1
        elif line.startswith("```"):
            assert inside is not None
            found.append(Block(page, start, language, name, tuple(inside)))
            inside = None
        elif inside is not None:
            inside.append(line)
    assert inside is None, f"{page}: a fence is not closed"
    return found


def commands(block: Block) -> list[Command]:
    """The commands of a console block, each with what it is shown to print."""
    found: list[Command] = []
    lines = list(enumerate(block.lines, block.line))
    while lines:
        number, line = lines.pop(0)
        assert line.startswith("$ "), f"{block.page}:{number}: a console block starts with a command"
        text = line[2:]
        while text.endswith("\\"):
            text = text + "\n" + lines.pop(0)[1]
        start = lines[0][0] if lines else block.line + len(block.lines)
        shown: list[str] = []
        while lines and not lines[0][1].startswith("$ "):
            shown.append(lines.pop(0)[1])
        found.append(Command(text, number, start, tuple(shown)))
    return found


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether the lines shown stand for the lines printed."""
    parts = []
    shown, printed = _without_blank_end(shown), _without_blank_end(printed)
    for line in shown:
        if line.strip() == ANY:
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(part) for part in _timeless(line).split(ANY)) + r"\n")
    return re.fullmatch("".join(parts), "".join(f"{_timeless(line)}\n" for line in printed)) is not None


def _without_blank_end(lines: Sequence[str]) -> list[str]:
    return "\n".join(lines).rstrip().splitlines()


def _timeless(line: str) -> str:
    return TIME.sub(r"T \2", line.rstrip())


@dataclass
class Terminal:
    """A folder like the root of a clone, in which commands run one after another, with a home of their own."""

    folder: Path
    home: Path
    status: int = 0
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("tests", "hypotheses", "examples"):
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / PICTURES).mkdir(parents=True)
        programs, config = self.home / "bin", self.home / "config" / "mmaprobe"
        for folder in (programs, config):
            folder.mkdir(parents=True)
        (config / "config.toml").write_text(DEFAULTS)
        compiled, cache = cache_folder() / "compiled", self.home / "cache" / "mmaprobe"
        compiled.mkdir(parents=True, exist_ok=True)
        cache.mkdir(parents=True)
        (cache / "compiled").symlink_to(compiled)  # libraries are built once for all pages
        program = programs / "mmaprobe"
        program.write_text(client())
        program.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MMAPROBE_", "XDG_"))}
        self.environment = kept | {
            "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT), "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_CACHE_HOME": str(self.home / "cache"), "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
        }  # fmt: skip

    def run(self, text: str) -> list[str]:
        """The lines that a command prints. `status` is what it ended with. A command that is not done after `LIMIT`
        seconds is ended with all that it started. Raises TimeoutExpired."""
        process = subprocess.Popen(
            ["bash", "-c", f"(exit {self.status})\n{text}\n"], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
            start_new_session=True,
        )  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=LIMIT)  # until nobody can write any more
            raise
        self.status = process.returncode
        return printed.splitlines()


def played(page: Path, terminal: Terminal) -> Iterator[tuple[Command, list[str], int]]:
    """Every command of a page with what it printed and its exit code; files of the page are written on the way."""
    for block in blocks(page):
        if block.name:
            (terminal.folder / block.name).write_text(block.text, encoding="utf-8")
        for command in commands(block) if block.language == "console" else ():
            printed = terminal.run(command.text)
            yield command, printed, terminal.status
            if DRAWN.search(command.text):
                printed = terminal.run(DRAWN.sub(COLUMN, command.text))
                assert terminal.status == 0, f"{page}:{command.line}: for a column: {printed}"


def update(page: Path) -> int:
    """Write what commands print into a page, where it differs from what is shown, and keep its pictures; the number of
    changes."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as home:
        results = list(played(page, Terminal(Path(folder), Path(home))))
        for picture in (Path(folder) / PICTURES).iterdir():
            shutil.copy(picture, ROOT / PICTURES)
    lines = page.read_text(encoding="utf-8").splitlines()
    changed = [(command, printed) for command, printed, _ in results if not matches(command.shown, printed)]
    for command, printed in reversed(changed):
        printed = [line.rstrip() for line in _without_blank_end(printed)]
        lines[command.start - 1 : command.start - 1 + len(command.shown)] = printed
    page.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(changed)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--update"]:
        sys.exit(__doc__)
    for wanted in [Path(name).resolve() for name in sys.argv[2:]] or PAGES:
        print(f"{wanted.relative_to(ROOT)}: {update(wanted)} outputs changed")
