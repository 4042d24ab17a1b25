"""A preview is a faithful excerpt that keeps what later work needs, and says what it left out."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64encode
from time import process_time

import pytest
from hypothesis import given, settings, strategies as st

from hotset import tokens
from hotset.nouns.retrieval import Whole
from hotset.window.pieces import PIECE, lines_of
from hotset.window.preview import ContentOrigin, ContentType, Preview, closing, preview
from hotset.window.slice import cut
from tests.campaign import sample
from tests.window.preview.samples import SAMPLES, Sample, functions, shell, sniff

ROOM = 1500
OURS = ("…", "[")

each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
texts = st.one_of(
    st.text(max_size=400),
    st.lists(
        st.sampled_from([line for sample in SAMPLES for line in sample.text.split("\n")[:40]]),
        max_size=200,
    ).map("\n".join),
    st.builds(
        lambda piece, times: piece * times, st.text(min_size=1, max_size=12), st.integers(1, 3000)
    ),
    st.builds(
        lambda sample, cut, extra: sample.text[cut:] + extra,
        st.sampled_from(SAMPLES),
        st.integers(0, 3000),
        st.text(max_size=50),
    ),
)
origins = st.builds(
    ContentOrigin,
    tool=st.sampled_from(["", "bash", "Read", "Grep"]),
    arguments=st.one_of(
        st.binary(max_size=40), st.sampled_from([sample.origin.arguments for sample in SAMPLES])
    ),
    sought=st.frozensets(
        st.one_of(st.text(max_size=8), st.sampled_from(["step_3", "room_2", "charge_card"])),
        max_size=5,
    ),
)


def made(sample: Sample, room: int = ROOM) -> Preview:
    found = preview(sample.text, sample.origin, room)
    assert found is not None
    return found


@each_sample
def test_content_is_recognised(sample):
    assert sniff(sample.text, sample.origin) is sample.type


@each_sample
def test_what_later_work_needs_is_kept(sample):
    shown = made(sample).text
    assert [piece for piece in sample.kept if piece not in shown] == []


@each_sample
@pytest.mark.parametrize("room", [300, 700, 1500, 3000])
def test_every_line_is_the_source_s_or_marked_as_ours(sample, room):
    found = preview(sample.text, sample.origin, room)
    if found is not None:
        assert [
            line for line in found.text.split("\n") if not _is_faithful(line, found, sample.text)
        ] == []


def _is_faithful(line: str, found: Preview, text: str) -> bool:
    """True for a line of ours, and for one of the source; a search has the names of its files on
    lines of their own, and its longest lines cut."""
    if found.type is ContentType.SEARCH:
        return line.removesuffix(" …") in text or line.startswith(OURS)
    return line in text.split("\n") or line.startswith(OURS)


@settings(max_examples=sample(100, 300), deadline=None)
@given(text=texts, origin=origins, room=st.integers(-5, 3000))
@pytest.mark.slow
def test_any_text_gets_a_preview_that_keeps_to_its_room_and_to_its_source(text, origin, room):
    found = preview(text, origin, room)
    if found is None:
        return
    assert len(found.text) <= max(0, room)
    assert len(found.text) <= 0.75 * len(text)
    assert all(_is_faithful(line, found, text) for line in found.text.split("\n") if line)
    assert preview(text, origin, room) == found


@settings(max_examples=sample(40, 100), deadline=None)
@given(text=texts, room=st.integers(200, 2000))
def test_shown_lines_and_gaps_together_are_the_whole_text(text, room):
    """Whoever follows the marks of a preview made of lines finds every line exactly once, in
    order."""
    found = preview(text, ContentOrigin(), room)
    lines = lines_of(text)
    if (
        found is None
        or found.type
        in (ContentType.JSON, ContentType.HTML, ContentType.OPAQUE, ContentType.SEARCH)
        or any(map(_like_ours, lines))
    ):
        return
    at = 0
    for line in found.text.split("\n"):
        if line.startswith(("… also mentions", "[")) and (at >= len(lines) or line != lines[at]):
            continue
        if gap := re.match(r"… lines? (\d+)(?:-(\d+))?(?: …|:)", line):
            assert int(gap[1]) == at + 1
            at = int(gap[2] or gap[1])
        elif cut := re.match(r"… line (\d+) \(", line):
            assert int(cut[1]) == at + 1
            at += 1
        else:
            assert line == lines[at]
            at += 1
    assert at == len(lines)


def _like_ours(line: str) -> bool:
    return line.startswith(OURS)


def test_a_text_that_fits_is_shown_whole():
    assert preview("short", ContentOrigin(), 100) is None


def test_a_text_that_hardly_shrinks_is_shown_whole():
    assert preview("\n".join(functions(20)), shell("cat a.py"), 3800) is None


def test_a_function_that_was_asked_for_is_shown_whole_and_others_are_named_with_their_lines():
    text = "\n".join(functions(60))
    shown = preview(text, shell("cat a.py", "step_33"), 1200)
    assert shown is not None
    start = text.split("\n").index("def step_33(path: Path, limit: int) -> list[str]:")
    assert "\n".join(text.split("\n")[start : start + 4]) in shown.text
    assert re.search(r"… lines \d+-\d+: step_\d+ \d+", shown.text)


def test_the_numbers_before_lines_stay_as_they_are():
    sample = next(sample for sample in SAMPLES if sample.name == "numbered code")
    assert re.search(r"^ {4}89→def step_17", made(sample).text, re.MULTILINE)


def test_errors_are_kept_before_passes():
    lines = [f"test_{index} PASSED" for index in range(300)]
    lines[200:200] = [f"E   AssertionError: case {index} broke" for index in range(6)]
    shown = preview("\n".join(lines), shell("pytest"), 700)
    assert shown is not None
    assert all(f"case {index} broke" in shown.text for index in range(6))


def test_a_text_inside_json_is_shown_by_its_lines():
    body = "## Summary\\n" + "\\n".join(
        f"- change {index} touches `src/part_{index}.py`" for index in range(120)
    )
    shown = preview(f'{{"number": 17, "body": "{body}"}}', ContentOrigin(tool="fetch_pr"), 900)
    assert shown is not None
    assert "… $.number: 17" in shown.text
    assert "…   - change 3 touches `src/part_3.py`" in shown.text


def test_the_closing_line_says_what_was_left_out_and_how_to_bring_it_back():
    found = preview("\n".join(functions(60)), shell("cat a.py"), 800)
    assert found is not None
    line = closing(found, "c1f2a3b4c5d6")
    assert re.fullmatch(
        r"\[hotset: left out \d+ of 302 lines \([\d,]+ of [\d,]+ characters\); "
        r'any part: retrieve_context\(id="c1f2a3b4c5d6", lines="\d+-\d+"\)\]',
        line,
    )


def test_the_slice_of_a_closing_line_lies_in_a_gap():
    found = preview("\n".join(functions(60)), shell("cat a.py"), 800)
    assert found is not None
    first, last = map(int, re.findall(r"\d+", found.slice))
    gaps = [(int(a), int(b)) for a, b in re.findall(r"… lines (\d+)-(\d+)", found.text)]
    assert any(a <= first <= last <= b for a, b in gaps)


def test_the_slice_of_json_is_a_path():
    sample = next(sample for sample in SAMPLES if sample.name == "json")
    assert re.fullmatch(r'path="\$[^"]*"', made(sample).slice)


BOMBS = {
    "one long line": "x" * 1_000_000,
    "many lines": "\n".join(f"line {index}" for index in range(100_000)),
    "combining marks": "Z̸̢̛a̵l̷" * 60_000,
    "open brackets": "[" * 200_000,
    "open tags": "<html>" + "<" * 200_000,
    "half characters": "\ud800abc\n" * 50_000,
    "blanks": (" " * 500 + "\n") * 1_000,
    "parentheses": ("a" * 60 + " b(" + "(" * 60 + "\n") * 3_000,
    "empty lines": "\n" * 100_000,
    "separators": "a:1:" * 100_000,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.slow
def test_no_text_takes_long(name):
    start = process_time()
    for command in ("\n" * 16_000, "a" * 16_000, "a=" * 8_000, "; " * 8_000):
        preview(BOMBS[name], shell(command, "line"), 2500)
    assert process_time() - start < 20  # it takes one on a calm machine; a bomb would take minutes


@pytest.mark.slow
def test_the_same_text_gets_the_same_preview_in_another_process():
    """Hash seeds differ between processes; previews must not."""
    code = (
        "from tests.window.preview.samples import SAMPLES; from hotset.window.preview import "
        "preview; import hashlib;"
        "print(hashlib.sha256(repr([preview(s.text, s.origin, 1500) for s in "
        "SAMPLES]).encode('utf-8', 'replace')).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


ONE_LINE = {
    "minified script": "".join(f"function f{n}(a,b){{return a*{n}+b}};" for n in range(900)),
    "base64": b64encode(bytes(n * 7 % 251 for n in range(24_000))).decode(),
    "page": "<!doctype html><html><body>"
    + "".join(f"<h2>Part {n}</h2><p>About {n} words.</p>" for n in range(600))
    + "</body></html>",
    "JSON cut off by a tool": '{"rows": ['
    + ",".join(f'{{"id": {n}, "name": "row {n}"}}' for n in range(900))[:-9],
}


@pytest.mark.parametrize("text", ONE_LINE.values(), ids=ONE_LINE)
def test_a_preview_of_one_long_line_names_a_part_of_it_that_can_be_asked_for(text):
    found = preview(text, ContentOrigin(), ROOM)
    assert found is not None
    pieces = -(-len(text) // PIECE)

    assert (
        f'(line 1 in pieces 1.1-1.{pieces}); any part: retrieve_context(id="c1", lines="1.1-1.10")'
        in closing(found, "c1")
    )


def test_a_long_line_among_short_ones_is_named_where_it_is_most_of_what_was_left_out():
    text = "HTTP/1.1 200 OK\ncontent-type: text/plain\n\n" + "word " * 8000 + "\n"
    found = preview(text, ContentOrigin(), ROOM)
    assert found is not None

    assert found.slice == 'lines="4.1-4.10"'


def test_a_line_feed_at_the_end_begins_no_line():
    text = "".join(f"line {n} of a plain text\n" for n in range(1, 2631))
    found = preview(text, ContentOrigin(), ROOM)
    assert found is not None

    assert "of 2,630 lines" in found.left_out
    assert "of 2,630" in cut(text, Whole(), 500, tokens.count).note
