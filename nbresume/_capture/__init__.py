"""State in one object graph, the RNG and the rest of what a process carries; dill is known here alone."""

from __future__ import annotations

from ._ambient import ambient_state, put_ambient
from ._explain import belongs_to_process, culprit, reachable, unsaveable
from ._functions import carries_state
from ._graph import Captured, Definitions, Loaded, capture, content_digest, load, rebuild, restore, size_of
from ._layout import layout
from ._memory import share_memory_at
from ._rng import draws_differ, put_rng, rng_encoded, rng_look, rng_names, rng_state, rng_unsaved
from ._sets import keeps_order

__all__ = [
    "Captured",
    "Definitions",
    "Loaded",
    "ambient_state",
    "belongs_to_process",
    "capture",
    "carries_state",
    "content_digest",
    "culprit",
    "draws_differ",
    "keeps_order",
    "layout",
    "load",
    "put_ambient",
    "put_rng",
    "reachable",
    "rebuild",
    "restore",
    "rng_encoded",
    "rng_look",
    "rng_names",
    "rng_state",
    "rng_unsaved",
    "share_memory_at",
    "size_of",
    "unsaveable",
]
