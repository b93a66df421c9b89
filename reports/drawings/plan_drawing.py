"""A drawing of a plan at one K. K runs from left to right; each sum that begins anew has a line with its products as
bars of tiles, products left over in another colour; to the right stand the additions of sums, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mmaprobe.reports.drawings.sheet import LETTER, MARGIN, SIZE, SMALL, Box, Drawing, Sheet, Text
from mmaprobe.reports.plan_sheet import stage_words
from mmaprobe.reports.words import operands_text
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.wording import counted, runs_of, shortened
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element, Index
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Plan, Products
from mmaprobe.smtmodel.plans.engine import Engine, Way
from mmaprobe.smtmodel.plans.plantext import named_texts
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import Words

NATURAL = 640.0  # the width in pixels where none is given
BAR, ROW = 16.0, 22.0  # the heights of a bar, and of a line of bars
STEP = 12.0  # pixels between two additions
MOST_LINES = 12  # the most lines; of more, those in the middle are left out
LAST = 2  # lines drawn at the end, where lines in the middle are left out
NARROW = 3.0  # pixels: the least width of a tile from which on tiles are separated by lines
ZEROS = ("+0", "-0")
WORDS = 8  # the most names of the plan that are listed with their texts
TEXT = 300  # the most characters of a plan's expression
LEFT_OVER = {"tail", "last", "last0", "last1", "head"}  # names of the parts with the products that fill no whole part


@dataclass(frozen=True)
class Use:
    """Successive tiles of one unit. `stretches`: the first product and the end of each stretch of K that the tiles
    take; `length`: the unit's length; `left_over`: whether these are products that fill no whole part; `lane`: the line
    of bars in the track, 0 unless earlier uses take the same products."""

    stretches: tuple[tuple[int, int], ...]
    tiles: int
    length: int
    left_over: bool
    lane: int = 0

    @property
    def first(self) -> int:
        return self.stretches[0][0]

    @property
    def text(self) -> str:
        return counted(self.tiles, "product") if self.length == 1 else f"{counted(self.tiles, 'tile')} of {self.length}"

    def meets(self, other: Use) -> bool:
        """Whether two uses take a common product."""
        return any(low < end and start < high for low, high in self.stretches for start, end in other.stretches)


@dataclass
class Track:
    """A sum that begins anew. `start`: the sum's first value in words; `uses`: the uses of units that add to it."""

    start: str
    uses: list[Use] = field(default_factory=list)

    @property
    def lanes(self) -> int:
        return max([use.lane for use in self.uses], default=0) + 1

    @property
    def shape(self) -> object:
        """A key that is equal for tracks which differ only in their position in K."""
        first = min([use.first for use in self.uses], default=0)
        moved = (tuple((low - first, high - first) for low, high in use.stretches) for use in self.uses)
        return self.start, tuple((*where, use.lane) for where, use in zip(moved, self.uses, strict=True))


@dataclass(frozen=True)
class Sum:
    """A value of a layout. `track`: the index of the value's track, None for a start without products; `start`: the
    value without products, in words."""

    track: int | None
    start: str = "+0"


