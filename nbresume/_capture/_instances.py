"""Objects that pickle would save and could not load again, or would save as something else.

* An iterator over a dict's items would be saved with the values of the snapshot, cut off from the dict that the body
goes
  on changing.
* An exception of a class with a constructor of its own would be called with the wrong arguments.
* An object whose class has ``__getattr__`` is asked for ``__setstate__`` before it has the attributes it answers from.
"""

from __future__ import annotations

import gc
from typing import Any

from .._identity import slots_of

_KINDS: dict[type, str] = {
    type(iter({}.values())): "values",
    type(iter({}.items())): "items",
    type(reversed({}.values())): "values",
    type(reversed({}.items())): "items",
}
DICT_ITERATORS = frozenset(_KINDS)
_PROTOCOL = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")


class DictRest:
    """What is left of an iteration over a dict's values or items: it looks them up when they are fetched."""

    def __init__(self, kind: str, source: dict[Any, Any], keys: list[Any]) -> None:
        self.kind, self.source, self.keys = kind, source, keys
        self.size, self.place = len(source), 0

    def __iter__(self) -> DictRest:
        return self

    def __next__(self) -> Any:
        if len(self.source) != self.size:
            raise RuntimeError("dictionary changed size during iteration")
        if self.place >= len(self.keys):
            raise StopIteration
        key = self.keys[self.place]
        self.place += 1
        return (key, self.source[key]) if self.kind == "items" else self.source[key]


def reduce_dict_iterator(iterator: Any) -> Any:
    """Reduce an iterator over a dict's values or items to the dict itself and the keys that are left."""
    source = next((one for one in gc.get_referents(iterator) if isinstance(one, dict)), None)
    left = iterator.__reduce__()[1][0]
    if source is None or not left:
        return iter, ([],)
    kind = _KINDS[type(iterator)]
    if kind == "items":
        keys = [key for key, _ in left]
    else:
        order = list(reversed(source)) if "reverse" in type(iterator).__name__ else list(source)
        keys = order[len(order) - len(left) :]
    return DictRest, (kind, source, keys)


def has_plain_state(kind: type) -> bool:
    """Whether a class answers for any attribute and leaves its pickling to Python."""
    if not hasattr(kind, "__getattr__"):
        return False
    plain = all(getattr(kind, name, None) is getattr(object, name, None) for name in _PROTOCOL)
    return plain and not issubclass(kind, (dict, list, tuple, set, str, int, float, bytes))


def reduce_instance(obj: Any) -> Any:
    """Reduce an instance to its class and attributes, filled in without asking it anything."""
    slots = {
        slot: object.__getattribute__(obj, slot)
        for kind in type(obj).__mro__
        for slot in slots_of(kind)
        if slot in kind.__dict__ and _has(obj, slot)
    }
    state = {"dict": dict(object.__getattribute__(obj, "__dict__")) if _has(obj, "__dict__") else {}, "slots": slots}
    return make_instance, (type(obj),), state, None, None, fill_instance


def _has(obj: Any, name: str) -> bool:
    try:
        object.__getattribute__(obj, name)
    except AttributeError:
        return False
    return True


def make_instance(kind: type) -> Any:
    """Make an empty instance."""
    return object.__new__(kind)


def fill_instance(obj: Any, state: dict[str, Any]) -> None:
    """Give an instance its attributes."""
    for name, value in state["slots"].items():
        object.__setattr__(obj, name, value)
    if state["dict"]:
        object.__getattribute__(obj, "__dict__").update(state["dict"])


def reduce_exception(error: BaseException) -> Any:
    """Reduce an exception without calling its constructor; its traceback belongs to frames that are gone."""
    state = {
        "dict": dict(error.__dict__),
        "cause": error.__cause__,
        "context": error.__context__,
        "suppress": error.__suppress_context__,
    }
    return make_exception, (type(error), error.args), state, None, None, fill_exception


def make_exception(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Make an exception."""
    error = kind.__new__(kind, *args)
    error.args = args
    return error


def fill_exception(error: BaseException, state: dict[str, Any]) -> None:
    """Give an exception what it carried."""
    error.__dict__.update(state["dict"])
    error.__cause__, error.__context__ = state["cause"], state["context"]
    error.__suppress_context__ = state["suppress"]
