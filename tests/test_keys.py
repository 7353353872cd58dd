"""The key that signs: where it comes from, what it refuses, and that it never lies in a store."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from _support import script

from nbresume._store._keys import Key, Keys
from nbresume.errors import OptionError, StoreError

LONG = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without any key: returns Jupyter's data folder."""
    for name in ("NBRESUME_KEY_FILE", "NBRESUME_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    return tmp_path / "jupyter"


@pytest.fixture
def key_file(tmp_path, home, monkeypatch):
    """A function that makes the file NBRESUME_KEY_FILE names."""

    def make(text: str | bytes, mode: int = 0o600):
        path = tmp_path / "keys"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        monkeypatch.setenv("NBRESUME_KEY_FILE", str(path))
        return path

    return make


# ------------------------------------------------------------------ signing


def test_a_signature_holds_for_its_key_and_its_bytes_alone():
    key = Key(LONG.encode())
    signature = key.sign(b"one", memoryview(b"two"))
    assert key.holds(signature, b"one", b"two")
    assert not Key(OTHER.encode()).holds(signature, b"one", b"two")
    for parts in ([b"one"], [b"two", b"one"], [b"onetwo"], [b"on", b"etwo"], [b"one", b"two", b""], [b"one", b"twp"]):
        assert not key.holds(signature, *parts)
    for wrong in ("", signature[:-1], signature.upper(), signature + "0", "ü" * 64):
        assert not key.holds(wrong, b"one", b"two")


def test_a_signature_is_the_hmac_of_the_parts_with_their_lengths():
    """An independent reader must come to the same."""
    import hashlib
    import hmac

    message = (3).to_bytes(8, "big") + b"one" + (0).to_bytes(8, "big")
    assert Key(LONG.encode()).sign(b"one", b"") == hmac.new(LONG.encode(), message, hashlib.sha256).hexdigest()


def test_an_array_is_signed_by_its_bytes_whatever_its_type():
    import numpy as np

    data = np.arange(5, dtype="f8")
    assert Key(LONG.encode()).sign(data.data) == Key(LONG.encode()).sign(data.tobytes())


def test_a_key_is_told_from_others_and_shows_nothing_of_itself():
    one, other = Key(LONG.encode()), Key(OTHER.encode())
    assert one.ident != other.ident
    assert one.ident == Key(LONG.encode()).ident
    assert len(one.ident) == 16
    assert LONG not in repr(one) + repr(Keys(one, (one,)))
    assert LONG.encode().hex() not in repr(one) + one.ident


# ------------------------------------------------------------------ where it comes from


def test_a_user_without_a_key_gets_one_that_stays_and_that_nobody_else_can_read(home):
    umask = os.umask(0)
    try:
        first = Keys.find()
    finally:
        os.umask(umask)
    path = home / "nbresume" / "key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["key"]
    assert Keys.find().own.ident == first.own.ident
    assert not first.warning
    path.unlink()
    assert Keys.find().own.ident != first.own.ident  # it is random, and nothing is cached


def test_kernels_that_start_at_once_agree_on_one_key(home):
    code = "import sys\nfrom nbresume._store._keys import Keys\nsys.stdin.read()\nprint(Keys.find().own.ident)"
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for process in started:  # all of them wait for the end of their input
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    idents = {process.communicate(timeout=60)[0] for process in started}
    assert idents == {f"{Keys.find().own.ident}\n"}


def test_the_environment_is_asked_each_time_and_the_file_before_the_text(key_file, monkeypatch):
    monkeypatch.setenv("NBRESUME_KEY", OTHER)
    assert Keys.find().own.ident == Key(OTHER.encode()).ident
    key_file(f"{LONG}\n")
    assert Keys.find().own.ident == Key(LONG.encode()).ident
    monkeypatch.delenv("NBRESUME_KEY_FILE")
    assert Keys.find().own.ident == Key(OTHER.encode()).ident
    monkeypatch.setenv("NBRESUME_KEY", LONG)
    assert Keys.find().own.ident == Key(LONG.encode()).ident


def test_of_several_keys_the_first_signs_and_all_are_believed(key_file):
    key_file(f"{LONG}\n\n{OTHER}\r\n")
    keys = Keys.find()
    old = Key(OTHER.encode())
    assert keys.own.ident == Key(LONG.encode()).ident
    assert [key.ident for key in keys.known] == [keys.own.ident, old.ident]
    found = keys.of(old.ident)
    assert found is not None
    assert found.holds(old.sign(b"x"), b"x")
    assert keys.of(Key(b"another one of somebody").ident) is None


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        ("", 0o600, "is empty"),
        ("\n \n", 0o600, "is empty"),
        ("short\n", 0o600, "has 5 characters"),
        (f"{LONG}\nshort\n", 0o600, "key 2 has 5 characters"),
        (b"\xff\xfe" * 20, 0o600, "is not text"),
        (LONG, 0o644, "mode 0644). Use: chmod 600"),
        (LONG, 0o666, "mode 0666). Use: chmod 600"),
        (LONG, 0o620, "mode 0620). Use: chmod 600"),
    ],
)
def test_a_key_file_that_protects_nothing_is_an_error_with_a_way_out(key_file, text, mode, says):
    path = key_file(text, mode)
    with pytest.raises(OptionError) as error:
        Keys.find()
    assert says in str(error.value)
    assert str(path) in str(error.value)
    assert LONG not in str(error.value)


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o640, 0o600])
def test_a_mounted_secret_that_a_group_reads_is_fine(key_file, mode):
    key_file(LONG, mode)
    assert Keys.find().own.ident == Key(LONG.encode()).ident


