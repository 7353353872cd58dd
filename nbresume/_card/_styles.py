"""Styles of the cards, each of which JupyterLab's sanitizer keeps: see ``_html``."""

from __future__ import annotations

LINE = "1px solid rgba(127, 127, 127, 0.35)"
CARD = f"border: {LINE}; border-radius: 6px; padding: 10px 14px; max-width: 860px; line-height: 1.4; font-size: 13px"
QUIET = "opacity: 0.72"
UNBROKEN = f"{QUIET}; white-space: nowrap"
CELL = "text-align: left; vertical-align: top; padding: 2px 18px 2px 0; border: none; max-width: 480px"
NUMBER = CELL.replace("left", "right", 1)
WRAPPED = "white-space: pre-wrap; overflow-wrap: break-word"
CODE = f"{WRAPPED}; font-family: monospace; font-size: 12px; margin: 4px 0; padding: 0"
INLINE = "background: transparent; font-size: 12px; padding: 0"
BUTTON = (
    "background: #2f6fb0; color: #ffffff; border: none; border-radius: 4px; padding: 5px 14px; cursor: pointer; "
    "font-weight: 600"
)
