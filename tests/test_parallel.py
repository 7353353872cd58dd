"""Many things done in several threads: results in their order, errors in their place, nothing left behind."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from nbresume._store import Snapshot, Store
from nbresume._store._parallel import for_each, in_order, threads_for

ITEMS = list(range(100))


def square(item):
    time.sleep(0.001 * (item % 3))  # so that threads overtake each other
    return item * item


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("count", [0, 1, 8, 9, 100])
def test_results_come_in_the_order_of_the_items(threads, count):
    with in_order(square, ITEMS[:count], threads) as results:
        assert list(results) == [item * item for item in ITEMS[:count]]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_in_its_place(threads):
    def act(item):
        if item in (40, 90):
            raise ValueError(item)
        return item

    found = []
    with pytest.raises(ValueError, match="40"), in_order(act, ITEMS, threads) as results:
        found += results
    assert found in (ITEMS[:40], [])  # several threads hand their results over together


@pytest.mark.parametrize("threads", [1, 3])
def test_who_asks_for_no_more_leaves_nothing_running(threads):
    begun = []

    def act(item):
        begun.append(item)
        return square(item)

    with in_order(act, ITEMS, threads) as results:
        assert next(results) == 0
    known = len(begun)
    assert known < len(ITEMS)
    assert not [one for one in threading.enumerate() if one.name.startswith("nbresume")]
    time.sleep(0.05)
    assert len(begun) == known


@pytest.mark.parametrize("threads", [1, 3])
def test_all_is_done_when_for_each_comes_back(threads):
    done = []
    for_each(done.append, ITEMS, threads)
    assert sorted(done) == ITEMS


def test_with_one_thread_nothing_is_done_before_it_is_asked_for():
    begun = []
    with in_order(begun.append, ITEMS, 1) as results:
        assert not begun
        next(results)
        assert begun == [0]


class Block:
    def __init__(self, data, place):
        self.data, self.place = data, place


def test_where_no_thread_can_start_all_is_done_by_this_one(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2})

    def refused(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    run = Store(tmp_path).create("train", {"identity": {}})
    array = np.random.default_rng(0).normal(size=3_000_000)
    writer, path = run.writer(), run.snapshot_path(1, 0)
    writer.commit(writer.stage(path, {}, b"x", b"t", [Block(array, "array")]))
    found = np.empty_like(array)
    Snapshot(path).verify()
    Snapshot(path).read({0: found})
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(("allowed", "worth"), [({5}, 1), ({0, 1}, 2), (set(range(64)), 4)])
def test_only_processors_that_this_process_may_use_count_and_not_too_many(monkeypatch, allowed, worth):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: allowed)
    assert threads_for(1 << 30) == worth
    assert threads_for(1 << 20) == 1
