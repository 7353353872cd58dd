"""HTML that is escaped unless it was made here."""

from __future__ import annotations

import base64
from html import escape

_VOID = ("img", "br")


class Markup(str):
    """HTML of ours: plain text becomes some only through ``tag``."""

    __slots__ = ()


def tag(name: str, *parts: str, **attributes: str) -> Markup:
    """Make an element; parts and attributes that are plain text are escaped, empty attributes left out."""
    written = "".join(f' {key}="{escape(value, quote=True)}"' for key, value in attributes.items() if value)
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*parts)}</{name}>")


def join(*parts: str) -> Markup:
    """Put parts side by side, escaping those that are plain text."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def image(svg: str, alt: str, style: str) -> Markup:
    """Show a drawing the one way that an untrusted notebook keeps: an image with its data in the address."""
    data = base64.b64encode(svg.encode()).decode()
    return tag("img", alt=alt, style=style, src=f"data:image/svg+xml;base64,{data}")
