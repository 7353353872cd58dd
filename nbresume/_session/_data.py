"""The second gate: what the run goes over, looked at where the set-up ends, before saved state covers it.

A ``range(n)`` may hang on an ``n`` that the set-up computes: no input names it, and the saved iterator would go on over
the old one without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._identity import Part, fingerprint
from .._types import Json
from ._iterables import length_of
from ._positions import is_container, is_positional
from ._reach import is_clock

ONLY_RANGES = "only a longer range, with the same start and step, can be declared"
_NUMBERS = (bool, int, float)


def data_parts(values: Mapping[str, Any]) -> dict[str, Part]:
    """Fingerprint what a header hangs on: its iterable, and plain numbers; a time is nobody's experiment."""
    found: dict[str, Part] = {}
    for name, value in values.items():
        if name.startswith("for "):
            if is_container(value) or (hasattr(value, "__next__") and is_positional(value, _is_no_iterator)):
                found[name] = Part(fingerprint(value).digest, _text(value))
            elif (count := fixed_length(value)) is not None:
                found[name] = Part(str(count), f"{count:,} items")
        elif type(value) in _NUMBERS and not is_clock(value):
            found[name] = Part(fingerprint(value).digest, repr(value))
    return found


def _is_no_iterator(value: Any) -> bool:
    return not hasattr(value, "__next__")


def fixed_length(iterable: Any) -> int | None:
    """Tell how many items an iterable gives each time; an iterator may have given some already."""
    return None if hasattr(iterable, "__next__") else length_of(iterable)


def _text(value: Any) -> str:
    if isinstance(value, range):
        return repr(value).replace("range(0, ", "range(")
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"shape {tuple(shape)}"
    return f"{len(value):,} items" if hasattr(value, "__len__") else type(value).__name__


def is_extended(old: range, new: Any) -> bool:
    """Whether a range goes over the same and on."""
    return isinstance(new, range) and len(new) > len(old) and new[: len(old)] == old


def range_from(text: str) -> range | None:
    """Read a range that a snapshot noted."""
    if not text.startswith("range("):
        return None
    return range(*(int(number) for number in text[len("range(") : -1].split(",")))


def data_differences(old: Mapping[str, Any], now: Mapping[str, Part]) -> dict[str, str]:
    """Tell what differs, readably, by key; what only one of the two has is no difference."""
    found: dict[str, str] = {}
    for name, part in now.items():
        before = Part(*old[name]) if name in old else part
        if before.digest == part.digest:
            continue
        span = range_from(before.text)
        extended = span is not None and is_extended(span, range_from(part.text))
        line = f"{before.text} -> {part.text}"
        line += " (other content)" if before.text == part.text else ""
        found[name] = f"{line}: extended" if extended else f"{name}: {line}"
    return found


class DataGate:
    """What a run goes over, as it was launched or declared.

    Attributes
    ----------
    known : dict
        Digest and text by key, in JSON values.
    is_declared : bool
        Whether a person has declared that a longer range is the same run.
    extended : dict of str to range
        What the run goes over from now on.
    renewed : dict
        Numbers that such a range hangs on; the saved ones are those of the shorter.
    """

    def __init__(self, known: Json | None = None, *, is_declared: bool = False) -> None:
        self.known: Json = dict(known or {})
        self.is_declared = is_declared
        self.extended: dict[str, range] = {}
        self.renewed: dict[str, Any] = {}

    def note(self, values: Mapping[str, Any]) -> None:
        """Note what a launch goes over."""
        self.known |= {name: [part.digest, part.text] for name, part in data_parts(values).items()}

    def differences(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Tell what differs now, readably, by key."""
        return data_differences(self.known, data_parts(values))

    def obstacle(self, differences: Mapping[str, str], values: Mapping[str, Any], *, goes_on: bool) -> str:
        """Tell why nobody can declare a difference to be none; empty when one can.

        Parameters
        ----------
        differences : mapping
            As ``differences`` tells them.
        values : mapping
            What they are of.
        goes_on : bool
            Whether the run stands in that loop.
        """
        extended = any(line.endswith(": extended") for line in differences.values())
        plainly = all(line.endswith(": extended") or type(values[name]) is int for name, line in differences.items())
        if not (extended and plainly):
            return ONLY_RANGES
        return "" if goes_on else "the loop over it had ended"

    def extend(self, differences: Mapping[str, str], values: Mapping[str, Any]) -> None:
        """Go over the longer range from now on."""
        for name in differences:
            target = self.extended if name.startswith("for ") else self.renewed
            target[name] = values[name]
        self.note(values)
