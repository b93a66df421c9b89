"""The CSV file of a study. Each finished point has a row, which is written at once, so that a later run can continue an
interrupted one."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.files import NOT_UTF8, cannot_write, check_utf8, make_folder, open_claimed, write_whole
from mmaprobe.studies.study import Distribution

KEYS = ("study", "seed", "distribution", "drawn", "size", "series", "algorithm")


@dataclass(frozen=True)
class Point:
    """The subject of one row. `drawn`: the description of the numbers drawn (see `Study.drawn`)."""

    study: str
    seed: int
    distribution: Distribution
    drawn: str
    size: int
    series: str
    algorithm: str

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(str(getattr(self, name)) for name in KEYS)


class Table:
    """The rows of a CSV file. The constructor reads an existing file or begins a new one. Raises InputError for a file
    that is not a table of these measures."""

    def __init__(self, path: Path, measures: tuple[str, ...]) -> None:
        self.path, self.measures = path, measures
        self.rows: dict[tuple[str, ...], tuple[float, ...]] = {}
        make_folder(path.parent)
        try:
            text = path.read_text(encoding="utf-8", errors=NOT_UTF8) if path.exists() else ""
            check_utf8(text, str(path))
            header = _line((*KEYS, *measures))
            if len(text) < len(header) and header.startswith(text):  # a new file, or a file with a part of the header
                path.write_text(header, encoding="utf-8")
            else:
                self._read(text)
        except OSError as error:
            raise InputError(f"cannot be used: {error}", str(path)) from None

    def _read(self, text: str) -> None:
        whole = text[: text.rfind("\n") + 1]
        lines = list(csv.reader(io.StringIO(whole)))
        header = [*KEYS, *self.measures]
        if not lines or lines[0] != header:
            raise InputError(f"not a table of this study: its first line must be {','.join(header)}", str(self.path), 1)
        for number, row in enumerate(lines[1:], start=2):
            try:
                values = tuple(float(text) for text in row[len(KEYS) :])
            except ValueError:
                values = ()
            if len(row) != len(header) or not values:
                raise InputError("not a row of this table: delete it or the file", str(self.path), number)
            self.rows[tuple(row[: len(KEYS)])] = values
        if whole != text:  # a run was killed while it wrote a row
            os.truncate(self.path, len(whole.encode()))

    def find(self, point: Point) -> tuple[float, ...] | None:
        """The values of a point in the order of the measures; None for a point without a row."""
        return self.rows.get(point.key)

    def add(self, point: Point, values: tuple[float, ...]) -> None:
        """Add a finished point and write its row. Raises InputError if the file cannot be written."""
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(_line((*point.key, *(repr(value) for value in values))))
        except OSError as error:
            raise cannot_write(error, self.path) from None
        self.rows[point.key] = values

    def put_last(self, points: Sequence[Point]) -> None:
        """Move the rows of these points to the end of the file, in this order. Raises InputError if the file cannot be
        written."""
        last = {point.key: self.rows[point.key] for point in points}
        if list(self.rows)[len(self.rows) - len(last) :] == list(last):
            return
        self.rows = {key: values for key, values in self.rows.items() if key not in last} | last
        rows = ((*key, *(repr(value) for value in values)) for key, values in self.rows.items())
        write_whole(self.path, "".join(map(_line, ((*KEYS, *self.measures), *rows))))


@contextmanager
def claimed_table(path: Path, measures: tuple[str, ...]) -> Iterator[Table]:
    """A context with a table that no other run can change; a table without rows leaves no file. Raises InputError as
    `Table` does, and if another run has the table."""
    make_folder(path.parent)
    with open_claimed(path):
        table = Table(path, measures)
        try:
            yield table
        finally:
            if not table.rows:
                path.unlink(missing_ok=True)


def _line(fields: tuple[str, ...]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(fields)
    return stream.getvalue()
