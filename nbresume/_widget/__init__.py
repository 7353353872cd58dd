"""The panel, from core ipywidgets."""

from ._acts import Acts, Look
from ._busy import answer_while_busy
from ._panel import Panel

__all__ = ["Acts", "Look", "Panel", "answer_while_busy"]
