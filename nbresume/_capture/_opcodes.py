"""Whether a pickle has a set in it, told from its bytes: without a look at the objects, of which there may be millions.

A set begins with two bytes that other bytes look like now and then: numbers, and the counts of long texts. Frames begin
at known places, and what stands before such a place in its frame tells whether it begins a set.
"""

from __future__ import annotations

import pickle
import re
from pickletools import (
    TAKEN_FROM_ARGUMENT1,
    TAKEN_FROM_ARGUMENT4,
    TAKEN_FROM_ARGUMENT4U,
    TAKEN_FROM_ARGUMENT8U,
    opcodes,
)

_SET = b"\x8f\x94"
_CODES = "".join(op.code for op in opcodes).encode("latin-1")
_LIKELY = re.compile(re.escape(_SET) + b"(?=[" + re.escape(_CODES) + b"])")
_FRAME, _FRAME_HEAD = pickle.FRAME[0], 9
_TRIES = 8
"""Places that are looked at, a millisecond each; with more of them a set is taken for granted."""
_COUNT = {TAKEN_FROM_ARGUMENT1: 1, TAKEN_FROM_ARGUMENT4: 4, TAKEN_FROM_ARGUMENT4U: 4, TAKEN_FROM_ARGUMENT8U: 8}
_LENGTHS = {ord(op.code): 1 + (op.arg.n if op.arg else 0) for op in opcodes if not op.arg or op.arg.n >= 0}
"""Bytes of an opcode with what belongs to it."""
_COUNTS = {ord(op.code): _COUNT[op.arg.n] for op in opcodes if op.arg and op.arg.n in _COUNT}
"""Bytes of the count behind an opcode that tells its length by itself."""


def has_set(stream: bytes) -> bool:
    """Whether a pickle of protocol 5 has a set in it; also true where that would take long to tell."""
    if _SET not in stream:
        return False
    places = [found.start() for found in _LIKELY.finditer(stream)]
    if len(places) > _TRIES:
        return True
    at = end = 0
    for place in places:
        if place >= end > at:
            at = end
        while at < place:
            if stream[at] == _FRAME:
                end = at + _FRAME_HEAD + int.from_bytes(stream[at + 1 : at + _FRAME_HEAD], "little")
                at = end if end <= place else at + _FRAME_HEAD
                continue
            step = _length(stream, at)
            if not step:
                return True  # an opcode that pickle does not write by itself
            at += step
        if at == place:
            return True
    return False


def _length(stream: bytes, at: int) -> int:
    code = stream[at]
    if length := _LENGTHS.get(code):
        return length
    count = _COUNTS.get(code, 0)
    return 1 + count + int.from_bytes(stream[at + 1 : at + 1 + count], "little") if count else 0
