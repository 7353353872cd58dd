"""What ``functools.lru_cache`` remembers: nobody can put it back.

After a resume such a function starts with an empty memory and computes again what it had remembered. For a function of
its arguments alone that gives the same values. One that draws at random, reads a clock or a file, or looks at state
which the loop changes, would give others: it is refused once it has remembered anything.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import _lru_cache_wrapper
from typing import Any

from .._identity import is_local_module, nested_codes, reads_and_writes
from ..errors import RefusedError
from ._places import Places

_WORLD = frozenset(
    "random randint randrange uniform normal gauss normalvariate choice choices shuffle sample rand randn integers "
    "permutation permuted standard_normal exponential poisson binomial multinomial bernoulli getrandbits random_sample "
    "default_rng time time_ns perf_counter perf_counter_ns monotonic now today utcnow open read read_text read_bytes "
    "input urlopen get uuid4 uuid1 token_hex urandom getpid environ getenv listdir glob iterdir".split()
)
"""Names whose use makes what a function returns depend on more than its arguments."""


class Memories:
    """The caches that a cell can fill.

    Parameters
    ----------
    places : Places
        The notebook's names.
    asked : bool
        Whether the cell reads the counts of a cache, which start anew too.
    """

    def __init__(self, places: Places, *, asked: bool) -> None:
        self._places, self._asked = places, asked
        modules = [one for one in list(places.namespace.values()) if isinstance(one, types.ModuleType)]
        self._modules = {id(module) for module in modules if is_local_module(module)}
        self._before = {id(cache): cache.cache_info().misses for _, cache in self._caches()}

    def _caches(self) -> Iterator[tuple[str, _lru_cache_wrapper[Any]]]:
        for name, value in list(self._places.namespace.items()):
            if isinstance(value, _lru_cache_wrapper):
                yield name, value
            elif id(value) in self._modules or (isinstance(value, type) and value.__module__ == "__main__"):
                yield from _methods(f"{name}.", vars(value))

    def check(self, changing: Iterable[str]) -> None:
        """Look at every cache that has been filled since the launch.

        Parameters
        ----------
        changing : iterable of str
            Names whose value the loop changes.

        Raises
        ------
        RefusedError
            When what one remembers can't be computed again.
        """
        for name, cache in self._caches():
            if cache.cache_info().misses > self._before.get(id(cache), 0):
                why = "the cell reads its counts" if self._asked else self._impure(cache, frozenset(changing))
                if why:
                    raise RefusedError(
                        f"what {name}() remembers (lru_cache) can't be saved, and {why}: after a resume it would "
                        "return something else",
                        "Keep what it remembers in a dict of your own, or leave the cache out",
                    )

    def _impure(self, cache: _lru_cache_wrapper[Any], changing: frozenset[str]) -> str:
        waiting, seen = [cache.__wrapped__], set()
        while waiting:
            function = waiting.pop()
            if not isinstance(function, types.FunctionType) or function in seen:
                continue
            seen.add(function)
            reads, writes = reads_and_writes(function.__code__)
            for what in (writes, reads & changing, _worldly(function)):
                if what:
                    return f"{function.__name__}() depends on {min(what)!r}, not on its arguments alone"
            waiting += [_plain(function.__globals__.get(name)) for name in reads]
        return ""


def _worldly(function: types.FunctionType) -> set[str]:
    """Return the words a function uses that look beyond its arguments; ``table.get`` of a notebook's dict does not."""
    found: set[str] = set()
    for code in nested_codes(function.__code__):
        owner: Any = None
        for step in dis.get_instructions(code):
            of_dict = step.opname in ("LOAD_ATTR", "LOAD_METHOD") and type(owner) is dict
            if step.opcode in dis.hasname and step.argval in _WORLD and not of_dict:
                found.add(step.argval)
            owner = function.__globals__.get(step.argval) if step.opname == "LOAD_GLOBAL" else None
    return found


def _methods(owner: str, names: Mapping[str, Any]) -> Iterator[tuple[str, _lru_cache_wrapper[Any]]]:
    for name, value in list(names.items()):
        inner = getattr(value, "__func__", value)
        if isinstance(inner, _lru_cache_wrapper):
            yield owner + name, inner


def _plain(value: Any) -> Any:
    return value.__wrapped__ if isinstance(value, _lru_cache_wrapper) else value
