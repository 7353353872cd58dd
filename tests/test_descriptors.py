"""Files that are open or mapped for writing: told the same way whatever the kernel can answer."""

from __future__ import annotations

import mmap
import os

import pytest

from nbresume._outputs import _descriptors
from nbresume._outputs._descriptors import mapped_for_writing, writable_descriptors

WRITES = mmap.PROT_READ | mmap.PROT_WRITE


@pytest.fixture(params=["asked", "read"])
def way(request, monkeypatch):
    """Kernels since 6.11 are asked; of older ones, whose ``ioctl`` fails, all lines are read."""
    if request.param == "read":
        monkeypatch.setattr(_descriptors, "_PROCMAP_QUERY", 0xC0686600)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("flags", "protection", "counts"),
    [
        (mmap.MAP_SHARED, WRITES, True),
        (mmap.MAP_SHARED, mmap.PROT_READ, False),
        (mmap.MAP_PRIVATE, WRITES, False),
    ],
)
def test_a_mapping_counts_that_is_shared_and_can_be_written_also_when_its_descriptor_is_closed(
    tmp_path, flags, protection, counts
):
    before = mapped_for_writing()
    path = tmp_path / "a file.bin"
    path.write_bytes(bytes(5000))
    descriptor = os.open(path, os.O_RDWR)
    memory = mmap.mmap(descriptor, 5000, flags=flags, prot=protection)
    os.close(descriptor)
    assert mapped_for_writing() - before == ({str(path)} if counts else set())
    memory.close()
    assert mapped_for_writing() == before


@pytest.mark.usefixtures("way")
def test_shared_memory_without_a_file_does_not_count():
    before = mapped_for_writing()
    with mmap.mmap(-1, 5000) as memory:
        memory[0] = 1
        assert mapped_for_writing() == before


@pytest.mark.parametrize("mode", ["rb", "wb", "ab", "r+b"])
def test_a_descriptor_counts_that_can_write_to_a_file(tmp_path, mode):
    path = tmp_path / "x"
    path.touch()
    before = writable_descriptors()
    with path.open(mode) as file:
        assert writable_descriptors() - before == ({(str(path), file.fileno())} if mode != "rb" else set())
    assert writable_descriptors() == before


def test_pipes_devices_and_files_without_a_name_do_not_count(tmp_path):
    before = writable_descriptors()
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    gone = os.open(tmp_path / "gone", os.O_RDWR | os.O_CREAT)
    (tmp_path / "gone").unlink()
    assert writable_descriptors() == before
    for one in (reading, writing, nothing, gone):
        os.close(one)
