"""Objects that only look at another one: weak references and the containers made of them, and views of a buffer.

What they look at belongs to the same graph, so that it is the same object for them and for whoever owns it.
"""

from __future__ import annotations

import weakref
from typing import Any

_CONTAINERS = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary)


def reduce_look(obj: Any) -> Any:
    """Reduce a weak reference, a container of such, or a view of a buffer; None for anything else."""
    kind = type(obj)
    if kind is weakref.ref:
        target = obj()
        return (dead_reference, ()) if target is None else (weakref.ref, (target, obj.__callback__))
    if kind in _CONTAINERS:
        return kind, (), None, None, iter(list(obj.items()))
    if kind is weakref.WeakSet:
        return kind, (list(obj),)
    if kind is memoryview:
        return _reduce_view(obj)
    return None


def _reduce_view(view: memoryview) -> Any:
    """Reduce a view of a whole buffer; a part of one, or one with another format, can't tell where it lies."""
    whole = memoryview(view.obj)
    told = ("format", "shape", "strides", "nbytes")
    if any(getattr(view, name) != getattr(whole, name) for name in told):
        raise TypeError("it is a view of a part of a buffer")
    return look_at_buffer, (view.obj, view.readonly)


def look_at_buffer(owner: Any, readonly: bool) -> memoryview:  # noqa: FBT001  # pickle gives no names
    """Make a view of a buffer."""
    view = memoryview(owner)
    return view.toreadonly() if readonly else view


class _Gone:
    """What a dead reference referred to."""


def dead_reference() -> weakref.ref[Any]:
    """Make a weak reference to an object that is no more."""
    return weakref.ref(_Gone())
