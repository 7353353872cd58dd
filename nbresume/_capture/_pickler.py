"""The C pickler, with a few kinds taken out of its hands.

It asks here for every object that is no plain container or scalar. Of a hundred thousand small objects most are of few
classes, so what is to be done is decided once for each class; for a plain object of a Python class all that is left to
do is what ``object.__reduce_ex__`` would do, which takes longer.
"""

from __future__ import annotations

import copyreg
import importlib
import io
import pickle
import random
import sys
import types
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._identity import slots_of
from ._functions import Definition, Definitions, reduce_cell, reduce_function
from ._instances import DICT_ITERATORS, has_plain_state, reduce_dict_iterator, reduce_exception, reduce_instance
from ._looks import reduce_look
from ._memo import has_any, memoized
from ._memory import Memory
from ._torch import GRAPH, is_dense_tensor, is_spent

LARGE = 1 << 14
"""Bytes from which a buffer that an object offers is stored beside the stream."""

_HARMLESS = (types.BuiltinFunctionType, types.MethodType, types.CodeType)
_UNNOTED = (*_HARMLESS, type, types.FunctionType, types.ModuleType)
_PROTOCOL = ("__reduce__", "__reduce_ex__", "__getstate__", "__getattribute__")
_ASKED = frozenset({*_PROTOCOL, "__getnewargs__", "__getnewargs_ex__", "__class__"})
"""What pickle asks an object for; one that has it in its own ``__dict__`` answers by itself."""


class GraphPickler(pickle.Pickler):
    """Pickles one graph.

    Parameters
    ----------
    file : BytesIO
        Takes the stream.
    memory : Memory
        Takes arrays, tensors and large buffers.
    definitions : Definitions
        Knows the functions and classes of the notebook.
    inputs : mapping of str to object
        Objects to be saved by name only.
    """

    def __init__(self, file: io.BytesIO, memory: Memory, definitions: Definitions, inputs: Mapping[str, Any]) -> None:
        self.used: list[Definition] = []
        self.loose: list[NDArray[Any]] = []
        """Arrays that numpy pickles by itself, without what they share."""
        self.buffers: list[int] = []
        """Looks of the large buffers, in the order of the stream."""
        # Not a method: kept by the pickler itself, that would be a cycle.
        super().__init__(file, protocol=5, buffer_callback=partial(_take, memory, self.buffers))
        self._memory = memory
        self._definitions = definitions
        self._inputs = {id(value): name for name, value in inputs.items()}
        self._torch = sys.modules.get("torch")
        self._globals = _process_globals()
        known = [*inputs.values(), *(_process_global(name) for name in self._globals.values())]
        self._by_identity = set(map(type, known))
        """Types of which one object may be saved by its name: each has to be looked at."""
        self._plain: dict[type, tuple[type]] = {}
        self._left: set[type] = set()
        """Types that pickle knows best how to save."""
        self._noted: set[type] = set()

    def met(self) -> dict[int, Any]:
        """Return the mutable objects inside that are no plain containers, by ``id``."""
        named = self._inputs.keys() | self._globals.keys()
        return {id(one): one for one in memoized(self) if type(one) in self._noted and id(one) not in named}

    def has_met(self, objects: Iterable[Any]) -> bool:
        """Whether one of some objects would be among what ``met`` returns."""
        named = self._inputs.keys() | self._globals.keys()
        return has_any(self, [one for one in objects if type(one) in self._noted and id(one) not in named])

    def reducer_override(self, obj: Any) -> Any:
        """Tell how an object is saved; the C pickler asks."""
        kind = type(obj)
        if (args := self._plain.get(kind)) is not None:
            state = obj.__dict__
            return (copyreg.__newobj__, args, state) if _ASKED.isdisjoint(state) else NotImplemented  # type: ignore[attr-defined]
        if kind in self._left:
            return NotImplemented
        return self._by_kind(obj, kind)

    def _by_kind(self, obj: Any, kind: type) -> Any:  # one line a kind
        if id(obj) in self._inputs:
            return _input, (self._inputs[id(obj)],)
        if not isinstance(obj, _UNNOTED) and kind not in DICT_ITERATORS:
            self._noted.add(kind)
        if isinstance(obj, np.ndarray):
            return self._ndarray(obj)
        if kind is types.FunctionType or isinstance(obj, type):
            return self._definition(obj)
        if kind is types.ModuleType:
            return importlib.import_module, (obj.__name__,)
        if kind in DICT_ITERATORS:
            return reduce_dict_iterator(obj)
        if kind is types.CellType:
            return reduce_cell(obj)
        if id(obj) in self._globals:
            return _process_global, (self._globals[id(obj)],)
        if kind.__module__.partition(".")[0] == "tqdm":
            raise TypeError("a progress bar is made again, never saved")
        if self._torch is not None and isinstance(obj, self._torch.Tensor):
            return self._tensor(obj)
        if self._torch is not None and kind is self._torch.Generator:
            return _torch_generator, (str(obj.device), obj.get_state())
        if isinstance(obj, _HARMLESS):
            return NotImplemented
        return self._instance(obj, kind)

    def _instance(self, obj: Any, kind: type) -> Any:
        if (look := reduce_look(obj)) is not None:
            return look
        if isinstance(obj, BaseException):
            return reduce_exception(obj)
        if has_plain_state(kind):
            return reduce_instance(obj)
        if kind not in self._by_identity:
            if _is_plain(kind):
                self._plain[kind] = (kind,)
            else:
                self._left.add(kind)
        return NotImplemented

    def _ndarray(self, array: NDArray[Any]) -> Any:
        if isinstance(array, np.memmap) and array.mode != "r":
            raise TypeError("it is a file mapped into memory")
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


def _take(memory: Memory, buffers: list[int], offered: pickle.PickleBuffer) -> bool:
    """Take a large buffer; a small one stays in the stream, which the answer says."""
    raw = offered.raw()
    if raw.nbytes < LARGE:
        return True
    buffers.append(memory.add_buffer(raw))
    return False


def _is_plain(kind: type) -> bool:
    """Whether ``object.__reduce_ex__`` would save the class and the ``__dict__`` of its instances, and ask nobody."""
    if any(getattr(kind, name, None) is not getattr(object, name, None) for name in _PROTOCOL):
        return False
    if hasattr(kind, "__getnewargs__") or hasattr(kind, "__getnewargs_ex__") or kind in copyreg.dispatch_table:
        return False
    if kind.__flags__ & _HEAP == 0 or issubclass(kind, (dict, list)) or any(map(slots_of, kind.__mro__)):
        return False
    owner = next((one for one in kind.__mro__ if "__dict__" in one.__dict__), None)
    is_own = owner is not None and type(owner.__dict__["__dict__"]) is types.GetSetDescriptorType
    return is_own and "__class__" not in {name for one in kind.__mro__[:-1] for name in one.__dict__}


_HEAP = 1 << 9
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
