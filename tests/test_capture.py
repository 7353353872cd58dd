"""One object graph, there and back: exactly, with what was shared still shared, and without touching the world."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import random
import socket
import sqlite3
import struct
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from _support import round_trip, script

from nbresume._capture import Definitions, capture, content_digest, culprit, put_rng, rng_state, unsaveable
from nbresume._identity import fingerprint
from nbresume.errors import ReplayError, UnsaveableError

# ------------------------------------------------------------------ the type table

SCALARS = [
    *(None, True, False, 0, -1, 2**63, -(2**64), 10**300, 0.0, -0.0, 1e-320, float("inf"), -float("inf"), 1 - 2j),
    *("", "a\0b", "größer µ 🎲", "\ud800", "x" * (1 << 20), b"", b"\0\1\0", b"\xff" * 70_000, bytearray(b"a\0")),
    *((), (1,), [], {}, set(), frozenset({1}), range(3, 30, 4), slice(1, None, 2), Ellipsis, NotImplemented),
    *(
        decimal.Decimal("1.10"),
        fractions.Fraction(1, 3),
        datetime.date(2026, 1, 2),
        Path("a/b"),
        collections.Counter("aab"),
    ),
    *(datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC), datetime.timedelta(1, 2, 3)),
    *(
        np.bool_(True),
        np.int8(-3),
        np.float32(1.5),
        np.float64("-inf"),
        np.complex64(1j),
        np.str_("ü"),
        np.bytes_(b"a"),
    ),
    *(np.datetime64("2026-01-02"), np.datetime64("NaT"), np.timedelta64(3, "ms")),
    *(
        collections.deque([1, 2], maxlen=3),
        collections.OrderedDict([("b", 1), ("a", 2)]),
        collections.defaultdict(list, a=[1]),
    ),
    {"a/b": 1, "": 2, "a\0": 3, 4: 5, (1, "x"): 6, None: 7, 1.5: 8, True: 9, frozenset({1}): 10},
]


def same(one: Any, other: Any) -> bool:
    """Whether two scalars are one value of one type, down to the sign of zero."""
    if type(one) is not type(other):
        return False
    return one == other and repr(one) == repr(other) or (one != one and other != other)


@pytest.mark.parametrize("value", SCALARS, ids=lambda value: f"{type(value).__name__}-{str(value)[:20]!r}")
def test_a_value_comes_back_with_its_type(value):
    assert same(round_trip(value), value)


def test_nan_keeps_its_payload():
    payload = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_DEAD_BEEF))[0]
    assert struct.pack("<d", round_trip(payload)) == struct.pack("<d", payload)
    array = np.array([0x7FF8_0000_DEAD_BEEF, 0xFFF0_0000_0000_0001], "u8").view("f8")
    assert round_trip(array).tobytes() == array.tobytes()


STRUCTURED = np.zeros(3, [("name", "U4"), ("at", "f8", (2,)), ("n", ">i2")])
STRUCTURED["name"] = ["a", "ü", ""]
STRUCTURED["n"] = [1, 2, 3]
MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
ARRAYS = {
    "float": np.arange(12.0).reshape(3, 4),
    "0-d": np.array(3.5),
    "empty": np.zeros((0, 3)),
    "empty 1-d": np.zeros(0, "i2"),
    "bool": np.array([True, False]),
    "half": np.arange(3, dtype="f2"),
    "long double": np.arange(3, dtype="g"),
    "complex": np.array([1j, 2]),
    "other bytes": np.arange(3, dtype=">f8"),
    "unicode": np.array(["a", "größer", ""]),
    "bytes": np.array([b"a\0b", b""], "S3"),
    "datetime": np.array(["2026-01-02", "NaT"], "M8[s]"),
    "timedelta": np.array([1, 2], "m8[ms]"),
    "void": np.array([b"ab", b"cd"], "V2"),
    "structured": STRUCTURED,
    "field": STRUCTURED["at"],
    "Fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "transposed": np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
    "backwards": np.arange(12.0)[::-1],
    "backwards in both": np.arange(12.0).reshape(3, 4)[::-1, ::-2],
    "every third": np.arange(30)[::3],
    "broadcast": np.broadcast_to(np.arange(3.0), (4, 3)),
    "object": np.array([1, "a", None, [1]], dtype=object),
    "large": np.random.default_rng(0).normal(size=5000),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_comes_back_with_its_type_shape_and_bytes(name):
    value = ARRAYS[name]
    found = round_trip(value)
    assert type(found) is type(value)
    assert (found.dtype, found.shape) == (value.dtype, value.shape)
    if value.dtype.hasobject:
        assert found.tolist() == value.tolist()
    else:
        assert found.tobytes() == value.tobytes()
    assert found.flags.writeable == value.flags.writeable
    assert found.flags.f_contiguous == value.flags.f_contiguous


@pytest.mark.parametrize("name", ["float", "Fortran", "backwards", "transposed", "every third"])
def test_a_sum_over_a_restored_array_is_equal_to_the_bit(name):
    """Strides decide the order in which numpy adds."""
    value = ARRAYS[name] * 0.1
    value = value if name != "backwards" else (np.arange(12.0) * 0.1)[::-1]
    assert round_trip(value).strides == value.strides
    assert round_trip(value).sum(axis=0).tobytes() == value.sum(axis=0).tobytes()


@pytest.mark.parametrize(
    "value",
    [MASKED, np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])],
    ids=["masked", "record"],
)
def test_a_subclass_of_array_keeps_its_class(value):
    found = round_trip(value)
    assert type(found) is type(value)
    assert (found.dtype, found.tolist()) == (value.dtype, value.tolist())


class Named(np.ndarray):
    """An array with an attribute of its own."""

    def __array_finalize__(self, other: Any) -> None:
        self.name = getattr(other, "name", "unnamed")


@pytest.mark.parametrize(
    "look",
    [
        lambda base: base.view(np.recarray),
        lambda base: np.asmatrix(base["a"]),
        lambda base: np.ma.masked_array(base["a"], mask=[1, 0, 0, 0], copy=False, hard_mask=True),
        lambda base: base["a"][::2].view(Named),
    ],
    ids=["record", "matrix", "masked", "own class"],
)
def test_any_view_keeps_looking_at_its_base(look):
    """Whatever class of array a view has, writing to the base is seen through it after the way back."""
    base = np.zeros(4, [("a", "f8"), ("b", "i4")])
    there, view = round_trip((base, look(base)))
    there["a"][2] = 7.5

    assert type(view) is type(look(base))
    assert 7.5 in np.ma.getdata(view).view(np.ndarray).ravel().tolist() or view.a[2] == 7.5
    assert np.ma.getmaskarray(view).tolist() == np.ma.getmaskarray(look(base)).tolist()


def test_an_array_of_an_own_class_keeps_its_attributes():
    """What a class of arrays carries beside its bytes comes back too, and a mask that two share stays shared."""
    named = np.arange(3.0).view(Named)
    named.name = ["first"]
    mask = np.array([True, False, False])
    masked = np.ma.MaskedArray(np.arange(3), mask=mask, copy=False, fill_value=-9)
    owner = round_trip({"named": named, "text": named.name, "masked": masked})

    assert owner["named"].name is owner["text"]
    assert (owner["masked"].fill_value, owner["masked"].filled().tolist()) == (-9, [-9, 1, 2])


def test_pandas_comes_back_equal():
    frame = pd.DataFrame(
        {"a": [1, 2], "b": ["x", None], "c": pd.Categorical(["u", "v"]), "d": pd.to_datetime(["2026-01-01", None])},
        index=pd.MultiIndex.from_tuples([(0, "p"), (1, "q")], names=["i", "j"]),
    )
    pd.testing.assert_frame_equal(round_trip(frame), frame)
    pd.testing.assert_series_equal(round_trip(frame["c"]), frame["c"])


class Node:
    """One link of a list."""

    def __init__(self, number: int, after: Node | None) -> None:
        self.number, self.after = number, after


@pytest.mark.parametrize("levels", [150, 2_000, 20_000])
def test_deep_nesting_comes_back(levels):
    """A linked list is a nest as deep as it is long; no limit of the interpreter is left changed."""
    limit = sys.getrecursionlimit()
    chain, nest = None, []
    for number in range(levels):
        chain, nest = Node(number, chain), [nest]
    one, other = round_trip((chain, nest))

    numbers = []
    while one is not None:
        numbers.append(one.number)
        one = one.after
    depth = 0
    while other:
        (other,), depth = other, depth + 1
    assert (numbers, depth, sys.getrecursionlimit()) == (list(range(levels))[::-1], levels, limit)


def test_where_no_thread_can_start_the_first_error_stays_and_the_limit_too(monkeypatch):
    """A machine without room for a large stack refuses the nest, and is left as it was."""
    nest: list = []
    for _ in range(3_000):
        nest = [nest]
    limit, size = sys.getrecursionlimit(), threading.stack_size()

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert isinstance(unsaveable(nest, definitions=Definitions({})), RecursionError)
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, size)


def test_a_difference_far_down_is_seen():
    """A fingerprint looks to the end of a nest: nothing below some level is taken for equal."""
    first, second = ["a"], ["b"]
    for _ in range(5_000):
        first, second = [first], [second]
    assert fingerprint(first).digest != fingerprint(second).digest


def test_what_is_nested_without_an_end_is_refused_with_its_path():
    """Beyond any stack: an error that names the place, and the interpreter goes on."""
    value: list = []
    for _ in range(300_000):
        value = [value]
    error = unsaveable(value, definitions=Definitions({}))
    found = culprit("nest", value, error, definitions=Definitions({}))
    while value:
        (value,) = value

    assert found.path.startswith("nest[0][0]")
    assert "recursion" in str(found)


def test_ten_thousand_small_arrays_come_back():
    value = [np.full(3, n) for n in range(10_000)]
    found = round_trip(value)
    assert all(int(array[2]) == n for n, array in enumerate(found))


# ------------------------------------------------------------------ what is shared stays shared


def test_one_object_under_two_names_stays_one():
    inner: dict[str, Any] = {"n": [1]}
    inner["self"] = inner
    one, other, third = round_trip([inner, inner, inner["n"]])
    assert one is other
    assert one["n"] is third
    assert one["self"] is one


def test_views_of_one_base_keep_looking_at_it():
    base = np.arange(12.0)
    views = [base, base[2:5], base.reshape(3, 4)[:, 1], base[::-1], base.view("u8")]
    found = round_trip(views)
    found[0][:] = np.arange(12.0) * 7
    views[0][:] = np.arange(12.0) * 7
    for one, other in zip(found, views, strict=True):
        assert one.tobytes() == other.tobytes()
        assert np.shares_memory(one, found[0])


def test_overlapping_views_of_an_undeclared_base_share_and_keep_their_bytes_alone():
    base = np.zeros(1_000_000)
    graph = [base[10:20], base[15:25]]
    base[10:25] = range(15)
    found = capture(graph, definitions=Definitions({}), inputs={}, places={})
    assert sum(block.data.nbytes for block in found.blocks) <= 15 * 8
    one, other = round_trip(graph)
    one[5] = 99
    assert other[0] == 99
    assert one.tolist()[:5] == [0, 1, 2, 3, 4]


def test_a_thin_slice_of_a_large_array_does_not_save_the_large_one():
    base = np.zeros((4000, 500))
    for view in (base[:, 3], base[::100, 2], base[5]):
        found = capture(view, definitions=Definitions({}), inputs={}, places={})
        assert sum(block.data.nbytes for block in found.blocks) == view.nbytes


def test_a_read_only_view_and_its_writeable_base_stay_apart():
    base = np.arange(4.0)
    locked = base.view()
    locked.flags.writeable = False
    one, other = round_trip([base, locked])
    one[0] = 9
    assert other[0] == 9
    assert (one.flags.writeable, other.flags.writeable) == (True, False)


def test_serialising_copies_no_array():
    """Extra peak memory of a capture stays below a quarter of the array."""
    value = np.zeros(1 << 22)
    found = capture({"value": value}, definitions=Definitions({}), inputs={}, places={"value": value})
    assert len(found.stream) + len(found.tables) < 5000
    assert found.blocks[0].data is value


# ------------------------------------------------------------------ random streams


def test_a_shared_generator_stays_one_and_goes_on():
    rng = np.random.default_rng(5)
    rng.normal(size=3)
    one, other = round_trip([rng, {"deep": rng}])
    other = other["deep"]
    assert one is other
    assert one.normal() == rng.normal()


def test_two_generators_over_one_bit_generator_keep_sharing_it():
    bits = np.random.PCG64(1)
    one, other = np.random.Generator(bits), np.random.Generator(bits)
    found = round_trip([one, other])
    assert [found[0].random(), found[1].random()] == [one.random(), other.random()]


def test_spawned_children_go_on_with_their_numbers():
    rng = np.random.default_rng(5)
    rng.spawn(2)
    found = round_trip(rng)
    assert found.spawn(1)[0].random() == rng.spawn(1)[0].random()
    seeds = np.random.SeedSequence(3)
    seeds.spawn(4)
    assert round_trip(seeds).spawn(1)[0].spawn_key == (4,)


@pytest.mark.parametrize(
    "bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM]
)
def test_every_bit_generator_goes_on(bits):
    rng = np.random.Generator(bits(3))
    rng.integers(0, 10, dtype="u4")  # half of a 64-bit draw stays behind
    found = round_trip(rng)
    assert found.integers(0, 1 << 30, 20, dtype="u4").tolist() == rng.integers(0, 1 << 30, 20, dtype="u4").tolist()


def test_old_generators_go_on_with_their_second_gauss():
    state, chance = np.random.RandomState(3), random.Random(3)
    state.normal()
    chance.gauss(0, 1)
    found, other = round_trip([state, chance])
    assert found.normal(size=3).tolist() == state.normal(size=3).tolist()
    assert [other.gauss(0, 1) for _ in range(3)] == [chance.gauss(0, 1) for _ in range(3)]


def test_the_global_streams_are_put_back_exactly_from_json():
    import json

    random.gauss(0, 1)
    np.random.normal()
    torch.randn(1)
    state = json.loads(json.dumps(rng_state()))
    draw = lambda: (random.gauss(0, 1), np.random.normal(), float(torch.randn(1)), random.random())  # noqa: E731
    first = draw()
    put_rng(state)
    assert draw() == first


def test_looking_at_the_streams_draws_nothing():
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    rng_state()
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


def test_a_reference_to_the_process_stream_stays_one():
    """``check_random_state(None)`` keeps numpy's own RandomState in an estimator."""
    found = round_trip({"rng": np.random.mtrand._rand, "r": random._inst, "t": torch.default_generator})
    assert found["rng"] is np.random.mtrand._rand
    assert found["r"] is random._inst
    assert found["t"] is torch.default_generator