class Layout(Engine[Sum]):
    """The tracks of one sum of all products, and the additions of tracks in order (`joins`): the second track of each
    pair is added to the first."""

    def __init__(self, products: Products, length: int) -> None:
        self.tracks: list[Track] = []
        self.joins: list[tuple[int, int]] = []
        self._parts: list[str] = []
        start = products.start
        text = ("-0" if start.negative else "+0") if isinstance(start, Constant) else "the sum before"
        if isinstance(start, Element):
            text = start.operand
        begin = Sum(None, text)
        if text not in ZEROS:
            begin = Sum(self._tracked(begin))
        self.end = products.stage.run(self, Span.of(length), begin)

    def zero(self, fmt: Format) -> Sum:
        return Sum(None)

    def tile(self, model: Model, words: Words, span: Span, start: Sum) -> Sum:
        return self.tiles(model, words, span, start)

    def tiles(self, model: Model, words: Words, span: Span, start: Sum) -> Sum:
        number = self._tracked(start)
        track = self.tracks[number]
        left_over = any(part in LEFT_OVER for part in self._parts)
        use = Use(tuple(_stretches(span)), -(-span.count // model.length), model.length, left_over)
        lane = 0
        while any(use.meets(other) for other in track.uses if other.lane == lane):
            lane += 1
        use = replace(use, lane=lane)
        before = next((other for other in track.uses[::-1] if other.lane == lane), None)
        if before is not None and (before.stretches[-1][1], before.length, before.left_over) == (
            use.first, use.length, left_over,
        ):  # fmt: skip
            stretches = (*before.stretches[:-1], (before.stretches[-1][0], use.stretches[0][1]), *use.stretches[1:])
            track.uses.remove(before)
            use = replace(use, stretches=stretches, tiles=before.tiles + use.tiles)
        track.uses.append(use)
        return Sum(number)

    def _tracked(self, value: Sum) -> int:
        if value.track is not None:
            return value.track
        self.tracks.append(Track(value.start))
        return len(self.tracks) - 1

    def rounded(self, values: Sequence[Sum], rounding: Rounding) -> Sum:
        into, *others = [Sum(self._tracked(value)) for value in values
                         if value.track is not None or value.start not in ZEROS] or values  # fmt: skip
        for other in others:
            assert into.track is not None
            assert other.track is not None
            self.joins.append((into.track, other.track))
        return into

    def lost(self, values: Sequence[Sum], total: Sum, rounding: Rounding) -> Sum:
        return Sum(None)  # errors of additions are not drawn, but stated in words

    def compensated(
        self, start: Sum, parts: Sequence[tuple[Span, str]], body: Callable[[Span], Sum], rounding: Rounding, by: Way
    ) -> Sum:
        for span, name in parts:
            with self.part(name):
                start = self.rounded([start, body(span)], rounding)
        return start

    def repeat(self, count: int, name: str, start: Sum, body: Callable[[Index, Sum], Sum]) -> Sum:
        with self.part(name):
            for number in range(count):
                start = body(Index(number), start)
        return start

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self._parts.append(name)
        yield
        self._parts.pop()


def _stretches(span: Span) -> Iterator[tuple[int, int]]:
    """The products of a span as stretches of K, each a first product and an end; adjacent stretches are joined."""
    start = span.start.offset
    if span.groups == 1 and span.step == 1:
        yield start, start + span.count
        return
    yield from ((low, high + 1) for low, high in runs_of(sorted(span.places)))


def plan_drawing(plan: Plan, length: int, width: float | None = None) -> Drawing:
    """A drawing of the sums of a plan at K = `length`. `width`: in pixels; None: the natural width. Raises
    ParameterError for a K that the plan does not take."""
    sheet = Sheet(NATURAL if width is None else width)
    title = f"{plan.reference}: {counted(length, 'product')}, {operands_text(plan)}"
    sheet.paragraph(title, "mp-title")
    notes = [plan.about] if plan.about else []
    named, d = named_texts(plan)
    words = [f"{name}: {text}" for name, text in named]
    notes += words if len(words) <= WORDS else [*words[: WORDS - 1], f"... {len(words) - WORDS + 1} names more"]
    notes.append(f"d: {shortened(d, TEXT)}")
    names = {node: name for name, node in plan.names.items() if isinstance(node, Products)}
    alike: dict[object, tuple[Layout, list[str], list[str]]] = {}
    for products in plan.sums:
        layout = Layout(products, length)
        stages = list(map(str, stage_words(products.stage)))
        key = tuple(track.shape for track in layout.tracks), tuple(layout.joins), tuple(stages)
        alike.setdefault(key, (layout, stages, []))[2].append(names.get(products, "in d"))
    spoken = []
    for layout, stages, own in alike.values():
        sheet.y += 6
        if len(plan.sums) > 1:
            sheet.paragraph(", ".join(own), "mp-soft")
        spoken.append(_Picture(layout, length, sheet).draw())
        left_over = any(use.left_over for track in layout.tracks for use in track.uses)
        for text in [*dict.fromkeys(stages), *["darker: products that fill no whole part"] * left_over]:
            sheet.paragraph(text, "mp-soft")
    sheet.y += 6
    for note in notes:
        sheet.paragraph(note)
    return Drawing([sheet], title, "\n".join([*spoken, *notes]), prefix="plan")


class _Picture:
    """The tracks of a layout on a sheet."""

    def __init__(self, layout: Layout, length: int, sheet: Sheet) -> None:
        self.layout, self.length, self.sheet = layout, length, sheet
        number = len(layout.tracks)
        shown = (
            range(number) if number <= MOST_LINES else [*range(MOST_LINES - LAST - 1), *range(number - LAST, number)]
        )
        self.shown = list(shown)
        self.joins = [join for join in layout.joins if join[0] in self.shown and join[1] in self.shown]
        names = [layout.tracks[k].start for k in self.shown]
        self.left = MARGIN + max(map(len, [*names, "k"])) * LETTER + 8
        self.right = sheet.right - STEP * (self._columns()[1] + 1) - 8

    def draw(self) -> str:
        """Draw at the sheet's current position. Returns a description."""
        layout, sheet = self.layout, self.sheet
        self._axis()
        middle: dict[int, float] = {}
        left_out = len(layout.tracks) - len(self.shown)
        for before, number in zip([-1, *self.shown], self.shown, strict=False):
            if number != before + 1:
                shapes = {layout.tracks[k].shape for k in range(before + 1, number)}
                alike = " alike" if len(shapes) == 1 else ""
                sheet.text(self.left, f"... {counted(left_out, 'sum')}{alike} ...", "mp-soft")
                sheet.y += ROW
            middle[number] = sheet.y + BAR / 2
            self._track(layout.tracks[number])
        self._additions(middle)
        sheet.y += 4
        every = counted(len(layout.tracks), "sum")
        return f"K = {self.length}: {every}, {counted(len(layout.joins), 'addition')} of sums"

    def _x(self, place: float) -> float:
        return self.left + (self.right - self.left) * place / self.length

    def _axis(self) -> None:
        sheet = self.sheet
        sheet.text(MARGIN, "k", "mp-small", y=sheet.y + 10)
        every = next(step for power in range(10) for step in (10**power, 2 * 10**power, 4 * 10**power, 8 * 10**power)
                     if step * 6 >= self.length)  # fmt: skip
        runs = sorted({use.first for k in self.shown for use in self.layout.tracks[k].uses})
        ticks = runs if 2 <= len(runs) <= 5 else list(range(0, self.length, every))
        labels = [Text(self._x(self.length), sheet.y + 10, str(self.length), "mp-small", "middle")]
        for place in ticks:
            label = Text(self._x(place), sheet.y + 10, str(place), "mp-small", "middle")
            if all(abs(label.x - other.x) > (label.width + other.width) / 2 + 4 for other in labels):
                labels.append(label)
        for label in labels:
            sheet.add(label)
        for place in [*ticks, self.length]:
            sheet.line(self._x(place), sheet.y + 12, self._x(place), sheet.y + 16)
        sheet.line(self.left, sheet.y + 16, self.right, sheet.y + 16)
        sheet.y += 20

    def _track(self, track: Track) -> None:
        sheet, top = self.sheet, self.sheet.y
        sheet.text(self.left - 6, track.start, "", "end", y=top + 12)
        uses = ", ".join(f"{use.text} from {use.first}" for use in track.uses)
        with sheet.group(f"from {track.start}: {uses or 'no products'}"):
            for use in track.uses:
                self._use(use, top + use.lane * (BAR + 1))
        sheet.y = top + (track.lanes - 1) * (BAR + 1) + ROW

    def _use(self, use: Use, top: float) -> None:
        sheet, css = self.sheet, "mp-carry0" if use.left_over else "mp-zero"
        for low, high in use.stretches:
            left, right = self._x(low), self._x(high)
            sheet.add(Box(left, top, max(right - left, 1.0), BAR, css))
            sheet.add(Box(left, top, max(right - left, 1.0), BAR, "mp-line"))
        if len(use.stretches) > 1:
            return
        (low, high), tile = use.stretches[0], self._x(use.length) - self._x(0)
        texts = [use.text, str(use.tiles) if use.length == 1 else f"{use.tiles} x {use.length}"]
        room = self._x(high) - self._x(low) - 6
        text = next((text for text in texts if len(text) * LETTER * SMALL / SIZE <= room), "")
        if use.tiles > 1 and tile >= NARROW:
            for place in range(low + use.length, high, use.length):
                sheet.line(self._x(place), top, self._x(place), top + BAR)
        if text and use.tiles > 1:
            at, wide = (self._x(low) + self._x(high)) / 2, len(text) * LETTER * SMALL / SIZE
            sheet.add(Box(at - wide / 2 - 2, top + 1, wide + 4, BAR - 2, "mp-paper"))
            sheet.add(Text(at, top + 12, text, "mp-small", "middle"))

    def _columns(self) -> tuple[list[int], int]:
        """The column of each addition, right of all earlier additions to either sum; and the number of columns."""
        free: dict[int, int] = {}
        columns = []
        for into, other in self.joins:
            column = max(free.get(into, 0), free.get(other, 0))
            columns.append(column)
            free[into] = free[other] = column + 1
        return columns, max(columns, default=-1) + 1

    def _additions(self, middle: dict[int, float]) -> None:
        """Draw for each addition the lines from both sums to its column, and a vertical line that joins them."""
        columns, _ = self._columns()
        at = {k: self._end(self.layout.tracks[k]) for k in self.shown}
        for (into, other), column in zip(self.joins, columns, strict=True):
            x = self.right + 8 + STEP * (column + 0.5)
            for number in (into, other):
                self.sheet.line(at[number], middle[number], x, middle[number])
                at[number] = x
            self.sheet.line(x, middle[into], x, middle[other], "mp-align")
            self.sheet.add(Box(x - 2.5, middle[into] - 2.5, 5, 5, "mp-one"))
        result = self.layout.end.track
        if result is not None and result in at:
            end = self.sheet.right - 2
            self.sheet.line(at[result], middle[result], end, middle[result])
            self.sheet.line(end - 4, middle[result] - 3, end, middle[result])
            self.sheet.line(end - 4, middle[result] + 3, end, middle[result])

    def _end(self, track: Track) -> float:
        return max([self._x(use.stretches[-1][1]) for use in track.uses if use.lane == 0], default=self.left)
