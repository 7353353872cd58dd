"""The identity of a run and the readable difference between two."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that must be equal.

    Attributes
    ----------
    digest : str
        Fingerprint.
    text : str
        What a person reads: a value in a few words, or the source of a function.
    """

    digest: str
    text: str = ""


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
    """

    code: dict[str, Part] = field(default_factory=dict)
    config: dict[str, Part] = field(default_factory=dict)
    environment: dict[str, Part] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            name: {key: [part.digest, part.text] for key, part in getattr(self, name).items()}
            for name in self.__slots__
        }

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
            *_config_differences(*_but_left(self.environment, now.environment, known.environment)),
        )


_Parts = dict[str, Part]


def _but_left(old: _Parts, now: _Parts, left: _Parts) -> tuple[_Parts, _Parts]:
    """Leave out the parts that are as an attempt in this process left them."""
    same = {name for name, part in now.items() if left.get(name) == part}
    return (
        {name: part for name, part in old.items() if name not in same},
        {name: part for name, part in now.items() if name not in same},
    )


def _code_differences(old: dict[str, Part], new: dict[str, Part]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield f"{name}: is used now and was not"
        elif after is None:
            yield f"{name}: was used and is not now"
        elif before.digest != after.digest:
            yield f"{name}: {_changed_lines(before.text, after.text)}"


def _changed_lines(before: str, after: str) -> str:
    if not before or not after:
        return "its code changed"
    old, new = before.splitlines(), after.splitlines()
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if tag == "replace" and i2 - i1 == j2 - j1 == 1:
            return f"line {i1 + 1} changed: {old[i1].strip()!r} -> {new[j1].strip()!r}"
        verb = {"replace": "changed", "delete": "removed", "insert": "added"}[tag]
        shown = (new[j1:j2] or old[i1:i2])[0].strip()
        return f"line {i1 + 1} {verb}: {shown!r}"
    return "what it reaches changed"


def _config_differences(old: dict[str, Part], new: dict[str, Part]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield f"{name}: is read now and was not"
        elif after is None:
            yield f"{name}: {before.text} -> it is not there (run the cells above first?)"
        elif before.digest != after.digest:
            same_text = before.text == after.text
            yield f"{name}: {before.text} -> {after.text}" + (" (other content)" if same_text else "")
