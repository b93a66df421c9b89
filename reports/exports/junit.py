"""What `evaluate` found as JUnit's XML, which continuous integration shows as tests."""

from __future__ import annotations

from xml.etree import ElementTree

from mmaprobe.documents.devices import Evaluate

SHOWN = 10  # mismatches in the text of a failure


def junit(document: Evaluate, file: str) -> str:
    """A suite with a test for each model of the file: failed where a row is not the model's, skipped where no row has
    an observed result."""
    counts = document.models
    skipped = [one for one in counts if one.unobserved == one.rows]
    failed = [one for one in counts if one.mismatches]
    suite = ElementTree.Element(
        "testsuite", name=file, tests=str(len(counts)), failures=str(len(failed)), skipped=str(len(skipped)), errors="0"
    )
    for one in counts:
        test = ElementTree.SubElement(suite, "testcase", classname=file, name=one.model)
        if one in skipped:
            ElementTree.SubElement(test, "skipped", message="no row has an observed result d")
        elif one.mismatches:
            message = f"{one.mismatches} of {one.rows - one.unobserved} results are not the model's"
            failure = ElementTree.SubElement(test, "failure", message=message, type="mismatch")
            failure.text = "".join(
                f"line {row.line}: observed {row.observed}, the model gives {row.predicted}\n"
                for row in [row for row in document.first_mismatches if row.model == one.model][:SHOWN]
            )
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
