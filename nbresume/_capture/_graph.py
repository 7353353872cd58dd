"""The pickler of the object graph, and its way back.

One C pickler, protocol 5, walks all that is saved in one go: what was one object stays one object. Only a few kinds are
taken out of its hands: arrays (``_memory``), functions and classes of the notebook (``_functions``), and *inputs*,
large
things that the notebook makes again and that are saved by name as long as they are unchanged.
"""

from __future__ import annotations

import importlib
import io
import pickle
import random
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from .._deep import deeply
from ..errors import ReplayError
from ._functions import Definition, Definitions, reduce_cell, reduce_function
from ._instances import DICT_ITERATORS, has_plain_state, reduce_dict_iterator, reduce_exception, reduce_instance
from ._looks import reduce_look
from ._memory import Block, Layout, Look, Memory, allocate, look_at, settle
from ._sets import odd_sets, put_tables
from ._torch import GRAPH, is_dense_tensor, is_spent

__all__ = ["Captured", "Definitions", "capture", "content_digest", "restore"]

Namespace = dict[str, Any]
_HARMLESS = (types.BuiltinFunctionType, types.MethodType, types.CodeType)


@dataclass(slots=True)
class Captured:
    """A graph, ready to be stored.

    Attributes
    ----------
    stream : bytes
        The pickle stream.
    tables : bytes
        Pickled layouts, looks and definitions.
    blocks : list of Block
        What lies beside the stream; those of inputs have no data.
    met : dict of int to object
        Mutable objects inside, by ``id``.
    joining : set of str
        Inputs that share memory with the graph in a way that only saving them too can keep.
    """

    stream: bytes
    tables: bytes
    blocks: list[Block]
    met: dict[int, Any] = field(default_factory=dict)
    joining: set[str] = field(default_factory=set)


def capture(graph: Any, *, definitions: Definitions, inputs: Mapping[str, Any], places: Mapping[str, Any]) -> Captured:
    """Serialise a graph without copying its arrays.

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
    pickler = _Pickler(buffer, memory, definitions, {id(value): name for name, value in inputs.items()})
    pickler.dump(graph)
    if tables_of_sets := odd_sets(buffer.getvalue(), pickler.memoized):
        pickler.dump(tables_of_sets)
    names = {id(value): name for name, value in places.items() if type(value) is np.ndarray}
    memory.check_apart(pickler.loose)
    blocks, looks, joining = memory.blocks(names)
    tables = pickle.dumps(([block.layout for block in blocks], looks, pickler.used), protocol=5)
    return Captured(buffer.getvalue(), tables, blocks, pickler.met, joining)


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
        if block.data is not None:
            hasher.update(payload(block))
    return hasher.hexdigest(), found.met


def payload(block: Block) -> memoryview:
    """See the bytes of a block as they are stored: in C order."""
    data = block.data
    if data is None:
        return memoryview(b"")
    return np.ascontiguousarray(data).reshape(-1).view("u1").data


class _Pickler(pickle.Pickler):
    """Takes a few kinds out of the C pickler's hands; it asks for anything but plain containers and scalars."""

    def __init__(self, file: io.BytesIO, memory: Memory, definitions: Definitions, inputs: dict[int, str]) -> None:
        super().__init__(file, protocol=5)
        self.met: dict[int, Any] = {}
        self.used: list[Definition] = []
        self.loose: list[NDArray[Any]] = []
        """Arrays that numpy pickles by itself, without what they share."""
        self._memory = memory
        self._definitions = definitions
        self._inputs = inputs
        self._torch = sys.modules.get("torch")
        self._globals = _process_globals()

    def memoized(self) -> list[Any]:
        """Return every object that has been pickled and may be met again."""
        return [obj for _, obj in self.memo.copy().values()]

    def reducer_override(self, obj: Any) -> Any:  # one line a kind
        kind = type(obj)
        if id(obj) in self._inputs:
            return _input, (self._inputs[id(obj)],)
        if isinstance(obj, np.ndarray):
            return self._ndarray(obj)
        if kind is types.FunctionType or isinstance(obj, type):
            return self._definition(obj)
        if kind is types.ModuleType:
            return importlib.import_module, (obj.__name__,)
        if kind in DICT_ITERATORS:
            return reduce_dict_iterator(obj)
        if kind is types.CellType:
            self.met[id(obj)] = obj
            return reduce_cell(obj)
        if id(obj) in self._globals:
            return _process_global, (self._globals[id(obj)],)
        if kind.__module__.partition(".")[0] == "tqdm":
            raise TypeError("a progress bar is made again, never saved")
        if self._torch is not None and isinstance(obj, self._torch.Tensor):
            self.met[id(obj)] = obj
            return self._tensor(obj)
        if self._torch is not None and kind is self._torch.Generator:
            self.met[id(obj)] = obj
            return _torch_generator, (str(obj.device), obj.get_state())
        if isinstance(obj, _HARMLESS):
            return NotImplemented
        self.met[id(obj)] = obj
        return self._instance(obj)

    @staticmethod
    def _instance(obj: Any) -> Any:
        if (look := reduce_look(obj)) is not None:
            return look
        if isinstance(obj, BaseException):
            return reduce_exception(obj)
        return reduce_instance(obj) if has_plain_state(type(obj)) else NotImplemented

    def _ndarray(self, array: NDArray[Any]) -> Any:
        if isinstance(array, np.memmap) and array.mode != "r":
            raise TypeError("it is a file mapped into memory")
        self.met[id(array)] = array
        if array.dtype.hasobject or isinstance(array, np.memmap) or not _pickles_as_numpy(type(array)):
            self.loose.append(array)
            return NotImplemented
        if type(array) is np.ndarray:
            return _array, (self._memory.add_array(array),)
        return _view_as, (array.view(np.ndarray), type(array)), dict(vars(array)), None, None, _fill_view

    def _definition(self, obj: Any) -> Any:
        found = self._definitions.of(obj)
        if found is None:
            return reduce_function(obj) if self._definitions.is_own(obj) else NotImplemented
        if found not in self.used:
            self.used.append(found)
        return _definition, (self.used.index(found),)

    def _tensor(self, tensor: Any) -> Any:
        torch = sys.modules["torch"]
        if not is_dense_tensor(tensor) or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return NotImplemented
        if not tensor.is_leaf:
            if not is_spent(tensor):
                raise TypeError(GRAPH)
            # Nobody can go back through its graph any more: what is left of it is its value.
            return _tensor, (self._memory.add_tensor(tensor.detach()), torch.Tensor)
        index = self._memory.add_tensor(tensor)
        state = {"requires_grad": tensor.requires_grad, "grad": tensor.grad, "dict": dict(tensor.__dict__)}
        return _tensor, (index, type(tensor)), state, None, None, _fill_tensor