def test_a_torch_generator_goes_on():
    rng = torch.Generator().manual_seed(4)
    torch.rand(3, generator=rng)
    found = round_trip([rng, rng])
    assert found[0] is found[1]
    assert torch.equal(torch.rand(3, generator=found[0]), torch.rand(3, generator=rng))


# ------------------------------------------------------------------ torch


def test_tied_weights_stay_tied_and_the_optimizer_keeps_pointing_at_the_model():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    model[1].weight = model[0].weight
    opt = torch.optim.Adam(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(opt, 2)

    def step(model, opt, schedule):
        opt.zero_grad()
        model(torch.ones(2, 4)).square().sum().backward()
        opt.step()
        schedule.step()
        return [p.detach().clone() for p in model.parameters()]

    step(model, opt, schedule)
    found = round_trip({"m": model, "o": opt, "s": schedule})
    assert found["m"][0].weight is found["m"][1].weight
    assert found["o"].param_groups[0]["params"][0] is found["m"][0].weight
    assert found["s"].optimizer is found["o"]
    for _ in range(3):
        one, other = step(model, opt, schedule), step(found["m"], found["o"], found["s"])
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "tensor",
    [
        *(torch.arange(3), torch.zeros(0, 2), torch.tensor(2.5), torch.arange(12.0).reshape(3, 4).t()),
        *(torch.arange(3.0).to(torch.bfloat16), torch.tensor([1j, 2]).conj(), torch.zeros(3, dtype=torch.bool)),
        *(torch.arange(12.0)[::3], torch.ones(3).expand(2, 3), torch.ones(2, requires_grad=True)),
    ],
    ids=lambda t: f"{t.dtype}-{tuple(t.shape)}",
)
def test_a_tensor_comes_back(tensor):
    found = round_trip(tensor)
    assert torch.equal(found, tensor)
    assert (found.dtype, found.stride(), found.requires_grad) == (tensor.dtype, tensor.stride(), tensor.requires_grad)


