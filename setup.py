"""The part of the build that pyproject.toml cannot state: in a source distribution, as in the repository, the folders
of mmaprobe/ are links to the folders beside it; the distribution's own tests need these links."""

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