_NUMPYS: list[Any] = [(home.__reduce__, home.__setstate__) for home in (np.ndarray, np.ma.MaskedArray)]


def _pickles_as_numpy(kind: type) -> bool:
    """Whether a class of arrays leaves its pickling to numpy: a view with attributes, such as a masked array's mask."""
    return (kind.__reduce__, getattr(kind, "__setstate__", None)) in _NUMPYS


def _process_globals() -> dict[int, str]:
    """Objects that stand for the process's own random streams: saved by name, their state goes with the RNG."""
    found = {id(random._inst): "random"}  # noqa: SLF001
    found[id(np.random.mtrand._rand)] = "numpy"  # noqa: SLF001
    torch = sys.modules.get("torch")
    if torch is not None:
        found[id(torch.default_generator)] = "torch"
    return found


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
        Fills arrays, by the number of their block, with verified bytes; called once.
    """
    layouts, looks, used = pickle.loads(tables)
    homes = _read_homes(layouts, inputs, read)
    file = io.BytesIO(stream)
    unpickler = _Unpickler(file, _Parts(looks, homes, used, definitions, inputs))
    graph = unpickler.load()
    if file.tell() < len(stream):
        put_tables(unpickler.load())
    return graph


def _read_homes(
    layouts: list[Layout], inputs: Mapping[str, Any], read: Callable[[Mapping[int, NDArray[Any]]], None]
) -> list[Any]:
    homes: list[Any] = []
    targets: dict[int, NDArray[Any]] = {}
    for i, layout in enumerate(layouts):
        if layout.maker == "input":
            homes.append(_known_input(inputs, layout.name))
        else:
            home, targets[i] = allocate(layout)
            homes.append(home)
    read(targets)
    for i, target in targets.items():
        settle(layouts[i], homes[i], target)
    return homes


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
    def __init__(self, file: io.BytesIO, parts: _Parts) -> None:
        super().__init__(file)
        self._own = dict(parts.by_name)
        parts.by_name.clear()  # which was a cycle too

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("nbresume._capture") and name in self._own:
            return self._own[name]
        return super().find_class(module, name)


# What the stream refers to. The unpickler puts its own methods in the place of the first few.
def _array(index: int) -> Any:
    raise NotImplementedError(index)


def _input(name: str) -> Any:
    raise NotImplementedError(name)


def _definition(index: int) -> Any:
    raise NotImplementedError(index)


def _tensor(index: int, kind: type) -> Any:
    raise NotImplementedError(index, kind)


def _view_as(array: NDArray[Any], kind: type) -> Any:
    return array.view(kind)


def _fill_view(array: NDArray[Any], state: dict[str, Any]) -> None:
    array.__dict__.update(state)


def _fill_tensor(tensor: Any, state: dict[str, Any]) -> None:
    tensor.requires_grad_(state["requires_grad"])
    tensor.grad = state["grad"]
    tensor.__dict__.update(state["dict"])


def _torch_generator(device: str, state: Any) -> Any:
    generator = sys.modules["torch"].Generator(device)
    generator.set_state(state)
    return generator


def _process_global(name: str) -> Any:
    if name == "random":
        return random._inst  # noqa: SLF001
    if name == "numpy":
        return np.random.mtrand._rand  # noqa: SLF001
    return sys.modules["torch"].default_generator