def test_tensors_of_one_storage_and_a_numpy_array_over_it_stay_together():
    base = torch.arange(6.0)
    found = round_trip({"t": base, "part": base[2:4], "n": base.numpy()})
    found["t"][2] = 99
    assert found["part"][0] == 99
    assert found["n"][2] == 99


def test_gradients_and_hooks_of_a_parameter_come_back():
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.sum().backward()
    found = round_trip(parameter)
    assert type(found) is torch.nn.Parameter
    assert torch.equal(found.grad, parameter.grad)


# ------------------------------------------------------------------ functions and classes of the notebook


def notebook(code: str) -> dict[str, Any]:
    """Run code as a notebook's cells are run."""
    namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    exec(code, namespace)
    return namespace


def test_closures_that_share_a_cell_still_share_it():
    ns = notebook(
        """
def counter():
    n, log = 0, []
    def up():
        nonlocal n
        n += 1
        log.append(n)
        return n
    return up, lambda: n, log
up, look, log = counter()
up()
"""
    )
    up, look, log = round_trip([ns["up"], ns["look"], ns["log"]], ns)
    assert (up(), look(), log) == (2, 2, [1, 2])
    assert ns["look"]() == 1


def test_a_recorder_over_a_list_keeps_recording_into_that_list():
    ns = notebook(
        "losses = []\nrecord = lambda x: losses.append(x)\ndef make(out): return lambda x: out.append(x)\nr = make(losses)"
    )
    found = round_trip({"losses": ns["losses"], "r": ns["r"]}, ns)
    found["r"](3)
    assert found["losses"] == [3]


