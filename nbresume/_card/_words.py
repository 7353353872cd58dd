"""How the card puts times, sizes and other people's text into words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from .._lineage import CHANGED, OTHER_HARDWARE, Attempt, Change, Lineage
from ._view import View

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Not after a word, a dot or a slash: `a/b`, `./a/b` and `s3://bucket/key` are no paths of this machine.
_PATHS = re.compile(r"(?<![\w/.~])(?:file://|~|[A-Za-z]:(?=[\\/]))?(?:[\\/][\w.@+-]*[\w@+-]){2,}")
_DEEP = 3
_UNITS = ("B", "kB", "MB", "GB", "TB")
_DAY, _HOUR, _MINUTE = 86400, 3600, 60
_THOUSAND = 1000


def public(text: str) -> str:
    """Return text that may be published: no terminal escapes, and of a path at most its last part."""
    # A progress bar draws over itself; its last state is what was seen.
    seen = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _PATHS.sub(_last_part, plain(seen))


def plain(text: str) -> str:
    """Return text without terminal escapes and control characters."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def _last_part(path: re.Match[str]) -> str:
    parts = re.split(r"[\\/]", path[0].removeprefix("file://"))[1:]
    # Of `/home/alice` even the last part tells who it is.
    return f"…/{parts[-1]}" if len(parts) >= _DEEP or "." in parts[-1] else "…"


def moment(at: str) -> datetime | None:
    """Read a time of the journal; None when it can't be read."""
    try:
        read = datetime.fromisoformat(at)
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def stamp(at: str) -> str:
    """Tell a time of the journal to the minute."""
    read = moment(at)
    return f"{read.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if read else ""


def age(at: str, now: str) -> str:
    """Tell how long ago something was."""
    then, today = moment(at), moment(now)
    if then is None or today is None:
        return ""
    seconds = (today - then).total_seconds()
    for length, unit in ((_DAY, "day"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s")):
        count = int(seconds // length)
        if count >= 1:
            return f"{plural(count, unit) if unit == 'day' else f'{count} {unit}'} ago"
    return "just now"


def duration(seconds: float) -> str:
    """Tell a length of time with the precision that it deserves."""
    if seconds < 1:
        return f"{seconds * _THOUSAND:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s" if seconds < _MINUTE / 6 else f"{seconds:.0f} s"
    hours, rest = divmod(int(seconds), _HOUR)
    return f"{hours} h {rest // _MINUTE:02d} min" if hours else f"{rest // _MINUTE} min"


def size(count: float) -> str:
    """Tell a number of bytes."""
    for unit in _UNITS[:-1]:
        if count < _THOUSAND:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _THOUSAND
    return f"{count:.1f} {_UNITS[-1]}"


def plural(count: int, word: str) -> str:
    """Return ``1 attempt``, ``2 attempts``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def fraction(loops: tuple[tuple[str, int, int | None], ...]) -> float | None:
    """Tell how much of the outermost loop is done, the inner ones counted in; None when its length is unknown."""
    if not loops or not loops[0][2]:
        return None
    done, share = 0.0, 1.0
    for _, finished, total in loops:
        if not total:
            break
        done += share * min(finished, total) / total
        share /= total
    return min(done, 1.0)


def percent(view: View) -> str:
    """Tell how much of the outermost loop is done; empty when unknown."""
    done = fraction(view.loops)
    # Rounded down: a run that still works never shows 100 %.
    return "" if done is None else f"{int(done * 100 + 1e-9)} %"


def fact(facts: Mapping[str, object], name: str) -> float | None:
    """Return a number of a snapshot's facts, if there is one."""
    value = facts.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def exposure(view: View) -> str:
    """Tell since when a running run is not protected; empty when it is."""
    if view.state != "running" or not view.lineage.is_exposed:
        return ""
    since = view.snapshot_at or view.lineage.attempts[-1].started
    return f"since {stamp(since)}: if the kernel dies now, what was done since then is done again"


def snapshot_facts(view: View) -> list[str]:
    """Tell size and cost of the newest snapshot, and what was seen of its file."""
    weight, cost, stalled = (fact(view.snapshot, name) for name in ("bytes", "seconds", "stalled"))
    waited = f" (the loop waited {duration(stalled)})" if stalled is not None and cost is not None else ""
    found = [
        size(weight) if weight is not None else "",
        f"took {duration(cost)}{waited}" if cost is not None else "",
        public(view.belief),
    ]
    return [one for one in found if one]


def weight_of(view: View) -> str:
    """Tell the size of the newest snapshot; empty when unknown."""
    weight = fact(view.snapshot, "bytes")
    return "" if weight is None else size(weight)


def pace(view: View) -> list[str]:
    """Tell how fast a run goes, how long it will take and how long it has worked; only active time counts."""
    found = []
    if view.rate is not None and view.rate[1] > 0:
        label, per_second = view.rate
        found.append(_rate(public(label), per_second))
    if view.seconds_left is not None:
        found.append(f"about {duration(view.seconds_left)} {'' if view.state == 'running' else 'of work '}left")
    worked = view.active if view.active is not None else fact(view.snapshot, "active")
    if worked is not None and worked >= 1:
        found.append(f"{duration(worked)} of work{' done' if view.state != 'completed' else ''}")
    return found


def pace_label(view: View) -> str:
    """Name what ``pace`` tells."""
    return "active time" if view.rate is None and view.seconds_left is None else "pace"


def _rate(label: str, per_second: float) -> str:
    for length, unit in ((1, "s"), (_MINUTE, "min"), (_HOUR, "h")):
        if per_second * length >= 1:
            return f"{per_second * length:.3g} {label}/{unit}"
    return f"{duration(1 / per_second)} per {label}"


def beginning(attempt: Attempt) -> str:
    """Tell how an attempt began."""
    return f"resumed from {public(attempt.resumed_from)}" if attempt.resumed_from else "launched"


def changes(lineage: Lineage) -> list[tuple[int, Change]]:
    """Return why attempts are not plainly the same run, each with the attempt's number."""
    return [(one.number, change) for one in lineage.attempts for change in one.changes if change.how in CHANGED]


def ending(attempt: Attempt) -> str:
    """Tell how an attempt ended, with what is known of it and no more."""
    why = "without a last word" if attempt.how == "vanished" else public(attempt.why)
    return f"{attempt.how} ({why})" if why else attempt.how or "running"


def closeout(lineage: Lineage) -> Iterator[tuple[str, str]]:
    """Tell which attempts a result is made of, and which run took the name and why."""
    if lineage.made_by:
        several = len(lineage.made_by) > 1
        numbers = ", ".join(map(str, lineage.made_by))
        told = f"attempts {numbers}, each from a snapshot of the one before" if several else f"attempt {numbers}"
        yield "made by", told
    if lineage.superseded_by:
        yield "superseded by", "; ".join((lineage.superseded_by, *map(public, lineage.superseded_because)))


def standing(state: str, lineage: Lineage) -> str:
    """Tell a run's state with what belongs to it: the cause, and the number of attempts that it took."""
    count = len(lineage.attempts)
    if state == "interrupted":
        return f"interrupted ({lineage.cause})" if lineage.cause else "interrupted"
    if state == "running":
        return f"running (attempt {count})" if count > 1 else "running"
    bits = "" if lineage.is_exact or state != "completed" else f", {CHANGED[OTHER_HARDWARE]}"
    return (f"{state} in {plural(count, 'attempt')}" if state == "completed" and count > 1 else state) + bits
