"""JUnit XML, for continuous integration: each vector is a test that compares the model with the observed result."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from mmaprobe.queries.compare.observed import NOTHING, ObservedVector
from mmaprobe.reports.exports.export import Export
from mmaprobe.reports.words import explain_command

_FORBIDDEN = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 forbids


def suite(rows: Sequence[ObservedVector], name: str, fault: str = "") -> Export:
    """One test suite. A vector without `d` is skipped; a vector whose `d` differs from the model's result fails, and
    shows both. A fault of the file is a test with an error, as is a file without any `d`."""
    failures, skipped = (sum(row.agrees is state for row in rows) for state in (False, None))
    fault = fault or (NOTHING if skipped == len(rows) else "")
    counts = {"tests": len(rows) + bool(fault), "failures": failures, "errors": int(bool(fault)), "skipped": skipped}
    attributes = {"name": _text(name), **{key: str(count) for key, count in counts.items()}}
    root = ET.Element("testsuites", {key: str(count) for key, count in counts.items()})
    group = ET.SubElement(root, "testsuite", attributes)
    for row in rows:
        vector = row.vector
        called = f"line {vector.line}" if vector.id is None else str(vector.id)
        case = ET.SubElement(group, "testcase", {"classname": _text(row.model.reference), "name": _text(called)})
        if row.agrees is None:
            ET.SubElement(case, "skipped", {"message": "nothing was observed: the vector has no d"})
        elif not row.agrees:
            failure = ET.SubElement(case, "failure", {"message": row.mismatch_text, "type": "mismatch"})
            failure.text = _text(explain_command(row, name))
    if fault:
        case = ET.SubElement(group, "testcase", {"classname": _text(name), "name": "the file"})
        ET.SubElement(case, "error", {"message": _text(fault), "type": "file"})
    ET.indent(root)
    return Export(ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _text(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