def test_a_lambda_keeps_its_defaults_its_attributes_and_itself():
    ns = notebook(
        "f = lambda x, k=[1], *, w=2: (x, k, w)\nf.tag = 'a'\ndef rec():\n    g = lambda n: n and g(n - 1)\n    return g\ng = rec()"
    )
    f, g = round_trip([ns["f"], ns["g"]], ns)
    assert (f(1), f.tag) == ((1, [1], 2), "a")
    assert g(3) == 0


def test_a_class_of_the_notebook_is_its_own_at_any_depth():
    ns = notebook(
        "class A:\n    class B:\n        pass\n    def go(self): return type(self).__name__\na = [{'x': (A(), A.B())}]"
    )
    found = round_trip(ns["a"], ns)[0]["x"]
    assert type(found[0]) is ns["A"]
    assert type(found[1]) is ns["A"].B


CLASSES = """
import dataclasses, enum, collections, abc, functools
@dataclasses.dataclass
class Config:
    lr: float = 0.1
    tags: list = dataclasses.field(default_factory=list)
@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
class Color(enum.Enum):
    RED = 1
Pair = collections.namedtuple("Pair", "a b")
class Base(abc.ABC):
    @abc.abstractmethod
    def go(self): ...
class Child(Base):
    def __init__(self): super().__init__(); self.n = 1
    def go(self): return self.n
class MyDict(dict): pass
class Mine(Exception): pass
def helper(x): return x + 1
value = [Config(tags=[1]), Point(2), Color.RED, Pair(1, 2), Child(), MyDict(a=1), Mine("x"), helper, functools.partial(helper, 3), Child().go]
"""


