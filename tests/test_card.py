"""The card: what a person sees of a run, in a terminal, in a notebook, and in a colleague's untrusted copy of it."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from nbresume._card import View, html, mimebundle, runs_table, svg, text
from nbresume._events import Event
from nbresume._lineage import Lineage, fold
from nbresume._session import view as view_of

NOW = "2025-11-29T15:02:30.000+00:00"
WHERE = "epoch 7 of 30, batch 310 of 500"
SNAPSHOT = {"snapshot": "000002-000041", "where": WHERE, "bytes": 37_047_770, "seconds": 0.038, "loops": []}

# What JupyterLab 4.6 keeps of a style attribute when a notebook is not trusted (packages/apputils/src/sanitizer.ts).
KEPT_STYLES = set(
    "background border border-left border-radius border-collapse color cursor display font-family font-size font-weight "
    "height line-height margin max-width opacity overflow-wrap padding text-align vertical-align white-space width".split()
)
KEPT_TAGS = set("b button code details div img pre progress span summary table tbody td tr".split())


def at(minute):
    return f"2025-11-29T{8 + minute // 60:02d}:{minute % 60:02d}:00.000+00:00"


def event(kind, attempt, minute, **facts):
    return Event(kind, attempt, at(minute), facts)


def interrupted():
    return fold(
        [
            event("launched", 1, 0),
            event("snapshot", 1, 10, where="epoch 5 of 30"),
            event("interrupted", 1, 11, cause="preempted"),
            event("resumed", 2, 60, where="epoch 5 of 30"),
            event("snapshot", 2, 90, where=WHERE),
            event("snapshot", 2, 91, where=WHERE),
        ]
    )


def superseded():
    return fold(
        [
            event("launched", 1, 0),
            event("interrupted", 1, 5, cause="exception"),
            event("superseded", 1, 6, by="train-2"),
        ]
    )


def completed():
    return fold([event("launched", 1, 7), event("snapshot", 1, 8, where="the end"), event("completed", 1, 9)])


@pytest.fixture
def view():
    return View(
        "train",
        "train-a1b2c3",
        interrupted(),
        "interrupted",
        where=WHERE,
        loops=(("epoch", 6, 30), ("batch", 310, 500)),
        snapshot=SNAPSHOT,
        snapshot_at="2025-11-29T15:00:30.000+00:00",
        saved=(("model", 12_345_678), ("total", 32)),
        identity=(("lr", "0.01"), ("code", "cell, 14 lines")),
        notes=("the newest snapshot was rejected",),
        log_tail=("epoch 6 loss 0.38",),
        metrics={"loss": [2.0, 1.0, 0.5]},
        offer=True,
    )


class Elements(HTMLParser):
    """Every element with its attributes, and whether all are closed in order."""

    def __init__(self, markup):
        super().__init__()
        self.found, self.open, self.words = [], [], []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def drawings(markup):
    sources = [image["src"] for image in Elements(markup).named("img")]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    return [base64.b64decode(source.partition(",")[2]).decode() for source in sources]


def marks(lineage_svg):
    tree = ET.fromstring(lineage_svg)
    return [group.get("data-event") for group in tree.iter() if group.get("data-event")]


def everything(card):
    return html(card, now=NOW) + "".join(drawings(html(card, now=NOW))) + text(card, NOW) + runs_table([card], NOW)


# ---------------------------------------------------------------- html


def test_the_card_keeps_to_what_an_untrusted_notebook_keeps(view):
    for state in ("interrupted", "running", "completed"):
        elements = Elements(html(replace(view, state=state, differences=("lr: 1 -> 2",)), now=NOW))
        assert not elements.open
        assert {tag for tag, _ in elements.found} <= KEPT_TAGS
        for _, attributes in elements.found:
            for declaration in attributes.get("style", "").split(";"):
                if declaration.strip():
                    name, value = declaration.split(":")
                    assert name.strip() in KEPT_STYLES
                    assert "currentcolor" not in value.lower()
                    assert "inherit" not in value


def test_the_card_has_no_background_of_its_own_but_the_buttons(view):
    elements = Elements(html(view, now=NOW))
    styles = [attributes.get("style", "") for tag, attributes in elements.found if tag != "button"]
    assert {found for style in styles for found in re.findall(r"background: ([^;]+)", style)} <= {"transparent"}
    assert "#fff" not in "".join(styles)
    assert "#000" not in "".join(styles)


def test_every_drawing_has_words_for_who_cannot_see_it(view):
    lineage, loss = [image["alt"] for image in Elements(html(view, now=NOW)).named("img")]
    assert "attempt 1 launched" in lineage
    assert "interrupted (preempted)" in lineage
    assert "attempt 2 resumed from epoch 5 of 30" in lineage
    assert "interrupted (vanished)" in lineage
    assert loss == "loss: 3 values from 2 to 0.5, between 0.5 and 2"


def test_whatever_a_user_named_is_escaped():
    evil = "<script>alert(1)</script><b onmouseover='x'>&\"'"
    lineage = fold([event("launched", 1, 0), event("interrupted", 1, 1, cause=evil)])
    card = View(
        evil,
        evil,
        lineage,
        "interrupted",
        where=evil,
        snapshot={"where": evil + "!"},
        snapshot_at=at(1),
        saved=((evil, 1), (evil, 2)),
        identity=((evil, evil),),
        notes=(evil,),
        family=((evil, superseded()),),
        log_tail=(evil,),
        metrics={evil: [1.0, 2.0]},
        offer=True,
    )
    for one in (card, replace(card, differences=(evil,))):
        elements = Elements(html(one, now=NOW))
        assert {tag for tag, _ in elements.found} <= KEPT_TAGS
        assert not any("onmouseover" in attributes for _, attributes in elements.found)
        assert evil in "".join(elements.words)
        for drawing in drawings(html(one, now=NOW)):
            ET.fromstring(drawing)


def test_no_card_tells_of_the_machine_it_was_made_on(view):
    path = "/home/alice/work/.nbresume/train-a1b2c3/snapshots/000002-000042.h5"
    told = (f"digest of {path} differs", f"'{path}': gone.", f"see file://{path}", "~/secret/x.csv", "/home/alice")
    card = replace(
        view,
        notes=told,
        differences=told,
        log_tail=told,
        identity=(("data", path),),
        where=path,
        snapshot={**SNAPSHOT, "where": path + "2"},
        lineage=replace(view.lineage, attempts=tuple(replace(a, where=path) for a in view.lineage.attempts)),
    )
    shown = everything(card)
    assert "alice" not in shown
    assert "secret" not in shown
    assert "…/000002-000042.h5" in shown


@pytest.mark.parametrize(
    "kept", ["loss/step/epoch 3", "s3://bucket/key/x", "1/2", "lr: 0.1 -> 0.01", "a / b", "./a/b/c.csv"]
)
def test_what_only_looks_like_a_path_is_left_alone(view, kept):
    assert kept in text(replace(view, notes=(kept,)), NOW)


def test_an_offer_can_be_taken_with_and_without_scripts(view):
    card = html(view, now=NOW)
    (button,) = Elements(card).named("button")
    assert '"train"' in button["onclick"]
    assert "or run its cell again (Shift+Enter)" in card
    assert "%nbresume supersede train" in card


def test_a_changed_run_offers_no_click_that_would_only_be_refused(view):
    card = html(replace(view, differences=("lr: 0.1 -> 0.01",)), now=NOW)
    assert not Elements(card).named("button")
    assert "lr: 0.1 -&gt; 0.01" in card
    assert "%nbresume supersede train" in card


def test_a_run_that_will_be_superseded_has_no_button_that_says_continue(view):
    """The button runs the cell, and running the cell would supersede."""
    decided = replace(view, said="supersede")
    for shown in (html(decided, now=NOW), text(decided, NOW)):
        assert "it starts a new run, and this one is kept as superseded" in shown
        assert "%nbresume continue train" in shown
    assert not Elements(html(decided, now=NOW)).named("button")


def test_a_card_of_a_dead_kernel_can_be_told_from_a_living_one(view):
    assert "If this time stands still, the kernel is gone" in html(replace(view, state="running"), now=NOW)
    assert "stands still" not in html(view, now=NOW)


def test_a_brief_card_has_name_and_state_alone(view):
    brief = mimebundle(view, now=NOW, is_brief=True)
    assert Elements(brief["text/html"]).words == ["train", "✕ interrupted (vanished)", "train-a1b2c3"]
    assert brief["text/plain"] == "train  interrupted (vanished)  [train-a1b2c3]"


def test_only_an_offer_has_a_button(view):
    assert not Elements(html(replace(view, offer=False), now=NOW)).named("button")


def test_progress_counts_the_inner_loops_and_is_never_early(view):
    (bar,) = Elements(html(view, now=NOW)).named("progress")
    assert float(bar["value"]) == pytest.approx((6 + 310 / 500) / 30, abs=1e-3)
    almost = replace(view, loops=(("epoch", 29, 30), ("batch", 499, 500)))
    assert "99 %" in html(almost, now=NOW)
    unknown = replace(view, loops=(("line", 12, None),))
    assert not Elements(html(unknown, now=NOW)).named("progress")
    assert WHERE in html(unknown, now=NOW)


def test_ages_are_relative_with_the_absolute_time_at_hand(view):
    card = html(view, now=NOW)
    assert '<span title="2025-11-29 15:00 UTC">2 min ago</span> · 37.0 MB · took 38 ms' in card
    assert '<span style="white-space: nowrap" title="2025-11-29 09:00 UTC">6 h ago</span>' in card
    assert "as of 2025-11-29 15:02 UTC" in card


def test_a_metric_that_broke_is_still_drawn(view):
    values = [1.0, float("nan"), float("inf"), 2.0, -1.7e308, 1.7e308]
    card = html(replace(view, metrics={"loss": values, "none": [], "one": [3.0], "nan": [float("nan")]}), now=NOW)
    for drawing in drawings(card):
        ET.fromstring(drawing)
        assert "nan" not in drawing
        assert "inf" not in drawing


def test_a_long_metric_is_drawn_small_with_its_last_value(view):
    plot = drawings(html(replace(view, metrics={"loss": [float(i) for i in range(100_001)]}), now=NOW))[1]
    assert len(plot) < 10_000
    assert plot.count("147.0,3.0") == 1


def test_a_run_of_which_nothing_is_known_yet_has_a_card():
    bare = View("train", "train-1", Lineage(), "running")
    assert "none yet" in html(bare, now=NOW)
    assert "none yet" in text(bare, NOW)
    ET.fromstring(svg(bare))
    assert runs_table([bare], NOW).splitlines()[1].split() == ["train", "running", "-", "-", "0", "-", "-"]


def test_the_bundle_holds_both_forms(view):
    assert mimebundle(view, now=NOW) == {"text/html": html(view, now=NOW), "text/plain": text(view, NOW)}
    assert set(mimebundle(view)) == {"text/html", "text/plain"}


# ---------------------------------------------------------------- svg


def test_the_drawing_has_one_mark_for_each_event(view):
    assert marks(svg(replace(view, family=(("train-0", superseded()),), lineage=completed()))) == [
        "launched",
        "interrupted",
        "superseded",
        "launched",
        "snapshots",
        "completed",
    ]
    assert marks(svg(view)) == ["launched", "snapshots", "interrupted", "resumed", "snapshots", "interrupted"]


def test_an_abandoned_run_shows_both_its_end_and_the_word(view):
    lineage = fold([event("launched", 1, 0), event("interrupted", 1, 1, cause="signal"), event("abandoned", 1, 2)])
    assert marks(svg(replace(view, lineage=lineage))) == ["launched", "interrupted", "abandoned"]


def test_a_running_attempt_has_an_open_end(view):
    assert marks(svg(replace(view, lineage=fold([event("launched", 1, 0)], alive=True)))) == ["launched", "running"]


def test_a_completed_run_that_was_superseded_shows_both(view):
    old = fold([event("launched", 1, 0), event("completed", 1, 1), event("superseded", 1, 2, by="train-9")])
    assert marks(svg(replace(view, family=(("train-0", old),))))[:3] == ["launched", "completed", "superseded"]


def test_the_drawing_says_what_it_leaves_out(view):
    events = [event("launched", 1, 0), *(event("resumed", n, n, where="x") for n in range(2, 101))]
    drawing = svg(replace(view, lineage=fold(events), family=tuple((f"train-{n}", superseded()) for n in range(20))))
    assert "96 more" in drawing
    assert "(+ 17 earlier)" in drawing
    assert marks(drawing).count("resumed") == 3
    assert int(ET.fromstring(drawing).get("width")) < 900  # not made smaller to fit in


def test_the_drawing_is_the_same_for_the_same_run(view):
    assert svg(view) == svg(replace(view))


def test_no_meaning_hangs_on_colour_alone(view):
    tree = ET.fromstring(svg(replace(view, family=(("train-0", superseded()),))))
    space = "{http://www.w3.org/2000/svg}"
    shapes = {}
    for group in tree.iter(f"{space}g"):
        assert group.find(f"{space}title").text
        assert group.find(f"{space}text").text
        kept = [(e.tag, e.get("d"), e.get("r")) for e in group if e.tag not in (f"{space}title", f"{space}text")]
        shapes[group.get("data-event")] = str(kept)
    assert len(set(shapes.values())) == len(shapes) == 5


def contrast(one, other):
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_colour_can_be_read_on_a_light_and_on_a_dark_page(view):
    drawn = svg(replace(view, family=(("train-0", superseded()),), lineage=completed()))
    colours = set(re.findall(r"#[0-9a-f]{6}", drawn + svg(view) + drawings(html(view, now=NOW))[1]))
    assert len(colours) == 5
    for colour in colours:
        assert contrast(colour, "#ffffff") >= 4
        assert contrast(colour, "#111111") >= 4


# ---------------------------------------------------------------- text


def test_the_text_has_no_escape_codes_whatever_the_cell_printed(view):
    tail = ("\x1b[31mred\x1b[0m loss\x07", "10%|#\r55%|###\r100%|####", "\x1b]0;title\x07bell", "50%\r\n")
    shown = text(replace(view, log_tail=tail), NOW)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert [line.strip() for line in shown.splitlines()[-4:]] == ["red loss", "100%|####", "bell", "50%"]


def test_the_text_tells_what_the_card_tells(view):
    shown = text(view, NOW)
    for told in (
        "interrupted (vanished)",
        WHERE,
        "22 %",
        "2 min ago",
        "37.0 MB",
        "38 ms",
        "preempted",
        "the newest snapshot",
    ):
        assert told in shown
        assert told in html(view, now=NOW)


def test_the_sizes_stand_below_each_other(view):
    lines = text(view, NOW).splitlines()
    first = lines.index("what is saved") + 1
    assert lines[first : first + 2] == ["  model  12.3 MB", "  total     32 B"]


def test_the_list_of_runs_is_aligned(view):
    other = replace(view, name="a-longer-name", state="running", where="", snapshot={}, snapshot_at="")
    lines = runs_table([replace(view, disk=111_143_310), replace(other, disk=1)], NOW).splitlines()
    for head in ("STATE", "WHERE IT STANDS", "LAST SNAPSHOT"):
        column = lines[0].index(head)
        assert all(line[column - 2 : column] == "  " and line[column] != " " for line in lines)
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split("  ")[-2:] == ["37.0 MB", "111.1 MB"]
    assert "on disk" in text(replace(view, disk=111_143_310), NOW)
    assert "111.1 MB" in html(replace(view, disk=111_143_310), now=NOW)


def test_an_empty_list_says_so():
    assert runs_table([], NOW) == "no runs here"


def test_a_text_of_several_lines_stays_in_its_column(view):
    assert "code  a b" in text(replace(view, identity=(("code", "a\nb"),)), NOW)


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ("2025-11-29T15:02:30.000+00:00", "just now"),
        ("2025-11-29T15:02:29.000+00:00", "1 s ago"),
        ("2025-11-29T14:02:29.000+00:00", "1 h ago"),
        ("2025-11-28T15:02:29.000+00:00", "1 day ago"),
        ("2025-11-20T15:02:29.000+00:00", "9 days ago"),
        ("2025-11-30T15:02:29.000+00:00", "just now"),
        ("2025-11-29T15:00:30.000", "2 min ago"),
        ("no time at all", "-"),
    ],
)
def test_ages_are_told_in_one_unit(view, then, told):
    assert f"  {told}  " in runs_table([replace(view, snapshot_at=then)], NOW)


def test_the_result_names_its_attempts_and_a_superseded_run_its_successor_in_both_forms(view):
    """Which attempts it is made of; whose word superseded it, and what differed then."""
    made = fold(
        [
            event("launched", 1, 0),
            event("resumed", 2, 1),
            event("reconciled", 2, 2, attempts=[1, 2]),
            event("completed", 2, 3),
        ]
    )
    taken = fold(
        [
            event("launched", 1, 0),
            event("superseded", 1, 1, by="train-9", because=["--on-restart supersede", "lr: 0.1 -> 0.2"]),
        ]
    )
    for lineage, words in ((made, "attempts 1, 2, each"), (taken, "train-9; --on-restart supersede; lr: 0.1 -")):
        one = replace(view, lineage=lineage, state=lineage.state)
        assert words in text(one, NOW)
        assert words in html(one, now=NOW)


def test_an_end_is_told_with_what_is_known_of_it(view):
    lineage = fold(
        [
            event("launched", 1, 0),
            event("resumed", 2, 1),
            event("interrupted", 2, 2, cause="exception", error="ValueError", message="bad /home/me/x/y.txt"),
        ]
    )
    shown = text(replace(view, lineage=lineage), NOW)
    assert "vanished (without a last word)" in shown
    assert "exception (ValueError: bad" in shown
    assert "/home/me" not in shown


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], False),
        ([event("warned", 1, 9, text="the disk is full", protected=False)], True),
        (
            [event("warned", 1, 9, text="x", protected=False), event("warned", 1, 10, text="again", protected=True)],
            False,
        ),
        ([event("warned", 1, 9, text="x", protected=False), event("snapshot", 1, 10, where="epoch 6 of 30")], False),
        ([event("warned", 1, 9, text="x", protected=False), event("warned", 1, 10, text="something else")], True),
        ([event("warned", 1, 9, text="x", protected=False), event("completed", 1, 10)], False),
    ],
)
def test_a_run_that_is_not_protected_says_since_when(more, told):
    """Until it is protected again, or has another snapshot, or has ended."""
    lineage = fold([event("launched", 1, 0), event("snapshot", 1, 5, where="epoch 5 of 30"), *more], alive=True)
    view = View("train", "train-1", lineage, lineage.state, snapshot_at=lineage.last_snapshot_at)
    assert ("NOT PROTECTED" in text(view, NOW)) is told
    assert ("not protected" in html(view, now=NOW)) is told
    if told:
        assert "since 2025-11-29 08:05 UTC: if the kernel dies now" in text(view, NOW)


# ---------------------------------------------------------------- pace, and what is on the disk


@pytest.mark.parametrize(
    ("rate", "told"),
    [
        (("batch", 3.24), "3.24 batch/s"),
        (("epoch", 0.05), "3 epoch/min"),
        (("epoch", 0.001), "3.6 epoch/h"),
        (("epoch", 1e-4), "2 h 46 min per epoch"),
    ],
)
def test_the_pace_is_told_in_a_unit_that_can_be_read(view, rate, told):
    for shown in (html(replace(view, rate=rate), now=NOW), text(replace(view, rate=rate), NOW)):
        assert told in shown


def test_what_is_left_and_what_was_worked_is_active_time(view):
    going = replace(view, state="running", rate=("batch", 3.0), seconds_left=4520.0, active=7412.0)
    assert "3 batch/s · about 1 h 15 min left · 2 h 03 min of work done" in html(going, now=NOW)
    assert "3 batch/s, about 1 h 15 min left, 2 h 03 min of work done" in text(going, NOW)
    waits = replace(going, state="interrupted")
    assert "about 1 h 15 min of work left" in html(waits, now=NOW)
    assert "about 1 h 15 min of work left" in text(waits, NOW)
    done = replace(view, state="completed", snapshot={**SNAPSHOT, "active": 7412.0})
    assert "2 h 03 min of work" in html(done, now=NOW)
    assert "2 h 03 min of work" in text(done, NOW)


def test_the_newest_snapshot_is_told_with_what_the_loop_waited_and_what_was_seen_of_its_file(view):
    one = replace(view, snapshot={**SNAPSHOT, "stalled": 0.004}, belief="verified, signed")
    for shown in (html(one, now=NOW), text(one, NOW)):
        assert "took 38 ms (the loop waited 4 ms)" in shown
        assert "verified, signed" in shown


def test_the_drawing_tells_which_snapshots_are_still_there(view):
    drawn = svg(replace(view, kept={2: 1}))
    assert "2 snapshots, 1 kept" in drawn
    assert ">1 snapshot<" in drawn
    assert "2 snapshots, 1 kept" in Elements(html(replace(view, kept={2: 1}), now=NOW)).named("img")[0]["alt"]


def test_words_of_the_drawing_do_not_touch_each_other(view):
    """Below the line and above it, on each lane, with the widest words there are."""
    old = fold(
        [
            event("launched", 1, 0),
            event("interrupted", 1, 1, cause="preempted"),
            event("resumed", 2, 2, where="x"),
            *(event("snapshot", 2, 3, where="x") for _ in range(9999)),
            event("interrupted", 2, 4, cause="exception"),
            event("superseded", 2, 5, by="train-9"),
        ]
    )
    long = replace(view, family=(("train-0", old),), kept={1: 0, 2: 1})
    boxes = []
    tree = ET.fromstring(svg(long))
    space = "{http://www.w3.org/2000/svg}"
    for group in [tree, *tree.iter(f"{space}g")]:
        across, down = map(float, re.findall(r"[\d.]+", group.get("transform", "translate(0 0)"))[:2])
        for word in group.findall(f"{space}text"):
            width = 5.6 * len(word.text)
            x = across + float(word.get("x", 0)) - (width / 2 if word.get("text-anchor") else 0)
            y = down + float(word.get("y"))
            boxes.append((x, x + width, y - 9, y + 3, word.text))
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
            assert apart, (one, other)


# ---------------------------------------------------------------- of a real run


TRAIN = """
losses, scores, order, history = [], [], [2, 1, 0], {"val": [], "names": ["a"]}
for epoch in range(4):
    losses.append(1 / (epoch + 1))
    scores.append(np.float32(epoch))
    history["val"].append(0.5)
