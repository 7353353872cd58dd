"""What lies beside the pickle stream: large buffers of objects, arrays in any order, and how their bytes are stored."""

from __future__ import annotations

import gc
import io
import pickle
import pickletools
import tracemalloc
import weakref

import numpy as np
import pandas as pd
import pytest
import torch
from _support import round_trip
from hypothesis import given
from hypothesis import strategies as st

from nbresume._capture import Captured, Definitions, _memo, capture, content_digest, restore
from nbresume._capture._blocks import payload
from nbresume._capture._memo import has_any, memoized
from nbresume._capture._opcodes import has_set

BIG, SMALL = 1 << 16, 1 << 12


class Holder:
    """Offers its buffer to pickle, and keeps what it is given back."""

    def __init__(self, content) -> None:
        self.content = content

    def __reduce_ex__(self, protocol):
        return Holder, (pickle.PickleBuffer(self.content),)


def captured(graph, **places) -> Captured:
    return capture(graph, definitions=Definitions({}), inputs={}, places=places)


def stored_and_back(graph, **places):
    """Store the payloads as bytes alone, check how they are asked for, and restore from them."""
    found = captured(graph, **places)
    payloads = [bytes(part) for part in found.payloads()]

    def read(targets) -> None:
        for index, target in targets.items():
            assert target.flags.c_contiguous
            assert target.nbytes == len(payloads[index]) == found.blocks[index].nbytes
            target.reshape(-1).view("u1")[:] = np.frombuffer(payloads[index], "u1")

    return found, restore(found.stream, found.tables, definitions=Definitions({}), inputs={}, read=read)


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_large_buffer_lies_beside_the_stream_and_comes_back_as_pickle_gives_it(kind):
    """``bytes`` where it was read-only, a ``bytearray`` where not: what an object finds is what pickle alone gives."""
    content = kind(bytes(range(256)) * (BIG // 256))
    found, there = stored_and_back(Holder(content))

    assert len(found.stream) < 1000 and [block.nbytes for block in found.blocks] == [BIG]
    assert np.shares_memory(found.blocks[0].data, np.frombuffer(content, "u1"))
    assert type(there.content) is type(pickle.loads(pickle.dumps(Holder(content), 5)).content) is kind
    assert there.content == content


def test_a_small_buffer_stays_in_the_stream():
    found, there = stored_and_back(Holder(b"x" * SMALL))

    assert not found.blocks
    assert there.content == b"x" * SMALL


def test_objects_over_one_buffer_share_it_again_and_stay_two():
    """Two objects and an array over one memory: a change through one is seen through the others."""
    content = bytearray(BIG)
    one, other, again = stored_and_back([Holder(content), Holder(content), Holder(bytearray(BIG))])[1]
    assert one is not other and one.content is other.content and again.content is not one.content

    array = np.arange(BIG, dtype="u1")
    part = Holder(memoryview(array)[100:-100])
    array_there, part_there = stored_and_back([array, part])[1]
    array_there[100] = 77
    assert part_there.content[0] == 77 and len(part_there.content) == BIG - 200
    part_there.content[1] = 78
    assert array_there[101] == 78


def test_a_read_only_buffer_over_a_writeable_array_stays_read_only():
    array = np.arange(BIG, dtype="u1")
    array_there, part_there = stored_and_back([array, Holder(memoryview(array).toreadonly())])[1]

    assert array_there.flags.writeable and memoryview(part_there.content).readonly
    array_there[5] = 200
    assert part_there.content[5] == 200


def test_arrow_columns_lie_beside_the_stream():
    """Text columns of pandas 3 are Arrow's: megabytes that pickle would copy."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"n": np.arange(20_000), "s": [f"row {i}" for i in range(20_000)]})
    frame["s"] = frame["s"].astype(pd.StringDtype("pyarrow"))
    found, there = stored_and_back({"frame": frame, "part": frame["s"][100:200]})

    assert len(found.stream) < 20_000
    pd.testing.assert_frame_equal(there["frame"], frame)
    pd.testing.assert_series_equal(there["part"], frame["s"][100:200])


ORDERS = {
    "C": np.arange(60_000.0).reshape(200, 300),
    "Fortran": np.asfortranarray(np.arange(60_000.0).reshape(200, 300)),
    "Fortran, three axes": np.asfortranarray(np.arange(60_000).reshape(20, 30, 100)),
    "turned inside": np.arange(60_000).reshape(20, 30, 100).transpose(0, 2, 1),
    "every third column": np.arange(60_000.0).reshape(200, 300)[:, ::3],
    "backwards": np.arange(60_000.0)[::-1],
    "no axis": np.array(3.5),
    "dates": np.arange(5_000).view("M8[s]")[::4],
}


@pytest.mark.parametrize("is_variable", [True, False])
@pytest.mark.parametrize("name", ORDERS)
def test_an_array_in_any_order_comes_back_from_its_payload(name, is_variable):
    """With its strides, and a variable's own array stored by its rows, as any HDF5 reader expects it."""
    array = ORDERS[name]
    found, there = stored_and_back([array], **({"a": array} if is_variable else {}))

    assert there[0].tolist() == array.tolist()
    assert there[0].strides == array.strides and there[0].dtype == array.dtype
    for block in found.blocks:
        filled = np.empty(block.nbytes, "u1")
        block.fill(filled)
        assert filled.tobytes() == bytes(payload(block)) == b"".join(block.parts())
        if block.place:
            assert block.data.tolist() == array.tolist()


def test_a_fortran_array_inside_is_stored_without_a_copy():
    array = np.asfortranarray(np.zeros((300, 200)))
    found = captured([array])

    assert np.shares_memory(np.frombuffer(next(found.payloads()), "u1"), array)


@pytest.mark.parametrize("name", ["C", "Fortran", "thin", "tensor", "buffer"])
def test_neither_capture_nor_digest_copies_what_is_large(name):
    """Ten megabytes in any order: the peak of both stays under three."""
    side = 1 << 10
    value = {
        "C": lambda: np.zeros((side, side + side // 4)),
        "Fortran": lambda: np.zeros((side, side + side // 4), order="F"),
        "thin": lambda: np.zeros((3, side, side + side // 4)).transpose(1, 2, 0)[:, :, 1],
        "tensor": lambda: torch.zeros(side, side + side // 4, dtype=torch.float64).T,
        "buffer": lambda: Holder(bytearray(10 << 20)),
    }[name]()
    graph = {"value": value}
    content_digest(graph, definitions=Definitions({}))
    tracemalloc.start()
    try:
        found = captured(graph, value=value)
        content_digest(graph, definitions=Definitions({}))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert sum(block.nbytes for block in found.blocks) >= 10 << 20
    assert peak < 3 << 20


def test_what_was_captured_is_let_go_at_once():
    """No cycle of the pickler's keeps the loop's arrays until Python looks for cycles."""
    one = Holder(bytearray(BIG))
    seen = weakref.ref(one)
    gc.disable()
    try:
        found = captured([one, np.zeros(9)])
        assert found.met()
        del found, one
        assert seen() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------ what the fast ways may not change


class Plain:
    """Nothing of its own for pickle."""


class Slotted:
    """Attributes in slots, and more in a dict."""

    __slots__ = ("__dict__", "a")


class Answers(Plain):
    """Tells pickle its state by itself."""

    def __getstate__(self):
        return {"told": 1}


class Odd(Plain):
    """Its attributes are not what its ``__dict__`` says."""

    @property
    def __dict__(self):
        return {"other": 1}


def filled(kind):
    one = kind()
    object.__setattr__(one, "a", [1])
    return one


def test_objects_are_saved_as_pickle_saves_them():
    """What is done in the place of ``object.__reduce_ex__`` gives the same bytes."""
    listens = filled(Plain)
    listens.__reduce_ex__ = lambda protocol: (Plain, ())
    empty = Plain()
    for one in [filled(Plain), filled(Slotted), filled(Answers), filled(Odd), listens, empty]:
        graph = [one, one, filled(type(one))]
        assert captured(graph).stream == pickle.dumps(graph, 5)


def test_the_memo_of_a_pickler_is_read_where_it_lies():
    sink = io.BytesIO()
    pickler = pickle.Pickler(sink, 5)
    assert memoized(pickler) == []
    pickler.dump([{i: (i, str(i))} for i in range(3000)])

    assert {id(one) for one in memoized(pickler)} == {id(one) for _, one in pickler.memo.copy().values()}


@pytest.mark.parametrize("is_known", [True, False], ids=["read where it lies", "asked"])
def test_whether_a_pickler_has_met_an_object_is_told_without_a_list(monkeypatch, is_known):
    monkeypatch.setattr(_memo, "_layout_holds", lambda: is_known)
    inside, outside = [filled(Plain) for _ in range(50)], [filled(Plain) for _ in range(50)]
    pickler = pickle.Pickler(io.BytesIO(), 5)
    assert not has_any(pickler, inside)
    pickler.dump([{i: (one, str(i))} for i, one in enumerate(inside)])
    assert all(has_any(pickler, [*outside, one]) for one in inside)
    assert not has_any(pickler, outside)
    assert not has_any(pickler, [])


def test_what_was_captured_tells_of_each_object_that_it_has_met_and_of_no_other():
    inside, outside = [filled(Plain), filled(Slotted), np.zeros(3)], [filled(Plain), [1], np.zeros(3)]
    found = captured([inside, {"a": inside[0]}])
    assert all(found.has_met([one]) == (id(one) in found.met()) for one in [*inside, *outside, inside])
    assert found.has_met(inside)
    assert not found.has_met(outside)


atoms = (
    st.none()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=9)
    | st.sampled_from([0x948F, 38031, "\x8f\x94", b"\x8f\x94]" * 3])
)
graphs = st.recursive(
    atoms | st.sets(st.integers(0, 99)),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.integers(0, 70_000), inner),
)


@given(graphs, st.sampled_from([0, 70_000]))
def test_a_set_in_a_pickle_is_told_from_bytes_that_look_like_one(graph, padding):
    graph = [list(range(padding)), graph, b"\x8f\x94]" * padding, graph, "ende"]
    stream = pickle.dumps(graph, 5)
    has = any(op.name == "EMPTY_SET" for op, _, _ in pickletools.genops(stream)) if not padding else None

    found = has_set(stream)
    if padding:  # too many places to look at, or a text outside any frame: never denied
        assert found or not any(op.name == "EMPTY_SET" for op, _, _ in pickletools.genops(stream))
    else:
        assert found is has or (found and stream.count(b"\x8f\x94") > 8)


def test_numbers_that_look_like_a_set_are_none():
    stream = pickle.dumps([*range(37_000, 39_000)], 5)

    assert b"\x8f\x94" in stream and not has_set(stream)
    assert has_set(pickle.dumps([*range(37_000, 39_000), set()], 5))
    assert round_trip([38_031]) == [38_031]
