"""What pyproject.toml cannot say: in a source distribution the folders of mmaprobe/ are links to those beside it, as in
the repository, so that it passes its own tests."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist


class Linked(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        for link in Path("mmaprobe").iterdir():
            if link.is_symlink():
                copy = Path(base_dir, link)
                shutil.rmtree(copy, ignore_errors=True)
                copy.symlink_to(link.readlink())


setup(cmdclass={"sdist": Linked})
