"""The identity of a run and the readable difference between two."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ._details import OTHER_ORDER, Details, marks_differ


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that must be equal.

    Attributes
    ----------
    digest : str
        Fingerprint.
    text : str
        What a person reads: a value in a few words, or the source of a function.
    details : dict
        Its parts: digest, text and marks of elements by path.
    """

    digest: str
    text: str = ""
    details: Details = field(default_factory=dict)

    def to_json(self) -> list[Any]:
        """Return JSON values."""
        return [self.digest, self.text, *([self.details] if self.details else [])]


@dataclass(frozen=True, slots=True)
class Identity:
    """What must stay equal for a resume to be the same run.

    Attributes
    ----------
    code : dict of str to Part
        The cell, the notebook functions and classes it reaches, and local modules; ``text`` is normalised source.
    config : dict of str to Part
        Inputs, and the entry values of declared names from outside; ``text`` is a short rendering.
    environment : dict of str to Part
        Python minor and the versions of the packages reached.
    surroundings : dict of str to Part
        What is told and stops nothing: the class of the hardware, the commit that the folder stands at.
    entry : dict of str to Part
        Content of declared names as the cell found them; the run keeps its own, so another is told and stops nothing.
    makers : dict of str to Part
        Of inputs that can't be looked into: the statement that bound each, where the notebook's history has it.
    """

    code: dict[str, Part] = field(default_factory=dict)
    config: dict[str, Part] = field(default_factory=dict)
    environment: dict[str, Part] = field(default_factory=dict)
    surroundings: dict[str, Part] = field(default_factory=dict)
    entry: dict[str, Part] = field(default_factory=dict)
    makers: dict[str, Part] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: {key: part.to_json() for key, part in getattr(self, name).items()} for name in self.__slots__}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Identity:
        """Read what ``to_json`` gave."""
        return cls(**{name: {k: Part(*v) for k, v in data.get(name, {}).items()} for name in cls.__slots__})

    def differences(self, now: Identity, *, left: Identity | None = None) -> tuple[str, ...]:
        """Tell what differs now, in readable lines; empty when it is the same run.

        Parameters
        ----------
        now : Identity
            What the cell is now.
        left : Identity, optional
            What an attempt in this same process left behind; a part equal to it is no difference.
        """
        known = left or Identity()
        return (
            *_code_differences(*_but_left(self.code, now.code, known.code)),
            *_config_differences(*_but_left(self.config, now.config, known.config)),
            *_maker_differences(self.makers, now.makers),
            *_config_differences(*_but_left(self.environment, now.environment, known.environment)),
        )

    def other_entry(self, now: Identity) -> tuple[str, ...]:
        """Name the declared names that the cell finds with other content of the same schema."""
        both = [name for name in self.entry if name in now.entry]
        return tuple(name for name in both if self.entry[name].digest != now.entry[name].digest)

    def but_left(self, recorded: Identity, left: Identity | None) -> Identity:
        """Return this identity with what an attempt in this process left so as it was recorded at the launch."""
        if left is None:
            return self
        parts = {
            name: part if part != left.config.get(name) else recorded.config.get(name, part)
            for name, part in self.config.items()
        }
        return replace(self, config=parts)

    def other_hardware(self, now: Identity) -> tuple[str, ...]:
        """Tell what of the hardware is another, where both know it."""
        both = [name for name in _HARDWARE if name in self.surroundings and name in now.surroundings]
        return tuple(
            f"{name}: {self.surroundings[name].text} -> {now.surroundings[name].text}"
            for name in both
            if self.surroundings[name].digest != now.surroundings[name].digest
        )


_HARDWARE = ("cpu", "gpu")
_Parts = dict[str, Part]


def _but_left(old: _Parts, now: _Parts, left: _Parts) -> tuple[_Parts, _Parts]:
    """Leave out the parts that are as an attempt in this process left them."""
    same = {name for name, part in now.items() if left.get(name) == part}
    return (
        {name: part for name, part in old.items() if name not in same},
        {name: part for name, part in now.items() if name not in same},
    )


