"""Commits of staged snapshots: behind the loop, one at a time, or before it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .._policy import Keep
from .._store import Claim, RunFolder, Snapshot, SnapshotError, Staged, base_of, pinned, with_bases
from .._types import Json
from ..errors import StoreError


class Commits:
    """Commits the snapshots of one attempt.

    Parameters
    ----------
    run : RunFolder
        The run on disk.
    number : int
        Of the attempt.
    claim : Claim
        The right to write the run; looked at again before anything is pruned.
    keep : Keep
        Which snapshots stay.
    hold, let_go : callable
        Keep an interrupt back while the loop waits for a commit.

    Attributes
    ----------
    writer : Writer
        Stages and writes.
    begun, done : callable
        Told that a commit is in flight; and, in its thread, that it is done or has failed, and the seconds of processor
        time that it took.
    trouble : str
        What else a person has to know: the snapshot stands, but an older one could not be removed.
    """

    def __init__(
        self,
        run: RunFolder,
        number: int,
        claim: Claim,
        keep: Keep,
        *,
        hold: Callable[[], None],
        let_go: Callable[[], None],
    ) -> None:
        self.writer = run.writer()
        self.writer.check = claim.check
        self.begun: Callable[[], None] = lambda: None
        self.done: Callable[[float], None] = lambda _cost: None
        self._run, self._number, self._claim, self._keep = run, number, claim, keep
        self._hold, self._let_go = hold, let_go
        self._there = run.snapshots()
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None
        self._kept: list[int] = []
        self._stuck: set[str] = set()
        self.trouble = ""

    @property
    def next_seq(self) -> int:
        """Number that no snapshot of the run has had."""
        return max((snapshot.seq for snapshot in self._there), default=-1) + 1

    def behind(self, staged: Staged, facts: Json, began: float) -> None:
        """Commit a snapshot while the loop goes on; one that is in flight is waited for.

        Parameters
        ----------
        staged : Staged
            A copy of the state.
        facts : dict
            What the journal says of it.
        began : float
            When its boundary was reached, by ``time.perf_counter``.
        """
        self.wait()
        facts = {**facts, "stalled": time.perf_counter() - began}
        self._go_on(lambda: self._tidy(self._publish(staged, facts, began)))

    def now(self, staged: Staged, facts: Json, began: float, *, is_last: bool = False) -> None:
        """Commit a snapshot before the loop goes on; older ones go behind it, when it has been read back.

        Parameters
        ----------
        staged, facts, began
            As for ``behind``.
        is_last : bool
            The last one of a run stands by itself, and nothing goes on behind it.

        Raises
        ------
        StoreError
            When the disk refuses.
        BusyError
            When another process has taken over the run.
        """
        self.wait()
        self._hold()
        try:
            snapshot = self._publish(staged, facts, began, is_last=is_last)
            if is_last:
                self._tidy(snapshot)
        finally:
            self._let_go()
        if not is_last:
            self._go_on(lambda: self._tidy(snapshot))

    def wait(self) -> None:
        """Wait for the commit in flight."""
        if self._thread is not None:
            self._hold()
            try:
                self._thread.join()
                self._thread = None
            finally:
                self._let_go()

    def settle(self) -> list[int]:
        """Return which snapshots are kept since a commit was done; empty where none was since the last call.

        Raises
        ------
        StoreError, BusyError
            What ended the commit that was in flight.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        kept, self._kept = self._kept, []
        return kept

    def _go_on(self, work: Callable[[], None]) -> None:
        """Do something in a thread, while the loop goes on."""
        self._thread = threading.Thread(target=self._work, args=(work,), name="nbresume-commit")
        self.begun()
        try:
            self._thread.start()
        except RuntimeError:  # no thread can start: the loop waits for the disk
            self._thread = None
            self._hold()
            try:
                self._work(work)
            finally:
                self._let_go()

    def _work(self, work: Callable[[], None]) -> None:
        spent = time.thread_time()
        try:
            work()
        except Exception as error:  # noqa: BLE001  # said at the next boundary
            self._failure = error
        finally:
            self.done(time.thread_time() - spent)

    def _publish(self, staged: Staged, facts: Json, began: float, *, is_last: bool = False) -> Snapshot:
        self._claim.check()  # this process may have stood still since the boundary, or in the middle of this
        going = self._going(Snapshot(staged.path))
        retired = next((one for one in self._there if self._may_be_written_over(one, going)), None)
        written = self.writer.commit(staged, retired.path if retired is not None else None, whole=is_last)
        snapshot = Snapshot(staged.path, self.writer.base)
        self._there.append(snapshot)
        seconds = time.perf_counter() - began
        facts = {**facts, "bytes": staged.size, "written": written, "seconds": seconds}
        self._run.note("snapshot", self._number, snapshot=snapshot.ident, **facts)
        return snapshot

    def _tidy(self, snapshot: Snapshot) -> None:
        self._read_back(snapshot)
        self._claim.check()  # what another attempt went on from is not ours to prune
        going = self._going()
        self._there = [one for one in self._there if one.seq not in going or not self._prune(one)]
        self._kept = [one.seq for one in self._there]

    def _read_back(self, snapshot: Snapshot) -> None:
        """Check what has been written, as a resume would: no older snapshot goes before this one can be believed.

        Raises
        ------
        StoreError
            When it does not hold what was written.
        """
        try:
            snapshot.verify_own()
        except SnapshotError as error:
            self.writer.disown(snapshot.path)
            self._there = [one for one in self._there if one is not snapshot]
            raise StoreError(
                f"{snapshot.path} was written and does not hold that: {error}. Look at that disk, or choose another "
                "store with --store",
                str(snapshot.path),
            ) from error

    def _going(self, *coming: Snapshot) -> set[int]:
        """Tell which snapshots no one needs once another has come: not kept, and none that is kept is built on them."""
        there = [*self._there, *coming]
        pins = pinned(self._run)
        going = set(self._keep.to_prune([one.seq for one in there if one.ident not in pins]))
        staying = [one for one in there if one.seq not in going]
        if coming:  # what it will be built on, if on any, is the newest
            staying += self._there[-1:]
        elif staying[-1].base and self._keep.latest > 1:
            # All that is kept hangs on one file, then: the whole one before it stays, too.
            chain = with_bases(staying[-1:], there)
            staying += [one for one in there if base_of(one) == "" and one.ident not in chain][-1:]
        needed = with_bases([one for one in staying if one not in coming], there)
        return {one.seq for one in there if one.seq in going and one.ident not in needed}

    def _prune(self, snapshot: Snapshot) -> bool:
        """Remove a snapshot; False where the disk refuses, which is said once, and tried again with the next."""
        try:
            self._run.prune({snapshot.seq}, self._number, [snapshot])
        except OSError as error:
            if snapshot.ident not in self._stuck:
                self._stuck.add(snapshot.ident)
                why = error.strerror or str(error)
                self.trouble = f"{snapshot.path} is not needed any more and can't be removed: {why}. It is tried again"
            return False
        self.writer.forget(snapshot.path)
        return True

    def _may_be_written_over(self, snapshot: Snapshot, going: set[int]) -> bool:
        """Whether a snapshot goes with this commit, is ours, and is not the newest: that one has to stay until then."""
        return snapshot.seq in going and snapshot.attempt == self._number and snapshot is not self._there[-1]
