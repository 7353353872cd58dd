"""The pickler of the object graph, and its way back.

One C pickler, protocol 5, walks all that is saved in one go: what was one object stays one object. Only a few kinds are
taken out of its hands: arrays (``_memory``), functions and classes of the notebook (``_functions``), and *inputs*,
large
things that the notebook makes again and that are saved by name as long as they are unchanged.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from .._deep import deeply
from ..errors import ReplayError
from ._blocks import Block, Layout, Look, payload
from ._functions import Definition, Definitions
from ._homes import allocate, buffer_at, look_at, settle
from ._memo import memoized
from ._memory import Memory
from ._pickler import GraphPickler
from ._sets import odd_sets, put_tables

__all__ = ["Captured", "Definitions", "capture", "content_digest", "restore"]

Namespace = dict[str, Any]


@dataclass(slots=True)
class Captured:
    """A graph, ready to be stored.

    It looks at the memory of the caller's arrays: while it lives, none of them can be resized, and what they hold is
    what is stored.

    Attributes
    ----------
    stream : bytes
        The pickle stream.
    tables : bytes
        Pickled layouts, looks and definitions.
    blocks : list of Block
        What lies beside the stream; those of inputs have no data.
    joining : set of str
        Inputs that share memory with the graph in a way that only saving them too can keep.
    """

    stream: bytes
    tables: bytes
    blocks: list[Block]
    joining: set[str]
    _pickler: GraphPickler

    def met(self) -> dict[int, Any]:
        """Return the mutable objects inside that are no plain containers, by ``id``."""
        return self._pickler.met()

    def has_met(self, objects: Iterable[Any]) -> bool:
        """Whether one of some objects that live is among those, without making a list of them."""
        return self._pickler.has_met(objects)

    def payloads(self) -> Iterator[memoryview]:
        """Yield the bytes of each block as they are stored; empty for one that an input holds.

        They are the bytes of the array itself, but for two kinds, of which a copy is made when its turn comes: the
        array of a variable in Fortran order, which any HDF5 reader shall find by its rows, and a thin view with gaps.
        ``Block.fill`` needs no copy for these either.
        """
        return map(payload, self.blocks)


def capture(graph: Any, *, definitions: Definitions, inputs: Mapping[str, Any], places: Mapping[str, Any]) -> Captured:
    """Serialise a graph without copying its arrays.

    Not copied are arrays of numbers in any order and with any gaps, CPU tensors, and buffers of ``LARGE`` bytes or more
    that objects offer to pickle (Arrow columns). Copied are tensors of other devices, arrays of objects, and ``bytes``,
    ``bytearray`` and ``str``, which pickle puts into its stream.

    Parameters
    ----------
    graph : object
        Root; everything reachable is saved once.
    definitions : Definitions
        Knows the functions and classes of the notebook.
    inputs : mapping of str to object
        Objects to be saved by name only.
    places : mapping of str to object
        Top-level variables, to name their arrays.

    Raises
    ------
    Exception
        Whatever the pickler or a foreign ``__reduce__`` raises; ``culprit`` finds where.
    """
    return deeply(lambda: _capture(graph, definitions, inputs, places))


def _capture(graph: Any, definitions: Definitions, inputs: Mapping[str, Any], places: Mapping[str, Any]) -> Captured:
    memory = Memory(dict(inputs))
    buffer = io.BytesIO()
    pickler = GraphPickler(buffer, memory, definitions, inputs)
    pickler.dump(graph)
    stream = buffer.getvalue()
    if tables_of_sets := odd_sets(stream, lambda: memoized(pickler)):
        pickler.dump(tables_of_sets)
        stream = buffer.getvalue()
    names = {id(value): name for name, value in places.items() if type(value) is np.ndarray}
    memory.check_apart(pickler.loose)
    blocks, looks, joining = memory.blocks(names)
    rows = [block.layout.row() for block in blocks], [look.row() for look in looks]
    tables = pickle.dumps((*rows, pickler.buffers, pickler.used), protocol=5)
    return Captured(stream, tables, blocks, joining, pickler)


def size_of(value: Any, *, definitions: Definitions) -> int:
    """Tell how many bytes a value takes in a snapshot of its own."""
    found = capture(value, definitions=definitions, inputs={}, places={})
    return len(found.stream) + sum(block.layout.nbytes for block in found.blocks)


def content_digest(value: Any, *, definitions: Definitions) -> tuple[str, dict[int, Any]]:
    """Digest a value as it would be saved; equal while nobody changes it, within one process.

    Returns
    -------
    digest : str
    met : dict of int to object
        Mutable objects inside, by ``id``.
    """
    found = capture(value, definitions=definitions, inputs={}, places={})
    hasher = xxhash.xxh3_128(found.stream)
    hasher.update(found.tables)
    for block in found.blocks:
        for part in block.parts():
            hasher.update(part)
    return hasher.hexdigest(), found.met()


def restore(
    stream: bytes,
    tables: bytes,
    *,
    definitions: Definitions,
    inputs: Mapping[str, Any],
    read: Callable[[Mapping[int, NDArray[Any]]], None],
) -> Any:
    """Rebuild a graph.

    Parameters
    ----------
    stream, tables : bytes
        As captured; their digests have been checked.
    definitions : Definitions
        Finds the notebook's own functions and classes.
    inputs : mapping of str to object
        The inputs that the graph names.
    read : callable
        Fills arrays in C order, by the number of their block, with the verified bytes of its payload, whatever type and
        shape they have. Called once; blocks of inputs are not asked for.
    """
    return rebuild(load(stream, tables, read), definitions=definitions, inputs=inputs)


@dataclass(slots=True)
class Loaded:
    """A graph whose bytes are in memory, and whose objects are not made yet."""

    stream: bytes
    layouts: list[Layout]
    looks: list[Look]
    buffers: list[int]
    used: list[Definition]
    homes: list[Any]
    """Memory of each block; None where an input holds it."""


def load(stream: bytes, tables: bytes, read: Callable[[Mapping[int, NDArray[Any]]], None]) -> Loaded:
    """Read all bytes of a graph, see ``restore``: nothing of the notebook's has to be there for it."""
    layout_rows, look_rows, buffers, used = pickle.loads(tables)
    layouts = [Layout(*row) for row in layout_rows]
    homes: list[Any] = [None] * len(layouts)
    targets: dict[int, NDArray[Any]] = {}
    for i, layout in enumerate(layouts):
        if layout.maker != "input":
            homes[i], targets[i] = allocate(layout)
    read(targets)
    for i, target in targets.items():
        settle(layouts[i], homes[i], target)
    return Loaded(stream, layouts, [Look(*row) for row in look_rows], buffers, used, homes)