def _code_differences(old: _Parts, new: _Parts) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield f"{name}: is used now and was not"
        elif after is None:
            yield f"{name}: was used and is not now"
        elif before.digest != after.digest:
            if name.isidentifier():
                yield f"{name}: {before.text} -> {after.text}"
                continue
            changed = [] if before.text else _changed_parts(before.details, after.details)
            yield f"{name}: {', '.join(changed) or _changed_lines(before.text, after.text)}"


def _changed_parts(old: Details, new: Details) -> list[str]:
    """Name the functions and classes of a module that are others now."""
    verbs = {True: "changed", False: "is new"}
    found = [f"{name} {verbs[name in old]}" for name, part in new.items() if part != old.get(name)]
    return found + [f"{name} is gone" for name in old if name not in new]


def _changed_lines(before: str, after: str) -> str:
    if not before or not after:
        return "its code changed"
    old, new = before.splitlines(), after.splitlines()
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [(tag, old[i1:i2], new[j1:j2], i1) for tag, i1, i2, j1, j2 in steps if tag != "equal"]
    if not changed:
        return "what it reaches changed"
    tag, gone, come, place = changed[0]
    more = sum(max(len(one), len(other)) for _, one, other, _ in changed) - 1
    rest = f" (and {more} more)" if more else ""
    if tag == "replace" and len(gone) == len(come):
        return f"line {place + 1} changed: {gone[0].strip()!r} -> {come[0].strip()!r}{rest}"
    verb = {"replace": "changed", "delete": "removed", "insert": "added"}[tag]
    return f"line {place + 1} {verb}: {(come or gone)[0].strip()!r}{rest}"


def _config_differences(old: _Parts, new: _Parts) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield f"{name}: is read now and was not"
        elif after is None:
            yield f"{name}: {before.text} -> it is not there (run the cells above first?)"
        elif before.digest != after.digest:
            yield from _value_differences(name, before, after)


def _maker_differences(old: _Parts, new: _Parts) -> Iterator[str]:
    """Compare statements where both are known: a history may be empty, or a name come from elsewhere."""
    for name in old:
        if name in new and old[name].digest != new[name].digest:
            same = old[name].text == new[name].text
            how = f"what {old[name].text!r} reads has changed" if same else f"{old[name].text!r} -> {new[name].text!r}"
            yield f"{name}: made otherwise: {how}"


def _value_differences(name: str, before: Part, after: Part) -> Iterator[str]:
    """Tell which parts of a value differ; the whole one where none tells."""
    told = [
        f"{name}{path}: {_step(before.details.get(path), after.details.get(path))}"
        for path in dict.fromkeys([*before.details, *after.details])
        if before.details and after.details and before.details.get(path, [""])[0] != after.details.get(path, [""])[0]
    ]
    if len(told) > 1 and _kinds(before.details) == _kinds(after.details):
        told = [f"{name}: {OTHER_ORDER}"]
    yield from told or [f"{name}: {_step([before.digest, before.text, ''], [after.digest, after.text, ''])}"]


def _kinds(details: Details) -> list[str]:
    return sorted(part[0] for part in details.values())


def _step(before: list[str] | None, after: list[str] | None) -> str:
    """Tell one change of a value."""
    if before is None or after is None:
        return f"{(before or after or ['', ''])[1]} {'is new' if before is None else 'is gone'}"
    _, old, old_marks = before
    _, new, new_marks = after
    if old == new:
        return marks_differ(old_marks, new_marks) or f"{old}, content differs"
    shapes = [_SHAPE.fullmatch(text) for text in (old, new)]
    if shapes[0] and shapes[1] and shapes[0][1] == shapes[1][1]:
        return f"shape {shapes[0][2]} -> {shapes[1][2]}"
    sizes = [_SIZE.fullmatch(text) for text in (old, new)]
    if sizes[0] and sizes[1] and sizes[0][1] == sizes[1][1]:
        return f"{int(sizes[0][2]):,} items -> {int(sizes[1][2]):,} items"
    return f"{old} -> {new}"


_SHAPE = re.compile(r"(.+) (\(.*\))")
_SIZE = re.compile(r"(\w+) of (\d+)")
