"""What was kept can be found: every page that says something, once, by its words and its place, and
never a secret."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from history_process import EMBEDDER, TUNING
from hypothesis import given, settings, strategies as st

from hotset.errors import PageDamaged
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.index.port import Watermark
from hotset.nouns.message import Part
from hotset.nouns.page import Kind, Role
from hotset.nouns.search import Filter, Query, Sort
from hotset.sealing import VERSION, seal
from hotset.sources.history import find, follow, followed
from hotset.sources.history.pages import WATERMARK
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.testing.fakes import HashingEmbedder
from hotset.testing.ram_store import RamStore
from hotset.testing.secrets import planted
from hotset.testing.store_talk import StoreTalk, message, text_message, turn_of
from hotset.window.page_text import page_stretches, stretches

REMINDER = "<reminder>\nThe todo list has changed; go on with the tasks at hand.\n</reminder>"


@pytest.fixture
def store():
    return RamStore()


@pytest.fixture
def index(tmp_path):
    with LocalIndex(
        tmp_path / "index", HashingEmbedder(64), sealing=VERSION, folds=False
    ) as opened:
        yield opened


@pytest.fixture
def by_meaning(tmp_path):
    """An index with the embedder that ships."""
    with LocalIndex(tmp_path / "meaning", WordVectors(), sealing=VERSION, folds=False) as opened:
        yield opened


def bring(store, index):
    return follow(store, index, time.monotonic() + 60)


def found(store, index, words, most=10, fits=lambda _: True, **only):
    bring(store, index)
    return [
        each.page
        for each in find(Query(words, Filter(**only), most, 30.0), store, index, fits).best
    ]


def texts(store, pages):
    return [store.content(page.digest).decode() for page in pages]


def brings(tool, content, call="call_1", kind=Kind.TOOL_RESULT):
    raw = content if isinstance(content, bytes) else content.encode()
    return message(Role.TOOL, Part(kind, raw, "text/plain", tool, call))


def calls(tool, call="call_1", **arguments):
    return message(
        Role.ASSISTANT,
        Part(Kind.TOOL_CALL, json.dumps(arguments).encode(), "application/json", tool, call),
    )


# --- stretches
# --------------------------------------------------------------------------------------------------

_lines = st.lists(
    st.sampled_from(
        [
            "",
            "  ",
            "word " * 3,
            "x = 1",
            "a longer line of some words " * 4,
            "no_space" * 300,
            "w " * 900,
        ]
    )
)


@given(_lines, st.integers(1, 50))
def test_every_line_that_says_something_is_in_a_stretch_under_its_number(lines, first):
    cut = list(stretches("\n".join(lines), first))

    told = {}
    for stretch in cut:
        begin, end = (number - first for number in stretch.lines)
        if begin == end and stretch.text != lines[begin]:
            told[begin] = told.get(begin, "") + stretch.text
            continue
        assert stretch.text == "\n".join(lines[begin : end + 1])
        assert not told.keys() & set(range(begin, end + 1))
        told |= dict(enumerate(lines[begin : end + 1], begin))
    assert {number: line for number, line in told.items() if line.strip()} == {
        number: line for number, line in enumerate(lines) if line.strip()
    }
    assert all(len(stretch.text) <= 1200 for stretch in cut)


def test_a_stretch_ends_at_a_blank_line_where_there_is_one():
    paragraphs = [f"This is paragraph {number}. " + "It goes on. " * 40 for number in range(5)]

    assert [stretch.text for stretch in stretches("\n\n".join(paragraphs))] == paragraphs


# --- what is found
# --------------------------------------------------------------------------------------------------


def test_a_page_is_found_with_the_lines_that_speak_of_it(store, index):
    talk = StoreTalk(store)
    text = "\n".join(f"def step_{number}(x):\n    return x + {number}\n" for number in range(300))
    talk.hears(talk.asks("read it").turn, calls("read_file", path="src/steps.py"))
    talk.asks(brings("read_file", text, kind=Kind.FILE))
    bring(store, index)

    (first, *_) = find(Query("step_217", deadline=30.0), store, index).best

    assert first.page.kind is Kind.FILE
    assert first.by_words
    assert "step_217" in "\n".join(text.split("\n")[first.lines[0] - 1 : first.lines[1]])
    assert first.lines[1] - first.lines[0] < 60


def test_a_result_is_found_by_what_its_call_asked_for(store, index):
    talk = StoreTalk(store)
    talk.hears(talk.asks("look").turn, calls("read_file", path="src/uploads/retrying.py"))
    talk.asks(brings("read_file", "def wait(): ..."))

    assert found(store, index, "wait", path="src/uploads")[0].kind is Kind.TOOL_RESULT
    assert found(store, index, "wait", path="src/other") == []
    assert found(store, index, "retrying", kinds=frozenset({"tool_result"}))[0].tool == "read_file"


def test_a_script_in_a_calls_arguments_is_found_by_its_lines(store, index):
    talk = StoreTalk(store)
    talk.hears(
        talk.asks("run it").turn, calls("bash", command="set -e\nmake frobnicate\necho done")
    )

    assert [page.kind for page in found(store, index, '"make frobnicate"')] == [Kind.TOOL_CALL]


def test_words_that_nobody_said_find_nothing(store, by_meaning):
    talk = StoreTalk(store)
    for number in range(30):
        talk.turn(f"what is in the box number {number}?", f"in the box there is thing {number}")

    assert found(store, by_meaning, "unicorns in the meadow") == []


def test_what_says_it_in_other_words_is_found_by_its_meaning(store, by_meaning):
    talk = StoreTalk(store)
    talk.turn("make lunch", "soup with carrots and onions")
    talk.turn("what happened?", "the vehicle's motor has failed")
    bring(store, by_meaning)

    (only,) = find(Query("car engine broke", deadline=30.0), store, by_meaning).best

    assert only.page.turn == 2
    assert not only.by_words


@pytest.mark.parametrize("kind", [Kind.SYSTEM, Kind.THINKING, Kind.OPAQUE, Kind.IMAGE])
def test_kinds_that_say_nothing_are_left_out(store, index, kind):
    StoreTalk(store).asks(
        message(Role.USER, Part(kind, b"zeppelin"), Part(Kind.PROMPT, b"airship"))
    )

    assert found(store, index, "zeppelin") == []
    assert len(found(store, index, "airship")) == 1


def test_data_and_what_our_own_tools_found_are_left_out(store, index):
    blob = base64.b64encode(random.Random(1).randbytes(3000)).decode()
    wrapped = "\n".join(blob[at : at + 76] for at in range(0, len(blob), 76))
    talk = StoreTalk(store)
    talk.asks(
        brings("fetch", f"before the zeppelin\n{blob}\n{wrapped}\nbehind the airship"),
        brings("mcp__hotset__search_history", "balloon"),
        brings("shot", b"\x89PNG\0\0\0 balloon"),
    )

    bring(store, index)
    (whole,) = index.wholes(Sort.PAGE)
    (find_behind,) = find(Query("airship", deadline=30.0), store, index).best

    assert whole == find_behind.page.id
    assert find_behind.lines[1] == 3 + wrapped.count("\n") + 1
    assert index.state().entries == 1
    assert found(store, index, "balloon") == []


def test_of_a_very_long_page_the_begin_and_the_end_are_found(store, index):
    log = [f"line {number} of the log says nothing" for number in range(40_000)]
    log[10], log[20_000], log[-10] = "the zeppelin rises", "the balloon bursts", "the airship lands"
    StoreTalk(store).asks(brings("bash", "\n".join(log)))
    bring(store, index)

    begin, end = (
        find(Query(word, deadline=30.0), store, index).best[0] for word in ("zeppelin", "airship")
    )

    assert begin.lines[0] <= 11 <= begin.lines[1]
    assert end.lines[0] <= 39_991 <= end.lines[1]
    assert found(store, index, "balloon") == []
    assert index.state().entries < 1500


# --- said again
# --------------------------------------------------------------------------------------------------


def test_what_is_said_again_and_again_is_found_once_and_where_every_condition_holds(store, index):
    talk = StoreTalk(store)
    for number in range(30):
        talk.turn(REMINDER, f"answer {number}")
    session = next(store.sessions()).id

    (latest,) = found(store, index, "todo list", turns=None)
    (earlier,) = found(store, index, "todo list", turns=(3, 5))
    (before,) = found(store, index, "todo list", until=1010.0)
    (since,) = found(store, index, "todo list", since=1050.0, sessions=frozenset({session}))

    assert latest.turn == 30
    assert earlier.turn == 5
    assert before.time < 1010.0
    assert since.turn == 30
    assert found(store, index, "todo list", turns=(31, 99)) == []
    assert len([entry for entry in _every(index) if "todo" in entry.text]) == 1


def test_each_session_and_each_agent_has_its_own(store, index):
    for number in range(6):
        talk = StoreTalk(
            store, agent="ab"[number % 2], key=f"s{number}", time=1000.0 * (number + 1)
        )
        talk.turn(REMINDER, f"answer {number}")
    sessions = [session.id for session in store.sessions()]

    assert [page.session for page in found(store, index, "todo list")] == [sessions[-1]]
    for session in sessions:
        assert [
            page.session for page in found(store, index, "todo list", sessions=frozenset({session}))
        ] == [session]
    third = StoreTalk(store, agent="c", key="s5", time=9000.0)
    third.turn("hello", "hi")
    third.turn(REMINDER, "and c")
    for agent in "abc":
        assert [
            page.agent for page in found(store, index, "todo list", agents=frozenset({agent}))
        ] == [agent]
    both = found(
        store, index, "todo list", sessions=frozenset({sessions[-1]}), agents=frozenset({"b"})
    )
    assert [(page.session, page.agent) for page in both] == [(sessions[-1], "b")]


def test_a_reminder_of_a_thousand_sessions_does_not_drown_what_else_was_said(store, index):
    for number in range(300):
        StoreTalk(store, key=f"s{number}", time=1000.0 + number).turn(REMINDER, "fine")
    StoreTalk(store, key="other", time=1.0).turn(
        "what else?", "Somebody keeps a list of birds with " + "many other words " * 20
    )

    bring(store, index)
    assert index.fold()

    pages = found(store, index, "todo list", most=5)

    assert len(pages) == 2
    assert "birds" in texts(store, pages)[1]


def test_only_occurrences_that_fit_count(store, index):
    talk = StoreTalk(store)
    talk.turn("first", "the zeppelin rises")
    line = set(talk.line)
    talk.turn("again", "the zeppelin rises")

    assert [page.turn for page in found(store, index, "zeppelin")] == [2]
    assert [
        page.turn for page in found(store, index, "zeppelin", fits=lambda page: page.chain in line)
    ] == [1]
    assert found(store, index, "zeppelin", fits=lambda _: False) == []


# --- following
# --------------------------------------------------------------------------------------------------


def _talks(store, many=40):
    for number in range(many):
        talk = StoreTalk(
            store, key=f"s{number % 7}", agent="ab"[number % 2], time=1000.0 + 10 * number
        )
        talk.turn(
            f"question {number} about word{number}",
            f"answer {number}\n\n" + f"more of topic{number % 5} " * 60,
        )


def _every(index):
    docs = []
    for whole in index.wholes(Sort.PAGE):
        docs += [
            hit.entry
            for hit in index.search(
                Query("question answer more todo", most=1000, deadline=30.0)
            ).hits
        ]
        return docs if whole else []
    return docs


def test_step_by_step_it_comes_to_the_same_as_at_once_and_twice_to_the_same_as_once(
    store, tmp_path
):
    _talks(store)
    last = store.pages_after(0, 10_000)[-1][0]
    with (
        LocalIndex(tmp_path / "one", sealing=VERSION, folds=False) as one,
        LocalIndex(tmp_path / "two", sealing=VERSION, folds=False) as two,
    ):
        assert bring(store, one) == len(list(store.pages(Where())))
        steps = 0
        while follow(store, two, until=0.0):
            steps += 1
        assert steps > 1
        assert followed(store, one) == followed(store, two) == last
        assert sorted(one.wholes(Sort.PAGE)) == sorted(two.wholes(Sort.PAGE))
        assert one.state().entries == two.state().entries
        before = one.state()
        one.add([], Watermark(WATERMARK, 0))
        assert bring(store, one) == len(list(store.pages(Where())))
        assert replace(one.state(), bytes=before.bytes) == before


def test_two_that_follow_at_once_make_the_same_index(store, tmp_path):
    _talks(store)
    with LocalIndex(tmp_path / "index", sealing=VERSION, folds=False) as alone:
        bring(store, alone)
        wanted = sorted(alone.wholes(Sort.PAGE)), alone.state().entries
    opened = [LocalIndex(tmp_path / "shared", sealing=VERSION, folds=False) for _ in range(3)]
    threads = [threading.Thread(target=bring, args=(store, each)) for each in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert followed(store, opened[0]) == store.pages_after(0, 10_000)[-1][0]
    assert (sorted(opened[0].wholes(Sort.PAGE)), opened[0].state().entries) == wanted
    for each in opened:
        each.close()


def test_a_store_in_anothers_place_is_followed_from_its_beginning(store, index):
    _talks(store, 20)
    bring(store, index)
    other = RamStore()
    talk = StoreTalk(other)
    talk.turn("hello", "the zeppelin rises")
    for number in range(30):
        talk.turn(f"and {number}?", f"so {number}")
    assert followed(store, index) == 40
    assert followed(other, index) == 0

    assert len(found(other, index, "zeppelin")) == 1
    assert found(other, index, "question") == []


def test_content_that_is_damaged_is_passed_by(store, index):
    talk = StoreTalk(store)
    talk.turn("hello", "the zeppelin rises")
    talk.turn("and?", "the airship lands")
    lost = next(
        page.digest
        for page in store.pages(Where())
        if page.turn == 1 and page.kind is Kind.RESPONSE
    )

    class Damaged:
        def __getattr__(self, name):
            return getattr(store, name)

        def content(self, address):
            if address == lost:
                raise PageDamaged("its bytes do not have that hash")
            return store.content(address)

    assert found(Damaged(), index, "zeppelin") == []
    assert len(found(Damaged(), index, "airship")) == 1
    assert followed(store, index) == store.pages_after(0, 100)[-1][0]


# --- secrets
# --------------------------------------------------------------------------------------------------


class Listening(HashingEmbedder):
    """Remembers what it was given."""

    def __init__(self):
        super().__init__(64)
        self.heard = []

    def embed(self, texts):
        self.heard += texts
        return super().embed(texts)


@pytest.mark.row("V17")
def test_a_secret_in_a_page_is_in_no_file_and_no_vector_of_the_index(store, tmp_path):
    secrets = [each for each in planted(1, 80) if not each.remains(seal(each.text).text)]
    assert len(secrets) > 75  # what sealing itself misses is its own business
    talk = StoreTalk(store)
    for number, each in enumerate(secrets):
        said_here = (
            text_message(Role.USER, each.text),
            calls("bash", f"c{number}", command=each.text),
            brings("bash", each.text, f"c{number}"),
        )
        talk.history = []
        talk.key = f"s{number}"
        talk.asks(said_here[number % 3])
    talk.asks(
        calls("fetch", "u1", url=f"https://user:{secrets[0].secret}@example.com/a"),
        brings("fetch", "page", "u1"),
    )
    listening = Listening()

    with LocalIndex(tmp_path / "index", listening, sealing=VERSION, folds=False) as index:
        bring(store, index)
        assert index.fold()
        bytes_of = b"".join(
            path.read_bytes() for path in (tmp_path / "index").rglob("*") if path.is_file()
        )
        texts_of = "\n".join(listening.heard)

    assert len(listening.heard) >= len(secrets)
    assert [each.kind for each in secrets if each.remains(bytes_of.decode("latin-1"))] == []
    assert [each.kind for each in secrets if each.remains(texts_of)] == []


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_secret_beyond_a_cut_is_sealed_all_the_same(seed):
    (secret,) = planted(seed, 1)
    text = "word " * (seed % 2000) + "\n" + secret.text + "\nword" * (seed % 700)
    if secret.remains(seal(text).text):
        return
    store = RamStore()
    page = store.page(StoreTalk(store).asks(brings("bash", text)).pages[0])

    assert not secret.remains("\n".join(each.text for each in page_stretches(page, text.encode())))
    assert not secret.remains(
        "\n".join(
            each.text
            for each in page_stretches(
                replace(page, kind=Kind.TOOL_CALL), json.dumps(text).encode()
            )
        )
    )


def test_a_turn_is_known_by_its_number(store, index):
    asked = StoreTalk(store).asks("the zeppelin")

    assert found(store, index, "zeppelin")[0].turn == turn_of(asked).number


# --- with a store on disk
# --------------------------------------------------------------------------------------------------


def test_a_row_that_is_damaged_is_passed_by(tmp_path, index):
    with SqliteStore.open(tmp_path, TUNING) as store:
        talk = StoreTalk(store)
        for number in range(3):
            talk.turn(f"question {number}", f"the zeppelin number {number}")
        every = store.pages_after(0, 100)
    with contextlib.closing(apsw.Connection(str(tmp_path / "store.db"))) as connection:
        connection.execute("UPDATE page SET turn = turn + 1 WHERE seq IN (1, 2, 3)")

    with SqliteStore.open(tmp_path, TUNING) as store:
        assert store.pages_after(0, 2) == every[3:5]
        assert [page.turn for page in found(store, index, "zeppelin")] == [3, 2]
        assert followed(store, index) == every[-1][0]


def test_processes_share_one_index_and_a_kill_loses_nothing(tmp_path):
    def start(name, many):
        words = [
            sys.executable,
            str(Path(__file__).with_name("history_process.py")),
            str(tmp_path),
            name,
            str(many),
        ]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    killed, whole = start("killed", 10_000), start("whole", 8)
    told = whole.communicate(timeout=120)[0]
    killed.kill()
    killed.communicate()

    assert told == "done\n"
    with (
        SqliteStore.open(tmp_path, TUNING) as store,
        LocalIndex(tmp_path / "index", EMBEDDER, sealing=VERSION, folds=False) as index,
    ):
        bring(store, index)
        assert sorted(index.wholes(Sort.PAGE)) == sorted(page.id for page in store.pages(Where()))