def test_instances_of_notebook_classes_come_back_into_the_same_notebook_run_again():
    """A new kernel has run the cells again: the classes are other objects of the same source."""
    old, new = notebook(CLASSES), notebook(CLASSES)
    config, point, color, pair, child, mydict, mine, helper, part, method = round_trip(old["value"], old, new)
    assert config == new["Config"](tags=[1])
    assert point == new["Point"](2)
    assert color is new["Color"].RED
    assert (pair, type(pair)) == ((1, 2), new["Pair"])
    assert isinstance(child, new["Base"])
    assert (child.go(), method()) == (1, 1)
    assert (type(mydict), mydict) == (new["MyDict"], {"a": 1})
    assert (type(mine), mine.args) == (new["Mine"], ("x",))
    assert helper is new["helper"]
    assert part() == 4


def test_a_class_whose_cell_has_not_been_run_yet_comes_from_the_snapshot():
    """dill takes the real ``__main__`` for the notebook, as it is in a kernel."""
    out = script(
        """
        import __main__
        from nbresume._capture import Definitions, capture, restore
        class A:
            def go(self): return helper(self.n)
        def helper(x): return x + 1
        a = A(); a.n = 1
        found = capture({"a": a, "f": helper}, definitions=Definitions(vars(__main__)), inputs={}, places={})
        del A, helper, a
        back = restore(found.stream, found.tables, definitions=Definitions(vars(__main__)), inputs={}, read=lambda _: None)
        print(back["f"](1), type(back["a"]).__name__, back["a"].n)
        """
    )
    assert out.split() == ["2", "A", "1"]


