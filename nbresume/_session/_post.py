"""What goes between a running cell and other processes: what they ask of it, and where it says that it stands.

The loop itself looks at no file: a thread does, twice a second. It raises flags that the next boundary acts on, and
publishes the position of the loops. It also says what a signal's handler has to say, which may interrupt a half-written
line of the cell's own.
"""

from __future__ import annotations

import contextlib
import contextvars
import queue
import sys
import threading
import time

from .._events import now
from .._store import Request, drop_old_requests, drop_request, drop_status, publish_status, requests_to
from ._pace import Sample, rate_of, samples_of
from ._runtime import Runtime

PERIOD = 0.5
"""Seconds between two looks at what is asked."""
_HEARD = "stopping at the next boundary, with a snapshot. Interrupt once more to stop at once"
_EACH = 1.0
"""Seconds between two words on where the cell stands, the first one included: short cells say nothing."""
_SHARE = 0.005
"""Part of the time that they may take, where the store is slow."""
_LATE = 2.0
_IDLE = 0.1
"""A process that wakes so many seconds late, and used no more than this share of them, was stopped meanwhile."""
_MOST = 200
"""Samples that are kept for the rate."""


class Post:
    """Serves one attempt while its cell runs.

    Its thread is told through a queue that a signal's handler can use at any instruction, and that a fork finds free.

    Parameters
    ----------
    runtime : Runtime
        Of the attempt.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._attempt = runtime, runtime.attempt
        self._folder, self._key = runtime.attempt.run.path, runtime.attempt.claim.key
        self._heard: set[str] = set()
        self._orders: queue.SimpleQueue[str | threading.Event | None] = queue.SimpleQueue()
        self._samples: list[Sample] = []
        self._looked, self._used = time.monotonic(), time.process_time()
        self._next = self._looked + _EACH
        # In the context of the cell: what is said shall stand below it, whatever message the kernel serves meanwhile.
        serve = contextvars.copy_context().run
        self._thread = threading.Thread(target=serve, args=(self._serve,), name="nbresume-post", daemon=True)

    def start(self) -> None:
        """Begin to serve; what was asked of earlier attempts is taken away."""
        with contextlib.suppress(OSError):  # they speak to other attempts, and do no harm where they stay
            drop_old_requests(self._folder, self._key)
        try:
            self._thread.start()
        except RuntimeError:
            self._attempt.warn("no thread can start here: nbresume stop and snapshot reach this attempt no more")

    def stop(self) -> None:
        """Serve no more; what is asked from now on is refused, since the attempt is over."""
        self._orders.put(None)
        if self._thread.ident is not None:
            self._thread.join()
        with contextlib.suppress(OSError):  # it names this claim, and nobody believes it once that is over
            if self._attempt.claim.holds():
                drop_status(self._folder)

    def interrupted(self) -> None:
        """Ask for a stop at the next boundary, and say so; from a signal's handler."""
        self._runtime.stop()
        self._orders.put(_HEARD)

    def settle(self) -> None:
        """Wait until what was heard has been said: it stands before what comes of it."""
        if self._thread.is_alive():
            said = threading.Event()
            self._orders.put(said)
            said.wait()

    def _serve(self) -> None:
        while True:
            try:
                text = self._orders.get(timeout=PERIOD)
            except queue.Empty:
                self._look()
                continue
            if text is None:
                return
            if isinstance(text, threading.Event):
                text.set()
                continue
            # A terminal has written ^C, and stands behind it.
            self._tell(text, lead="\n" if sys.stdout.isatty() else "")

    def _look(self) -> None:
        self._notice_sleep()
        if time.monotonic() >= self._next and self._runtime.live:
            self._say_where()
        for request in requests_to(self._folder, self._key):
            if request.ident not in self._heard:
                self._heard.add(request.ident)
                self._take(request)

    def _notice_sleep(self) -> None:
        here, used = time.monotonic(), time.process_time()
        late = here - self._looked - PERIOD
        # A call that holds the interpreter for long makes this thread late as well, but it uses the processor.
        if late > _LATE and used - self._used < _IDLE * late:
            self._attempt.slept(late)
        self._looked, self._used = here, used

    def _say_where(self) -> None:
        began = time.monotonic()
        facts = {"active": self._attempt.active(), **self._runtime.progress()}
        self._samples += samples_of([facts])
        if len(self._samples) > _MOST:
            del self._samples[1::2]
        rate = rate_of(self._samples)
        told = {"label": rate.label, "per_second": rate.per_second, "left": rate.left} if rate else None
        status = {"attempt": self._attempt.number, "key": self._key, "at": now(), **facts, "rate": told}
        with contextlib.suppress(OSError):  # whoever looks sees that it is old
            if self._attempt.claim.holds():
                publish_status(self._folder, status)
        self._next = began + max(_EACH, (time.monotonic() - began) / _SHARE)

    def _take(self, request: Request) -> None:
        with contextlib.suppress(OSError):  # a disk that keeps it: it has been heard, and is not heard twice
            drop_request(self._folder, request)
        if request.word == "snapshot":
            self._runtime.ask(request.ident)
            return
        if not self._runtime.stopping:
            self._tell("asked to stop: it ends at the next boundary, with a snapshot")
        self._runtime.stop(request.ident)

    def _tell(self, text: str, lead: str = "") -> None:
        self._attempt.tell(f"{lead}{self._attempt.run.name}: {text}")
