"""The pages of docs/gpus, one for each GPU name: `python -m benchmarks.gpu_pages`."""

from __future__ import annotations

from pathlib import Path

from mmaprobe.reports.gpu_page import pages
from mmaprobe.smtmodel.base.progress import Pieces

FOLDER = Path(__file__).parents[1] / "docs" / "gpus"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    found = pages(Pieces(lambda text: None, "sheets"))
    for name, text in found.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for old in {path.name for path in FOLDER.glob("*.md")} - set(found):
        (FOLDER / old).unlink()


if __name__ == "__main__":
    main()
