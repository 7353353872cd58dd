"""What must stay equal for a resume to be the same run, as pure values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from ._code import (
        code_digest,
        function_digest,
        is_local_module,
        nested_codes,
        normalised,
        reaches_any_name,
        reads_and_writes,
    )
    from ._compare import Identity, Part
    from ._values import Fingerprint, class_data, fingerprint, is_filled, short_text, slots_of

__all__ = [
    "Fingerprint",
    "Identity",
    "Part",
    "class_data",
    "code_digest",
    "fingerprint",
    "function_digest",
    "is_filled",
    "is_local_module",
    "nested_codes",
    "normalised",
    "reaches_any_name",
    "reads_and_writes",
    "short_text",
    "slots_of",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "_code": "code_digest function_digest is_local_module nested_codes normalised "
        "reaches_any_name reads_and_writes",
        "_compare": "Identity Part",
        "_values": "Fingerprint class_data fingerprint is_filled short_text slots_of",
    },
)
