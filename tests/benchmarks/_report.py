"""The table as text, as JSON, as a page's part and as a plot."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from _measure import Figure

from nbresume import __version__

HEAD = f"{'':64} {'against':28} {'goal':>6} {'result':>8}  (quartiles)"
VERDICTS = {True: "met", False: "NOT MET", None: ""}


def line(figure: Figure) -> str:
    """Return a line of the printed table."""
    goal = "" if figure.goal is None else f"{figure.goal:.2f}"
    spread = f"{figure.result:8.2f}  ({figure.low:.2f} to {figure.high:.2f}) {figure.unit}"
    note = f"\n{'':4}{figure.note}" if figure.note else ""
    return f"{figure.what:64} {figure.against:28} {goal:>6} {spread:32} {VERDICTS[figure.met]}{note}"


def about(folder: Path) -> dict[str, Any]:
    """Tell what the figures were taken with."""
    found: dict[str, Any] = {"nbresume": __version__, "python": platform.python_version(), "cpus": os.cpu_count()}
    for name in ("numpy", "h5py", "torch", "pandas", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    found["system"] = platform.system()
    found["file system"] = file_system(folder)
    return found


def file_system(folder: Path) -> str:
    """Tell on which kind of file system a folder lies."""
    place, kind = "", "unknown"
    for entry in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, point, what, *_ = entry.split()
        if folder.resolve().is_relative_to(point) and len(point) >= len(place):
            place, kind = point, what
    return kind


def rounded(figure: Figure) -> dict[str, Any]:
    """Return a figure for JSON."""
    found = {name: round(v, 4) if isinstance(v, float) else v for name, v in asdict(figure).items()}
    return {**found, "met": figure.met, "load": round(os.getloadavg()[0], 1)}


def write(target: Path, found: dict[str, Any]) -> None:
    """Write the table as JSON and as Markdown.

    Parameters
    ----------
    target : Path
        The documentation's folder.
    found : dict
        ``about``, ``figures``, ``failed``, ``peers``.
    """
    folder = target / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "snapshots.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (folder / "snapshots.txt").write_text(markdown(found["figures"], found["failed"]), encoding="utf-8")
    (folder / "peers.txt").write_text(peers_markdown(found["peers"]), encoding="utf-8")


def draw(target: Path, found: dict[str, Any]) -> None:
    """Draw the plots, for light and for dark pages, beside the documentation's other pictures."""
    pictures = target / "_static"
    pictures.mkdir(parents=True, exist_ok=True)
    for ground, ink, name in (("white", "#1a1a1a", "light"), ("#131416", "#e6e6e6", "dark")):
        plot(found["figures"], pictures / f"snapshots-{name}.svg", ground=ground, ink=ink)


def markdown(figures: list[dict[str, Any]], failed: dict[str, str]) -> str:
    """Return the table for a page."""
    rows = ["| workload | against | goal | measured | quartiles | |", "| --- | --- | --- | --- | --- | --- |"]
    for one in figures:
        goal = "" if one["goal"] is None else f"{one['goal']:.2f} {one['unit']}"
        spread = f"{one['result']:.2f} {one['unit']} | {one['low']:.2f} - {one['high']:.2f}"
        verdict = {True: "met", False: "**not met**", None: ""}[one["met"]]
        if one["goal"] is not None and one["low"] <= one["goal"] < one["high"]:
            verdict += ", within the noise"
        note = f"; {one['note']}" if one["note"] else ""
        tried = "" if one["scale"] == 1 else f" (a try, at {one['scale']:g} of the size)"
        rows.append(f"| {one['what']}{tried}{note} | {one['against']} | {goal} | {spread} | {verdict} |")
    rows += [f"| {row} | | | could not be taken: {why} | | |" for row, why in failed.items()]
    return "\n".join(rows) + "\n"


def peers_markdown(peers: dict[str, Any]) -> str:
    """Return the table of other tools for a page."""
    if not peers:
        return "Not taken yet.\n"
    tried = "" if peers["scale"] == 1 else f"A try, at {peers['scale']:g} of the sizes.\n\n"
    rows = ["| work | tool | seen by the loop | quartiles | until it is on the disk | |", "| --- " * 6 + "|"]
    for one in peers["figures"]:
        whole = f"{one['whole']:.2f} x" if one["whole"] is not None else "the same"
        version_of = f" {one['version']}" if one["version"] else ""
        rows.append(
            f"| {one['work']} | {one['tool']}{version_of} | {one['result']:.2f} x | {one['low']:.2f} - {one['high']:.2f} "
            f"| {whole} | {one['note']} |"
        )
    rows += [f"| | {tool} | missing: {why} | | | |" for tool, why in peers["missing"].items()]
    return tried + "\n".join(rows) + "\n"


def plot(figures: list[dict[str, Any]], target: Path, *, ground: str, ink: str) -> None:
    """Draw each result as a share of its goal, on a ground that is light or dark."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    rows = [one for one in figures if one["goal"]][::-1]
    style = {"text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink, "axes.edgecolor": ink}
    more = {"font.size": 10, "svg.fonttype": "none", "svg.hashsalt": "snapshots", "font.family": "sans-serif"}
    with mpl.rc_context({**style, **more}):
        chart, axes = pyplot.subplots(figsize=(9.5, 1.1 + 0.36 * len(rows)), facecolor=ground, layout="constrained")
        axes.set_facecolor(ground)
        for place, one in enumerate(rows):
            share, low, high = (max(one[key] / one["goal"], 0.01) for key in ("result", "low", "high"))
            colour = "#2a9d8f" if one["met"] else "#e07a3f"
            axes.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.5, solid_capstyle="butt")
            axes.plot([share], [place], marker="o" if one["met"] else "D", color=colour, markersize=8)
            text = f"{one['result']:.2f} of {one['goal']:.2f} {one['unit']}"
            axes.annotate(text, (1.01, place), xycoords=("axes fraction", "data"), va="center", fontsize=9)
        axes.axvline(1, color=ink, linewidth=1)
        axes.set_xscale("log")
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_yticks(range(len(rows)), [f"{one['what']} / {one['against']}" for one in rows], fontsize=9)
        axes.set_xlabel("measured / goal; left of the line it is met")
        axes.grid(axis="x", alpha=0.25, color=ink)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        chart.savefig(target, metadata={"Date": None}, facecolor=ground)
        pyplot.close(chart)
