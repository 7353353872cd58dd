"""What Tab offers behind ``%nbresume``: its words, the options of a word, and names of runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .._commands import COMMANDS, make_parser
from .._session import Host

LINE = "%nbresume"


def completer(host: Host) -> Callable[[Any, Any], list[str]]:
    """Return what IPython asks: a function of the shell and of what stands before the cursor."""
    choices = [word.word for word in COMMANDS if word.door != "shell"]
    parser = make_parser(argparse.ArgumentParser, LINE, "notebook")
    words: dict[str, Any] = next(dict(action.choices) for action in parser._actions if action.choices)  # noqa: SLF001

    def complete(_shell: Any, event: Any) -> list[str]:
        before = str(event.text_until_cursor).lstrip().split(" ")[1:]
        *said, typed = before or [""]
        said = [word for word in said if word]
        if not said:
            found = choices
        elif typed.startswith("-"):
            actions = words[said[0]]._actions if said[0] in words else []  # noqa: SLF001  # argparse tells it nowhere else
            found = [option for action in actions for option in action.option_strings]
        else:
            found = sorted({run.name for run in host.store})
        # IPython begins a word after a dash, too; what stands before it stays as it is.
        kept = len(typed) - len(event.symbol) if typed.endswith(event.symbol) else 0
        return [one[kept:] for one in found if one.startswith(typed)]

    return complete
