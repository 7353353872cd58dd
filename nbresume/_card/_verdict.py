"""What ``verify`` tells of a run's files, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from .._types import Json

_SIGNATURES = {
    "foreign": "signed with another key ({key})",
    "unsigned": "not signed",
    "changed": "changed after signing",
}


def verdict(found: Json) -> str:
    """Put what was verified into words.

    Parameters
    ----------
    found : dict
        As ``verify --json`` answers.
    """
    return "\n".join(_lines(found))


def _lines(found: Json) -> Iterator[str]:
    rows = [*found["snapshots"], *({**row, "file": f"once/{row['file']}"} for row in found["once"])]
    for row in rows:
        state = row["why"] or f"complete, {_signature(row)}"
        yield f"{row['file']}  {row['bytes']:>12,} bytes  {state}"
    for record in found["records"]:
        if record["signature"] != "signed":
            yield f"{record['what']}  {_signature(record)}"
    bad = sum(not row["complete"] for row in rows)
    yield f"{found['id']}: {len(found['snapshots'])} snapshots, {bad or 'none'} that can't be believed"
    if not found["trusted"]:
        yield "A resume stops before it loads what is not signed with your key: set NBRESUME_KEY_FILE, or use --trust"


def _signature(row: Json) -> str:
    words = _SIGNATURES.get(row["signature"], "signed").format(key=row["key"])
    return f"{words}, trusted by you" if row["trusted"] and row["signature"] != "signed" else words
