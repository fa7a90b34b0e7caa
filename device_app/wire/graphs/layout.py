"""Rules of operators that move numbers: what shape, and what content, their results have."""

from __future__ import annotations

from dataclasses import replace

from device_app.wire.graphs.sizes import NUMBER_LIMIT, Polynomial, Size, product, quotient
from device_app.wire.graphs.values import (
    CONTENT_LIMIT,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    RANK_LIMIT,
    SHOWN,
    KnownTensor,
    Node,
    Shape,
    joined,
    within,
)

KnownTensors = list[KnownTensor]
FAR = 2**31 - 1
"""An end of a slice from here on means the end of the axis."""
EXACT_FLOAT = 2**24
"""Whole numbers up to here are float32 as they are."""


def arithmetic(node: Node, first: KnownTensor, second: KnownTensor) -> tuple[Size, ...] | None:
    """The content of a sum, difference or product of sizes."""
    if first.content is None or second.content is None:
        return None
    length = max(len(first.content), len(second.content))
    if length > RANK_LIMIT or {len(first.content), len(second.content)} - {1, length}:
        return None
    ones = first.content * (length // len(first.content)) if first.content else ()
    others = second.content * (length // len(second.content)) if second.content else ()
    found: list[Size] = []
    for one, other in zip(ones, others, strict=True):
        size = one + other if node.operator == "Add" else one - other if node.operator == "Sub" else one * other
        if isinstance(size, int) and abs(size) > NUMBER_LIMIT:
            node.refuse("a size is beyond 2^62")
        found.append(size)
    return tuple(found)


def identity(node: Node) -> KnownTensors:
    """The same value."""
    return [node.given(0)]


def cast(node: Node) -> KnownTensors:
    """The same numbers in another type; whole numbers stay known in float32 while it holds them exactly."""
    value, to = node.given(0), node.attributes.get("to")
    if to not in SHOWN:
        node.refuse(f"it makes numbers of type {to}")
    keeps = value.content is not None and (
        to == value.element
        or (
            (value.element in (INT64, FLOAT) and to in (INT64, FLOAT, DOUBLE))
            and all(node.bounds(each)[1] <= EXACT_FLOAT and node.bounds(each)[0] >= 0 for each in value.content)
        )
    )
    return [replace(value, element=to, content=value.content if keeps else None, some=False)]


def shape(node: Node) -> KnownTensors:
    """The shape of what is given, or a part of it."""
    axes = node.given(0).shape
    start, end = node.attributes.get("start", 0), node.attributes.get("end", len(axes))
    sizes = axes[start:end]
    return [KnownTensor(INT64, (len(sizes),), sizes, of_mask=True)]


def reshape(node: Node) -> KnownTensors:
    """0 keeps the axis of the source, one -1 is what is left."""
    value, wanted = node.given(0), node.sizes(1)
    sizes: list[Size] = []
    open_at = None
    for place, size in enumerate(wanted):
        if size == -1:
            if open_at is not None:
                node.refuse("its shape has -1 twice")
            open_at = place
            sizes.append(1)
        elif size == 0:
            if place >= len(value.shape):
                node.refuse(f"its shape keeps axis {place} of {len(value.shape)}")
            sizes.append(value.shape[place])
        else:
            sizes.append(within(node, size, 1))
    if open_at is not None:
        left = quotient(value.count, product(tuple(sizes)))
        if left is None:
            node.refuse(f"shape {list(value.shape)} can't become {list(wanted)} whatever is fed")
        sizes[open_at] = left
    if product(tuple(sizes)) != value.count:
        node.refuse(f"shape {list(value.shape)} can't become {list(wanted)}")
    content = value.content if len(sizes) < 2 else None
    return [KnownTensor(value.element, tuple(sizes), content, some=value.some)]


def squeeze(node: Node) -> KnownTensors:
    """Without axes of size 1."""
    value = node.given(0)
    rank = len(value.shape)
    if len(node.inputs) > 1:
        axes = {node.axis(each, rank) for each in node.numbers(1)}
    else:
        if any(isinstance(size, Polynomial) for size in value.shape):
            node.refuse("which axes it takes away depends on what is fed")
        axes = {place for place, size in enumerate(value.shape) if size == 1}
    if any(value.shape[place] != 1 for place in axes):
        node.refuse(f"it takes away axes {sorted(axes)} of {list(value.shape)}")
    kept = tuple(size for place, size in enumerate(value.shape) if place not in axes)
    return [replace(value, shape=kept, content=value.content if len(kept) < 2 else None)]


def unsqueeze(node: Node) -> KnownTensors:
    """With axes of size 1 put in."""
    value, given = node.given(0), node.numbers(1)
    rank = len(value.shape) + len(given)
    places = {node.axis(each, rank) for each in given}
    if len(places) != len(given):
        node.refuse("it names an axis twice")
    rest = iter(value.shape)
    sizes = tuple(1 if place in places else next(rest) for place in range(rank))
    return [replace(value, shape=sizes, content=value.content if rank < 2 else None)]


def transpose(node: Node) -> KnownTensors:
    """Axes in another order."""
    value, order = node.given(0), node.attributes.get("perm", [])
    if sorted(order) != list(range(len(value.shape))):
        node.refuse(f"it orders {len(value.shape)} axes by {order}")
    return [KnownTensor(value.element, tuple(value.shape[place] for place in order))]


def concat(node: Node) -> KnownTensors:
    """One behind the other."""
    parts = [node.given(place) for place in range(len(node.inputs))]
    first = parts[0]
    axis = node.axis(node.attributes.get("axis", len(first.shape)), len(first.shape))
    for each in parts:
        if each.element != first.element or len(each.shape) != len(first.shape):
            node.refuse("its inputs are of different types or ranks")
        node.same(_without(each.shape, axis), _without(first.shape, axis), "beside the axis its inputs")
    length: Size = 0
    for each in parts:
        length = length + each.shape[axis]
    content: tuple[Size, ...] | None = None
    lengths = [len(each.content) for each in parts if each.content is not None]
    if len(first.shape) == 1 and len(lengths) == len(parts) and sum(lengths) <= CONTENT_LIMIT:
        content = tuple(size for each in parts for size in each.content or ())
    sizes = (*first.shape[:axis], length, *first.shape[axis + 1 :])
    return [KnownTensor(first.element, sizes, content, some=any(each.some for each in parts))]


def split(node: Node) -> KnownTensors:
    """Pieces of given sizes."""
    value, lengths = node.given(0), node.numbers(1)
    axis = node.axis(node.attributes.get("axis", 0), len(value.shape))
    if len(lengths) != node.outputs or min(lengths) < 1 or sum(lengths) != value.shape[axis]:
        node.refuse(f"it splits an axis of {value.shape[axis]} into {node.outputs} of {list(lengths)}")
    return [KnownTensor(value.element, (*value.shape[:axis], each, *value.shape[axis + 1 :])) for each in lengths]


def slices(node: Node) -> KnownTensors:
    """Parts of axes: any part of a fixed one, the rest from a place on of a free one."""
    value, starts, ends = node.given(0), node.numbers(1), node.sizes(2)
    rank = len(value.shape)
    axes = node.numbers(3) if node.maybe(3) is not None else tuple(range(len(starts)))
    steps = node.numbers(4) if node.maybe(4) is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        node.refuse("its starts, ends, axes and steps are not equally many")
    places = [node.axis(each, rank) for each in axes]
    if len(set(places)) != len(places):
        node.refuse("it names an axis twice")
    sizes, content = list(value.shape), value.content if rank == 1 else None
    for place, start, end, step in zip(places, starts, ends, steps, strict=True):
        size = sizes[place]
        if isinstance(size, int) and isinstance(end, int) and step:
            chosen = slice(start, end, step) if end > -FAR or step > 0 else slice(start, None, step)
            sizes[place] = _steps(*chosen.indices(size))
            content = content[chosen] if content is not None else None
            continue
        content = None
        whole = end == size or (isinstance(end, int) and end >= FAR)
        if step == 1 and start >= 0 and whole:
            sizes[place] = within(node, size - start, 0)
        elif not (step == -1 and start == -1 and isinstance(end, int) and end <= -FAR):
            node.refuse(f"it takes {start}:{end}:{step} of an axis of {size}, whose length depends on what is fed")
    return [KnownTensor(value.element, tuple(sizes), content)]


def pad(node: Node) -> KnownTensors:
    """Numbers before and after."""
    value, widths = node.given(0), node.numbers(1)
    filling = node.maybe(2)
    rank = len(value.shape)
    if len(widths) != 2 * rank or (widths and min(widths) < 0):
        node.refuse(f"it pads {rank} axes by {list(widths)}")
    if filling is not None and (filling.element != value.element or filling.count != 1):
        node.refuse("it pads with something else than one number of the same type")
    wide = (size + widths[place] + widths[place + rank] for place, size in enumerate(value.shape))
    return [KnownTensor(value.element, tuple(wide))]


def expand(node: Node) -> KnownTensors:
    """Broadcast to a shape."""
    value = node.given(0)
    wanted = tuple(within(node, each, 1) for each in node.sizes(1))
    return [KnownTensor(value.element, joined(node, value.shape, wanted))]


def span(node: Node) -> KnownTensors:
    """start, start + delta...: constant, or every whole number below a size."""
    contents = [node.given(place).content for place in range(3)]
    if any(each is None or len(each) != 1 for each in contents) or len({node.given(i).element for i in range(3)}) > 1:
        node.refuse("its bounds depend on what is fed")
    start, limit, delta = (each[0] for each in contents if each is not None)
    if isinstance(limit, Polynomial):
        if start != 0 or delta != 1:
            node.refuse(f"it counts to {limit} from {start} by {delta}")
        length: Size = limit
    elif isinstance(start, Polynomial) or not isinstance(delta, int) or not delta:
        node.refuse(f"it counts to {limit} from {start} by {delta}")
    else:
        length = _steps(start, limit, delta)
    least, most = node.bounds(length)
    if least < 0 or most > EXACT_FLOAT:
        node.refuse(f"it counts up to {most}, the limit is {EXACT_FLOAT}")
    return [KnownTensor(node.given(0).element, (length,))]


def gather(node: Node) -> KnownTensors:
    """Rows by number."""
    value, rows = node.given(0), _rows(node, 1)
    axis = node.axis(node.attributes.get("axis", 0), len(value.shape))
    content: tuple[Size, ...] | None = None
    if value.content is not None and rows.content is not None and len(rows.shape) < 2:
        length = len(value.content)
        places = [row for row in rows.content if isinstance(row, int) and -length <= row < length]
        if len(places) < len(rows.content):
            node.refuse(f"it takes places {list(rows.content)} of {length}")
        content = tuple(value.content[row] for row in places)
    return [KnownTensor(value.element, (*value.shape[:axis], *rows.shape, *value.shape[axis + 1 :]), content)]


def _rows(node: Node, place: int) -> KnownTensor:
    rows = node.given(place)
    if rows.element not in (INT32, INT64):
        node.refuse(f"its rows are {SHOWN[rows.element]}")
    return rows


def gather_nd(node: Node) -> KnownTensors:
    """Parts by several numbers each."""
    value, rows = node.given(0), _rows(node, 1)
    return [KnownTensor(value.element, (*rows.shape[:-1], *value.shape[_depth(node, value, rows) :]))]


def _depth(node: Node, value: KnownTensor, rows: KnownTensor) -> int:
    depth = rows.shape[-1] if rows.shape else 0
    if rows.element != INT64 or not isinstance(depth, int) or not 1 <= depth <= len(value.shape):
        node.refuse(f"its rows have shape {list(rows.shape)}, what they are of has {list(value.shape)}")
    return depth


def gather_elements(node: Node) -> KnownTensors:
    """Along an axis, a number for each place."""
    value, rows = node.given(0), _rows(node, 1)
    _beside(node, value, rows)
    return [KnownTensor(value.element, rows.shape)]


def _beside(node: Node, value: KnownTensor, rows: KnownTensor) -> None:
    axis = node.axis(node.attributes.get("axis", 0), len(value.shape))
    if len(value.shape) != len(rows.shape):
        node.refuse(f"its rows have {len(rows.shape)} axes, what they are of has {len(value.shape)}")
    node.same(_without(value.shape, axis), _without(rows.shape, axis), "beside the axis, rows and what they are of")


def scatter_nd(node: Node) -> KnownTensors:
    """Parts replaced, or added to."""
    value, rows, updates = node.given(0), _rows(node, 1), node.given(2)
    node.same(updates.shape, (*rows.shape[:-1], *value.shape[_depth(node, value, rows) :]), "updates and their places")
    return _scattered(node, value, updates)


def scatter_elements(node: Node) -> KnownTensors:
    """Along an axis, numbers replaced, or added to."""
    value, rows, updates = node.given(0), _rows(node, 1), node.given(2)
    _beside(node, value, rows)
    node.same(rows.shape, updates.shape, "updates and their places")
    return _scattered(node, value, updates)


def _scattered(node: Node, value: KnownTensor, updates: KnownTensor) -> KnownTensors:
    if updates.element != value.element:
        node.refuse("its updates are of another type")
    if (reduction := node.attributes.get("reduction", "none")) not in ("none", "add"):
        node.refuse(f"its reduction is {reduction}")
    return [KnownTensor(value.element, value.shape)]


def nonzero(node: Node) -> KnownTensors:
    """Which clicks are real: the one size that depends on what is fed, and on nothing but the mask."""
    value = node.given(0)
    if len(value.shape) != 1 or not value.of_mask or not value.some:
        node.refuse("it may ask only the mask of clicks, in one row that begins with 1, how large its result is")
    axis = f"real{len(node.free)}"
    node.free[axis] = value.count
    node.axes[axis] = (1, max(1, node.bounds(value.count)[1]))
    return [KnownTensor(INT64, (1, Polynomial.of(axis)))]


def _steps(start: int, end: int, step: int) -> int:
    """len(range(start, end, step)), however large."""
    return max(0, -((start - end) // step))


def _without(sizes: Shape, axis: int) -> Shape:
    return (*sizes[:axis], *sizes[axis + 1 :])
