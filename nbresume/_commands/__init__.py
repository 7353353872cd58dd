"""The words of the command line and of ``%nbresume``: one table, one parser, one function a word."""

from __future__ import annotations

from ._seat import Seat
from ._setting import names, store_root
from ._table import COMMANDS, make_parser

__all__ = ["COMMANDS", "Seat", "make_parser", "names", "store_root"]