def test_a_class_that_differs_is_an_error_that_names_it():
    old, new = notebook(CLASSES), notebook(CLASSES.replace("self.n = 1", "self.n = 2"))
    with pytest.raises(ReplayError, match="Child differs"):
        round_trip(old["value"], old, new)


def test_modules_are_references():
    assert round_trip({"np": np, "os.path": sys.modules["os.path"]})["np"] is np


def test_functions_of_modules_are_references():
    assert round_trip([np.mean, np.sin, len, Path.exists, random.gauss])[0] is np.mean


def test_a_method_of_the_process_stream_stays_bound_to_it():
    assert round_trip(random.gauss).__self__ is random._inst
    assert round_trip(np.random.normal).__self__ is np.random.mtrand._rand


# ------------------------------------------------------------------ inputs


def test_an_input_is_saved_by_name_and_what_looks_at_it_looks_at_the_one_of_this_process():
    data = np.arange(1_000_000.0)
    found = capture({"part": data[5:10]}, definitions=Definitions({}), inputs={"data": data}, places={})
    assert len(found.stream) + sum(b.data.nbytes for b in found.blocks if b.data is not None) < 5000


# ------------------------------------------------------------------ what is refused


class Config:
    """Something with a part that can't be saved."""

    def __init__(self, part: Any) -> None:
        self.name, self.parts = "x", {"deep": [1, part]}


def unsaved(value: Any) -> UnsaveableError:
    error = unsaveable(value, definitions=Definitions({}))
    assert error is not None
    found = culprit("cfg", value, error, definitions=Definitions({}))
    assert str(found).count("\n") == 0
    return found


