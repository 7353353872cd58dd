"""Loading and unloading, and the two transformers that make a cell resumable.

The magic line becomes a statement before IPython sees a cell magic, and an AST transformer rewrites what follows: the
body runs as an ordinary cell, with its line numbers, its display, its debugger and its interrupts.

An exception of any other kind in an AST transformer would make IPython unregister it and run the cell unprotected:
everything is caught and becomes ``InputRejected``, which refuses the cell.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import sys
import time
from pathlib import Path
from typing import Any

from IPython.core.error import InputRejected
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from .._session import Host, activate, deactivate
from .._transform import MAGIC, MARKER, RUNTIME, marked, marker_line
from .._types import Json
from ..errors import NbresumeError, RefusedError
from ._cards import Cards
from ._completing import LINE, completer
from ._config import NBResume
from ._line import NbresumeMagics, resumable_stub
from ._panel import follow_panel
from ._show import answered, close_all, offer_when_seen

_STATE = "_nbresume_extension"


class Extension:
    """What hangs on the shell while the extension is loaded: state in module globals would survive a reload."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.config = NBResume(parent=shell)
        given = os.environ.get("NBRESUME_STORE") or self.config.store
        root = given or notebook_folder(shell) / ".nbresume"
        self.cards = Cards(shell, lambda: answered(shell), lambda: follow_panel(shell))
        self.host = Host(shell.user_ns, Path(root).expanduser().absolute(), self._tell, self.cards.changed)
        self.host.attended = self._attended
        self.cards.series = self.host.series
        self.host.history = self._history
        self.host.is_store_given = bool(given)
        self._cells: list[Any] = []
        """The cells that are executing, the innermost last: a body may run another cell."""
        self._begun = 0
        self._out: Any = sys.stdout
        self._timed = 0.0

    # ------------------------------------------------------------------ on and off

    def load(self) -> None:
        """Register everything."""
        shell = self.shell
        shell.input_transformers_cleanup.append(transform_text)
        shell.ast_transformers.append(self)
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)
        shell.user_ns[MARKER] = self._begin
        shell.user_ns_hidden.update({MARKER: None, RUNTIME: None})
        shell.configurables.append(self.config)
        shell.register_magics(NbresumeMagics(shell, self.host))
        shell.register_magic_function(resumable_stub, "cell", "resumable")
        shell.set_hook("complete_command", completer(self.host), str_key=LINE)
        activate(self.host)

    def unload(self) -> None:
        """Undo ``load``."""
        shell = self.shell
        shell.input_transformers_cleanup.remove(transform_text)
        shell.ast_transformers.remove(self)
        shell.events.unregister("pre_run_cell", self._before)
        shell.events.unregister("post_run_cell", self._after)
        shell.user_ns.pop(MARKER, None)
        shell.configurables.remove(self.config)
        shell.magics_manager.magics["cell"].pop("resumable", None)
        shell.magics_manager.magics["line"].pop("nbresume", None)
        shell.strdispatchers["complete_command"].strs.pop(LINE, None)
        deactivate()

    # ------------------------------------------------------------------ a cell

    def visit(self, tree: ast.Module) -> ast.Module:
        """Rewrite a cell that carries the marker; IPython calls this for every cell."""
        found = marker_line(tree)
        if found is None:
            return tree
        try:
            return self._rewrite(tree, *found)
        except NbresumeError as error:
            raise rejected(error) from None
        except Exception as error:
            trouble = RefusedError(
                f"the cell could not be rewritten ({type(error).__name__}: {error})",
                "Take %%resumable off to run it unprotected, and report this as a bug",
            )
            raise rejected(trouble) from error

    def _rewrite(self, tree: ast.Module, line: str, timed: bool, below: str) -> ast.Module:  # noqa: FBT001
        if self._raw().lstrip().startswith("%%timeit") or below == "timeit":
            raise RefusedError("%%timeit runs a cell many times: there is nothing to resume", "Use %%time instead", 1)
        if below:
            raise RefusedError(f"%%{below} stands below %%resumable", f"Put %%{below} above it, or take it off", 2)
        body = ast.Module(tree.body[1:], [])
        if not body.body:
            raise RefusedError("the cell is empty", "Put the loop below the magic line", 1)
        # Compiled as the user wrote it first, and as IPython does it: statement by statement. What can't be is handed
        # back, and shown as Python's own error.
        try:
            for statement in body.body:
                one = ast.Module([statement], [])
                compile(one, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError:
            return body
        rewritten, number = self.host.rewrite(body, line, self.config.defaults(), timed=timed)
        begin = ast.parse(f"{MARKER}({number}, {timed})").body[0]
        for node in ast.walk(begin):
            ast.copy_location(node, tree.body[0])
        return ast.Module([begin, *rewritten.body], [])

    def _begin(self, number: int, timed: bool) -> None:  # noqa: FBT001
        __tracebackhide__ = True
        self._timed = time.perf_counter() if timed else 0.0
        self._show_magic_line(sys._getframe(1).f_code.co_filename)  # noqa: SLF001  # the cell that called
        self.host.begin(number, self._cell_id())
        self._begun = len(self._cells)

    def _show_magic_line(self, filename: str) -> None:
        """Let tracebacks show the magic line as the user wrote it."""
        known = linecache.cache.get(filename)
        magic = next((line for line in self._raw().splitlines() if line.startswith(MAGIC)), None)
        if magic is not None and known is not None and len(known) != 1:  # one field: linecache reads it when asked
            lines = [f"{magic}\n" if line.startswith(MARKER) else line for line in known[2]]
            linecache.cache[filename] = (known[0], known[1], lines, known[3])

    def _before(self, info: Any) -> None:
        self._out = sys.stdout  # what the user's code redirects later is the user's
        self._cells.append(info)

    def _raw(self) -> str:
        return str(getattr(self._cells[-1], "raw_cell", "") or "") if self._cells else ""

    def _cell_id(self) -> str:
        """Return what tells this cell from others of the notebook; empty where the front end doesn't say."""
        return str(getattr(self._cells[-1], "cell_id", "") or "") if self._cells else ""

    def _after(self, result: Any) -> None:
        depth = len(self._cells)
        if self._cells:
            self._cells.pop()
        if self.host.runtime is not None and depth > self._begun:
            return  # a cell that the body of a resumable one has run
        error = result.error_before_exec or result.error_in_exec
        running = self.host.runtime is not None
        shown = self.host.finish(error, self._displayed(result) if running and error is None else None)
        if shown:
            display(shown, raw=True)
        if self._timed and running:
            self._tell(f"Wall time: {time.perf_counter() - self._timed:.3g} s")
        self._timed = 0.0

    def _displayed(self, result: Any) -> Json | None:
        if result.result is None:
            return None
        data, _ = self.shell.display_formatter.format(result.result)
        return {kind: text for kind, text in data.items() if isinstance(text, str)}

    # ------------------------------------------------------------------ the person

    def _tell(self, text: str) -> None:
        self._out.write(f"{text}\n")

    def _history(self) -> list[str]:
        """Return the cells of this kernel, oldest first, without the one that runs now."""
        return [str(cell) for cell in self.shell.history_manager.input_hist_parsed[:-1]]

    def _attended(self) -> bool:
        """Whether a front end that can ask stands behind this execution; papermill and its kin say that none does."""
        kernel = getattr(self.shell, "kernel", None)
        if kernel is None:
            return True
        with contextlib.suppress(Exception):  # kernels differ in what they know of their parent
            return bool(kernel.get_parent("shell")["content"].get("allow_stdin", True))
        return True


def notebook_folder(shell: InteractiveShell) -> Path:
    """Return the folder of the notebook where a front end tells it, else the one in which the kernel was started.

    A server starts a kernel beside its notebook. The environment is not asked: a runner started in a kernel inherits
    the name of another notebook.
    """
    told = Path(str(shell.user_ns.get("__vsc_ipynb_file__") or ""))
    return told.parent if told.is_absolute() and told.parent.is_dir() else Path.cwd()


def transform_text(lines: list[str]) -> list[str]:
    """Replace the magic line; see ``_transform.marked``."""
    return marked(lines)


# IPython's check of whether a cell is complete then leaves this one out, sees a cell magic and waits for its body.
transform_text.has_side_effects = True  # type: ignore[attr-defined]


def rejected(error: NbresumeError) -> Exception:
    """Make of an error one of the same class that IPython also takes as a refusal of the cell."""
    kind: Any = type(type(error).__name__, (type(error), InputRejected), {})
    made: Exception = kind.__new__(kind, str(error))
    made.__dict__.update(error.__dict__)
    return made


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Load the extension: ``%load_ext nbresume``."""
    if getattr(shell, _STATE, None) is not None:
        return
    extension = Extension(shell)
    extension.load()
    setattr(shell, _STATE, extension)
    offer_when_seen(shell, extension.host)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Unload it: ``%unload_ext nbresume``."""
    extension = getattr(shell, _STATE, None)
    if extension is not None:
        extension.unload()
        close_all(shell)
        delattr(shell, _STATE)