"""


def test_numbers_that_a_cell_collects_are_found_and_indices_are_not(notebook):
    notebook.run("import numpy as np")
    notebook.run("%%resumable train --vars scores,losses\n" + TRAIN)
    (run,) = notebook.runs
    found = notebook.shell._nbresume_extension.host.series(run)
    assert list(found) == ["scores", "losses", "history.val"]
    assert found["losses"] == [1, 1 / 2, 1 / 3, 1 / 4]


def test_the_file_of_the_newest_snapshot_is_looked_at_and_read_whole_for_an_offer(notebook):
    notebook.run("import numpy as np")
    notebook.fails("%%resumable train --vars losses --every 1\n" + TRAIN + "    if epoch == 2: raise ValueError\n")
    (run,) = notebook.runs
    assert view_of(run).belief == "complete, signed"
    assert view_of(run, offer=True).belief == "verified, signed"
    assert sum(view_of(run).kept.values()) == 3
    file = run.snapshots()[-1].path
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert view_of(run).belief == "complete, signed"
    assert view_of(run, offer=True).belief.startswith("can't be believed: ")
    file.write_bytes(b"x")
    assert view_of(run).belief.startswith("can't be believed: ")
    file.unlink()
    assert view_of(run).belief.startswith("can't be believed: ")
