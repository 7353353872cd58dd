"""The random streams of the process: captured as JSON, put back as the very last act before user code goes on.

Only the modules that are imported count. Nothing here draws.
"""

from __future__ import annotations

import base64
import random
import sys
from typing import Any

import numpy as np

RngState = dict[str, Any]


def rng_state() -> RngState:
    """Return the state of every stream, JSON values only."""
    version, internal, gauss = random.getstate()
    state: RngState = {"random": [version, _pack(internal), gauss]}
    if "numpy" in sys.modules:
        state["numpy"] = _numpy_state()
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = _encode(torch.get_rng_state().numpy())
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["torch.cuda"] = [_encode(one.numpy()) for one in torch.cuda.get_rng_state_all()]
    return state


def put_rng(state: RngState) -> None:
    """Put every stream back that the state has and this process has imported."""
    version, packed, gauss = state["random"]
    random.setstate((version, tuple(np.frombuffer(base64.b64decode(packed), "u4").tolist()), gauss))
    if "numpy" in state:
        _put_numpy(state["numpy"])
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if "torch" in state:
        torch.set_rng_state(torch.from_numpy(_decode(state["torch"])))
    if "torch.cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([torch.from_numpy(_decode(one)) for one in state["torch.cuda"]])


def draws_differ(before: RngState, after: RngState) -> bool:
    """Whether anything was drawn or seeded between two states."""
    return any(before[name] != after[name] for name in before.keys() & after.keys())


def rng_names(state: RngState) -> str:
    """Name the streams, for a person."""
    return ", ".join(state)


def _pack(internal: tuple[int, ...]) -> str:
    return _encode(np.array(internal, "u4").view("u1"))


def _numpy_state() -> Any:
    found = np.random.get_state(legacy=False)
    assert isinstance(found, dict)  # noqa: S101  # what legacy=False promises
    if found["bit_generator"] != "MT19937":
        return {**found, "state": found["state"]}
    key = found["state"]["key"]
    return [_encode(key.astype("u4").view("u1")), found["state"]["pos"], found["has_gauss"], found["gauss"]]


def _put_numpy(state: Any) -> None:
    if isinstance(state, dict):
        np.random.set_state(state)
        return
    key, pos, has_gauss, gauss = state
    np.random.set_state(("MT19937", np.frombuffer(base64.b64decode(key), "u4"), pos, has_gauss, gauss))


def _encode(data: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(data).tobytes()).decode("ascii")


def _decode(text: str) -> Any:
    return np.frombuffer(bytearray(base64.b64decode(text)), "u1")