def rebuild(loaded: Loaded, *, definitions: Definitions, inputs: Mapping[str, Any]) -> Any:
    """Make the objects of a graph whose bytes are in memory, once: the arrays take that memory over."""
    homes = [
        _known_input(inputs, layout.name) if layout.maker == "input" else home
        for layout, home in zip(loaded.layouts, loaded.homes, strict=True)
    ]
    file = io.BytesIO(loaded.stream)
    offered = [buffer_at(loaded.looks[i], homes[loaded.looks[i].block]) for i in loaded.buffers]
    unpickler = _Unpickler(file, _Parts(loaded.looks, homes, loaded.used, definitions, inputs), offered)
    graph = unpickler.load()
    if file.tell() < len(loaded.stream):
        put_tables(unpickler.load())
    return graph


def _known_input(inputs: Mapping[str, Any], name: str) -> Any:
    if name not in inputs:
        raise ReplayError(f"{name!r} is not there. Run the cells that make it, then this one again")
    return inputs[name]


class _Parts:
    """What the stream refers to and that lies beside it.

    Apart from the unpickler, whose memo keeps the methods that it has called: with its own it would be a cycle, and
    what the loop drops would live on until Python looks for cycles.
    """

    def __init__(
        self,
        looks: list[Look],
        homes: list[Any],
        used: list[Definition],
        definitions: Definitions,
        inputs: Mapping[str, Any],
    ) -> None:
        self._looks, self._homes, self._used = looks, homes, used
        self._definitions, self._inputs = definitions, inputs
        self.by_name = {
            "_array": self._array,
            "_input": self._input,
            "_tensor": self._tensor,
            "_definition": self._definition,
            "make_function": definitions.make_function,
        }

    def _array(self, index: int) -> Any:
        look = self._looks[index]
        return look_at(look, None if look.block < 0 else self._homes[look.block])

    def _input(self, name: str) -> Any:
        return _known_input(self._inputs, name)

    def _definition(self, index: int) -> Any:
        return self._definitions.find(self._used[index])

    def _tensor(self, index: int, kind: type) -> Any:
        tensor = self._array(index)
        return tensor if type(tensor) is kind else kind(tensor, requires_grad=False)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, parts: _Parts, buffers: list[Any]) -> None:
        super().__init__(file, buffers=buffers)
        self._own = dict(parts.by_name)
        parts.by_name.clear()  # which was a cycle too

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("nbresume._capture") and name in self._own:
            return self._own[name]
        return super().find_class(module, name)