def test_a_key_file_that_is_not_there_is_never_replaced_by_another_key(home, tmp_path, monkeypatch):
    monkeypatch.setenv("NBRESUME_KEY_FILE", str(tmp_path / "nothing"))
    monkeypatch.setenv("NBRESUME_KEY", LONG)
    with pytest.raises(OptionError, match="nothing can't be read: No such file"):
        Keys.find()
    assert not home.exists()


@pytest.mark.parametrize("text", ["", "fifteen letters"])
def test_a_short_key_in_the_environment_is_an_error_that_does_not_show_it(home, monkeypatch, text):
    monkeypatch.setenv("NBRESUME_KEY", text)
    with pytest.raises(OptionError, match=f"NBRESUME_KEY has {len(text)} characters") as error:
        Keys.find()
    assert not text or text not in str(error.value)


def test_the_users_key_is_not_used_when_others_could_know_it_or_it_is_damaged(home):
    Keys.find()
    path = home / "nbresume" / "key"
    path.chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        Keys.find()
    path.chmod(0o600)
    path.write_bytes(b"")
    with pytest.raises(StoreError, match="damaged"):
        Keys.find()


def test_where_no_key_can_be_kept_one_serves_this_process_and_that_is_said(home):
    home.write_text("a file stands where the folder would be")
    keys = Keys.find()
    assert str(home / "nbresume") in keys.warning
    assert "--trust" in keys.warning
    assert "NBRESUME_KEY_FILE" in keys.warning
    assert Keys.find().own.ident == keys.own.ident
    told = script("from nbresume._store._keys import Keys\nprint(Keys.find().own.ident)").strip()
    assert told != keys.own.ident


def test_a_user_without_any_home_gets_a_key_for_this_process(monkeypatch, home):
    for name in ("JUPYTER_DATA_DIR", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    code = """
    import os, pwd
    from nbresume._store._index import elsewhere, enter
    from pathlib import Path
    os.setuid(54321)  # a container that runs under a number nobody has an account for
    from nbresume._store._keys import Keys
    print(Keys.find().warning)
    print(enter(Path("/nothing/here")))
    """
    if os.getuid() != 0:
        pytest.skip("only root can become a user without a home")
    first, second = script(code).splitlines()
    assert first.startswith("this user has no home folder")
    assert second == ""


def test_the_key_is_not_in_the_store_nor_comes_back_from_it(notebook, monkeypatch, tmp_path):
    """The whole environment is saved with a ``with`` around a loop: the key must not be among it."""
    monkeypatch.setenv("NBRESUME_KEY", LONG)
    notebook.run(
        "%%resumable train --vars seen\nimport contextlib\nseen = []\nwith contextlib.nullcontext():\n"
        "    for i in range(3):\n        seen.append(i)"
    )
    assert notebook["seen"] == [0, 1, 2]
    files = notebook.files()
    assert any(name.endswith(".h5") for name in files)
    assert not [name for name, data in files.items() if LONG.encode() in data]
