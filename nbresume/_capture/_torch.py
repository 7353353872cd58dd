"""What has to be known of torch tensors; torch itself is never imported here."""

from __future__ import annotations

import sys
from typing import Any

GRAPH = "it is part of an autograd graph that can still be used"
_NODES = 10_000


def is_dense_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor with plain strided memory."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return False
    return value.layout == torch.strided and not value.is_quantized and value.device.type != "meta"


def is_spent(tensor: Any) -> bool:
    """Whether the autograd graph behind a tensor has been freed, as ``backward()`` does: only its value is left."""
    seen: set[Any] = set()
    waiting = [tensor.grad_fn]
    while waiting and len(seen) < _NODES:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if _is_freed(node):
            return True
        waiting += [inner for inner, _ in node.next_functions]
    return False


def _is_freed(node: Any) -> bool:
    for name in dir(node):
        if name.startswith("_saved_"):
            try:
                getattr(node, name)
            except RuntimeError as error:
                return "freed" in str(error)
    return False
