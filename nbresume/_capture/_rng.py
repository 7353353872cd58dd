"""The random streams of the process: captured as JSON, put back as the very last act before user code goes on.

Only the modules that are imported count. Nothing here draws.
"""

from __future__ import annotations

import base64
import pickle
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RngState = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Source:
    """One kind of random stream.

    Attributes
    ----------
    look : callable
        Returns its state as a value that can be compared, quickly; None where there is no such stream.
    encode, put : callable
        Make JSON of that, and put it back.
    """

    look: Callable[[], Any]
    encode: Callable[[Any], Any]
    put: Callable[[Any], None]


def rng_look() -> RngState:
    """Return the state of every stream, to be compared only."""
    return {name: found for name, source in _SOURCES.items() if (found := source.look()) is not None}


def rng_encoded(look: RngState) -> RngState:
    """Make JSON values of a look."""
    return {name: _SOURCES[name].encode(found) for name, found in look.items()}


def rng_state() -> RngState:
    """Return the state of every stream, JSON values only."""
    return rng_encoded(rng_look())


def put_rng(state: RngState) -> None:
    """Put every stream back that the state has and this process has imported."""
    for name, source in _SOURCES.items():
        if name in state:
            source.put(state[name])


def draws_differ(before: RngState, after: RngState) -> bool:
    """Whether anything was drawn or seeded between two states, or two looks."""
    return any(before[name] != after[name] for name in before.keys() & after.keys())


def rng_unsaved() -> list[str]:
    """Name the streams of this process that nobody can save, with a way out."""
    found = []
    if getattr(sys.modules.get("cupy.random._generator"), "_random_states", None):
        found.append("cupy.random (CuPy can't tell its state; draw with numpy and copy, or seed in each iteration)")
    if "tensorflow" in sys.modules:
        found.append("tensorflow's ops without a generator (use tf.random.get_global_generator(), which is saved)")
    return found


def rng_names(state: RngState) -> str:
    """Name the streams, for a person."""
    return ", ".join(state)


# ---------------------------------------------------------------------- Python


def _encode_python(look: Any) -> Any:
    version, internal, gauss = look
    return [version, _text(np.array(internal, "u4").tobytes()), gauss]


def _put_python(state: Any) -> None:
    version, packed, gauss = state
    random.setstate((version, tuple(np.frombuffer(base64.b64decode(packed), "u4").tolist()), gauss))


# ---------------------------------------------------------------------- numpy


def _look_at_numpy() -> Any:
    found: Any = np.random.get_state(legacy=False)
    if found["bit_generator"] != "MT19937":
        return found["bit_generator"], pickle.dumps(found)
    key = found["state"]["key"].astype("u4").tobytes()
    return "MT19937", key, found["state"]["pos"], found["has_gauss"], found["gauss"]


def _encode_numpy(look: Any) -> Any:
    kind, key, *rest = look
    return [_text(key), *rest] if kind == "MT19937" else {"bit_generator": kind, "state": _text(key)}


def _put_numpy(state: Any) -> None:
    kind = state["bit_generator"] if isinstance(state, dict) else "MT19937"
    if np.random.get_state(legacy=False)["bit_generator"] != kind:
        np.random.set_bit_generator(getattr(np.random, kind)())  # type: ignore[attr-defined]
    if isinstance(state, dict):
        np.random.set_state(pickle.loads(_bytes(state["state"])))
        return
    key, pos, has_gauss, gauss = state
    np.random.set_state(("MT19937", np.frombuffer(_bytes(key), "u4"), pos, has_gauss, gauss))


# ---------------------------------------------------------------------- torch


def _torch() -> Any:
    return sys.modules.get("torch")


def _look_at_torch() -> Any:
    torch = _torch()
    return None if torch is None else _of_tensor(torch.get_rng_state())


def _put_torch(state: Any) -> None:
    if (torch := _torch()) is not None:
        torch.set_rng_state(_to_tensor(state))


def _look_at_cuda() -> Any:
    torch = _torch()
    if torch is None or not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None
    return tuple(map(_of_tensor, torch.cuda.get_rng_state_all()))


def _put_cuda(state: Any) -> None:
    torch = _torch()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(list(map(_to_tensor, state)))


def _has_mps() -> bool:
    torch = _torch()
    return torch is not None and torch.backends.mps.is_available()


def _look_at_mps() -> Any:
    return _of_tensor(_torch().mps.get_rng_state()) if _has_mps() else None


def _put_mps(state: Any) -> None:
    if _has_mps():
        _torch().mps.set_rng_state(_to_tensor(state))


def _of_tensor(tensor: Any) -> bytes:
    data: bytes = tensor.cpu().numpy().tobytes()
    return data


def _to_tensor(text: str) -> Any:
    return _torch().from_numpy(np.frombuffer(bytearray(_bytes(text)), "u1"))


# ---------------------------------------------------------------------- TensorFlow


def _tf_generator() -> Any:
    """Return TensorFlow's global generator, where the notebook has made one: asking for it makes it, and draws."""
    ops = sys.modules.get("tensorflow.python.ops.stateful_random_ops")
    return getattr(ops, "global_generator", None) if ops is not None else None


def _look_at_tf() -> Any:
    generator = _tf_generator()
    return None if generator is None else (int(generator.algorithm), *generator.state.numpy().tolist())


def _put_tf(state: Any) -> None:
    tensorflow, (algorithm, *values) = sys.modules.get("tensorflow"), state
    if tensorflow is not None:
        tensorflow.random.set_global_generator(tensorflow.random.Generator.from_state(values, alg=algorithm))


# ----------------------------------------------------------------------


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def _texts(look: Any) -> list[str]:
    return list(map(_text, look))


_SOURCES: dict[str, _Source] = {
    "random": _Source(random.getstate, _encode_python, _put_python),
    "numpy": _Source(_look_at_numpy, _encode_numpy, _put_numpy),
    "torch": _Source(_look_at_torch, _text, _put_torch),
    "torch.cuda": _Source(_look_at_cuda, _texts, _put_cuda),
    "torch.mps": _Source(_look_at_mps, _text, _put_mps),
    "tensorflow": _Source(_look_at_tf, list, _put_tf),
}
