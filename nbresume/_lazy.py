"""Packages whose names are fetched when they are first used (PEP 562): a command imports what it needs alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attach(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        Submodules, and the names that each is the home of, with blanks between; without any: the submodule itself.
    """
    found = {name: home for home, names in homes.items() for name in names.split() or [home]}

    def fetch(name: str) -> Any:
        home = found.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home}")
        return module if name == home else getattr(module, name)

    def listed() -> list[str]:
        return sorted([*found, *(name for name in vars(import_module(package)) if name.startswith("__"))])

    return fetch, listed
