"""A parameter that is one of a few words."""

from __future__ import annotations

from typing import Any

import click

from smtmodel.errors import nearest


class Choice(click.Choice[str]):
    """One of a few words; a misspelt one is told the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = nearest(str(value), map(str, self.choices))
            self.fail(error.message + (f" Did you mean {near!r}?" if near else ""), param, ctx)