REFUSED = {
    "lock": (threading.Lock, "lock"),
    "rlock": (threading.RLock, "RLock"),
    "socket": (socket.socket, "socket.socket"),
    "sqlite": (lambda: sqlite3.connect(":memory:"), "sqlite3.Connection"),
    "generator": (lambda: (x for x in [1]), "generator"),
    "file": (lambda: open(__file__), "TextIOWrapper"),
    "binary file": (lambda: open(__file__, "rb"), "BufferedReader"),
    "thread": (lambda: threading.Thread(target=print), "lock"),
    "frame": (sys._getframe, "frame"),
    "memory view": (lambda: memoryview(b"abc")[1:], "memoryview"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_saved_is_named_by_path_and_type(kind):
    make, name = REFUSED[kind]
    part = make()
    try:
        direct, deep = unsaved(part), unsaved(Config(part))
    finally:
        if hasattr(part, "close"):
            part.close()
    assert name.lower() in direct.type_name.lower()
    assert name.lower() in deep.type_name.lower()
    assert deep.path.startswith("cfg.parts['deep'][1]")
    assert deep.path in str(deep)
    assert deep.way_out


def test_a_culprit_in_a_closure_a_slot_and_a_set_of_attributes_is_found():
    ns = notebook("def make(lock):\n    return lambda: lock\nclass S:\n    __slots__ = ('inner',)\n")
    function = ns["make"](threading.Lock())
    slotted = ns["S"]()
    slotted.inner = threading.Lock()
    for value, end in ((function, ".<lock>"), (slotted, ".inner"), ([{"f": function}], "[0]['f'].<lock>")):
        error = unsaveable(value, definitions=Definitions(ns))
        assert error is not None
        assert culprit("v", value, error, definitions=Definitions(ns)).path == f"v{end}"


def test_a_tensor_with_a_history_is_refused_with_the_way_out():
    error = unsaved({"loss": (torch.ones(2, requires_grad=True) * 2).sum()})
    assert error.path == "cfg['loss']"
    assert "detach" in str(error)


def test_a_progress_bar_is_refused():
    from tqdm import tqdm

    assert unsaveable(tqdm([1], disable=True), definitions=Definitions({})) is not None


# ------------------------------------------------------------------ restoring is harmless


def test_restoring_opens_nothing_and_starts_nothing(tmp_path):
    """Nothing with an effect outside the process happens while a graph is rebuilt."""
    out = script(
        """
        import sys, threading
        import numpy as np, pandas, torch, torch.nn
        from nbresume._capture import Definitions, capture, restore
        import _support
        from pathlib import Path
        class Handle:
            def __init__(self): self.path = Path("never.txt")
        model = torch.nn.Linear(2, 2)
        values = {"h": Handle(), "m": model, "o": torch.optim.Adam(model.parameters()), "a": np.arange(3), "f": lambda x: x,
                  "rng": np.random.default_rng(0), "df": pandas.DataFrame({"a": [1]}), "path": Path("x")}
        import __main__
        _support.round_trip(values, vars(__main__))   # what is imported late is imported now
        found = capture(values, definitions=Definitions(vars(__main__)), inputs={}, places={})
        stored = [np.array(b.data) for b in found.blocks]
        def read(targets):
            for i, target in targets.items():
                target[...] = stored[i].reshape(-1).view("u1").view(target.dtype).reshape(target.shape)
        seen = []
        def hook(event, args):
            if event.split(".")[0] in ("open", "socket", "subprocess", "os", "shutil", "sqlite3", "_thread", "ctypes"):
                seen.append((event, str(args)[:80]))
        before = threading.active_count()
        sys.addaudithook(hook)
        restore(found.stream, found.tables, definitions=Definitions(vars(__main__)), inputs={}, read=read)
        print(seen, threading.active_count() - before)
        """,
        cwd=Path(__file__).parent,
    )
    assert out.strip() == "[] 0"


# ------------------------------------------------------------------ digests


class Color(enum.Enum):
    """An enumeration of a module."""

    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        {"a": [1]},
        np.arange(5),
        torch.ones(3),
        random.Random(1),
        np.random.default_rng(1),
        [Color.RED],
        pd.DataFrame({"a": [1]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_digest_of_what_nobody_changed_stays(value):
    first, _ = content_digest(value, definitions=Definitions({}))
    assert content_digest(value, definitions=Definitions({}))[0] == first


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1, 2], lambda v: v.append(3)),
        ({"a": [1]}, lambda v: v["a"].append(3)),
        (np.arange(50_000), lambda v: v.__setitem__(40_000, 0)),
        (torch.ones(3), lambda v: v.add_(1)),
        (random.Random(1), lambda v: v.random()),
        (np.random.default_rng(1), lambda v: v.random()),
        (np.random.default_rng(1), lambda v: v.spawn(1)),
        (collections.deque([1]), lambda v: v.rotate(1) or v.append(2)),
        (pd.DataFrame({"a": [1, 2]}), lambda v: v.iloc.__setitem__((0, 0), 5)),
        ([np.zeros(3)], lambda v: v[0].__setitem__(0, 1.0)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_change_deep_inside_changes_the_digest(value, change):
    first, _ = content_digest(value, definitions=Definitions({}))
    change(value)
    assert content_digest(value, definitions=Definitions({}))[0] != first


# ------------------------------------------------------------------ sets


def test_fingerprints_agree_before_and_after():
    for value in (*ARRAYS.values(), *SCALARS):
        assert fingerprint(round_trip(value)).digest == fingerprint(value).digest


# ------------------------------------------------------------------ what only looks at another object


class Watched:
    """Something that can be referred to weakly."""


def test_a_weak_reference_refers_to_the_object_of_its_graph():
    """Alive, dead, in a dictionary or a set: nothing is kept alive by having been restored."""
    alive, gone = Watched(), Watched()
    owner = {
        "alive": alive,
        "refs": [weakref.ref(alive), weakref.ref(gone)],
        "values": weakref.WeakValueDictionary(a=alive),
        "keys": weakref.WeakKeyDictionary({alive: 1}),
        "set": weakref.WeakSet([alive]),
    }
    del gone
    back = round_trip(owner)

    assert [ref() for ref in back["refs"]] == [back["alive"], None]
    assert (back["values"]["a"], back["keys"][back["alive"]], list(back["set"])) == (back["alive"], 1, [back["alive"]])
    del back["alive"]
    assert [ref() for ref in back["refs"]] == [None, None]
    assert (len(back["values"]), len(back["keys"]), len(back["set"])) == (0, 0, 0)


@pytest.mark.parametrize("buffer", [bytearray(b"abc"), array.array("d", [1, 2]), np.zeros(3)], ids=type)
def test_a_view_of_a_buffer_looks_at_the_buffer_of_its_graph(buffer):
    """Written through the view, it is seen in what the view looks at; a part of a buffer is refused."""
    owner, view = round_trip((buffer, memoryview(buffer)))
    view[0] = view[1]

    assert owner[0] == owner[1]
    assert memoryview(owner).format == view.format
    assert "part of a buffer" in str(unsaveable(memoryview(buffer)[1:], definitions=Definitions({})))
