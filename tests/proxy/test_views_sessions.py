"""What the dashboard says of savings, findings, sessions and one session, over HTTP."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from urllib.parse import urlencode

import pytest

from hotset.config import load
from hotset.nouns.knobs import Knobs, Limit
from hotset.runtime.maintenance import import_lines
from hotset.runtime.views.findings import read_findings
from hotset.runtime.views.session import list_turns, read_session
from hotset.runtime.views.sessions import list_sessions
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say
from hotset.testing.many_sessions import LONG, many_sessions
from hotset.testing.upstream.script import Received
from tests.proxy.talking import Talk, code, read
from tests.proxy.wire import Answer, call

JSON = {"content-type": "application/json"}
LEAVING = Knobs(limit=Limit(3000, 2000), limits={}, most=4, keep=2)
"""Results are shortened, and with the fifth step all but two leave."""

KEY = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 8 + "-wQ2eR4AA"


class Viewer:
    """A browser with the dashboard open."""

    def __init__(self, world) -> None:
        self._address = world.address
        made = call(world.address, "POST", f"/{world.address.token}/hotset/open", b"").json()
        opened = call(world.address, "GET", made["path"], b"")
        self._cookie = opened.header("set-cookie").partition(";")[0]
        self._base = opened.header("location")

    def get(self, path: str, **asked: Any) -> Answer:
        words = f"?{urlencode(asked)}" if asked else ""
        cookie = {"cookie": self._cookie}
        return call(self._address, "GET", f"{self._base}api/{path}{words}", b"", cookie)

    def read(self, path: str, **asked: Any) -> Any:
        answer = self.get(path, **asked)
        assert answer.status == 200, answer.body
        return answer.json()

    def act(self, **order: Any) -> Answer:
        origin = f"http://127.0.0.1:{self._address.port}"
        headers = {**JSON, "cookie": self._cookie, "origin": origin}
        return call(
            self._address, "POST", f"{self._base}api/act", json.dumps(order).encode(), headers
        )


def _reading(request: Received) -> Say:
    return Say(f"Reading on ({request.index}).", calls=(read("src/app.py"),))


def _work(world, steps: int, prompt: str = "Read it.", **headers: str) -> Talk:
    """A session that reads one file, changed each time, again and again."""
    talk = Talk(world.address, "anthropic", headers=headers)
    talk.say(prompt)
    for number in range(steps):
        talk.results(code(f"state{number}", functions=60))
    world.settle()
    return talk


@pytest.fixture
def world(pair):
    return pair(_reading, knobs=LEAVING)


@pytest.mark.row("X4")
def test_sessions_are_listed_as_families_and_found_by_words_and_agent(world):
    _work(world, 0, "Plan the parser", **{"x-hotset-session": "above", "x-hotset-agent": "lead"})
    _work(world, 0, "Something else", **{"x-hotset-session": "other", "x-hotset-agent": "lead"})
    below = {"x-hotset-session": "below", "x-hotset-parent": "above", "x-hotset-agent": "helper"}
    _work(world, 1, "Write its tests", **below)
    viewer = Viewer(world)

    listed = viewer.read("sessions")
    rows = [(row["title"], row["depth"], row["kinship"]) for row in listed["rows"]]
    assert rows == [
        ("Plan the parser", 0, ""),
        ("Write its tests", 1, "subagent"),
        ("Something else", 0, ""),
    ]
    assert (listed["total"], listed["is_tree"], listed["agents"]) == (2, True, ["lead", "helper"])
    assert [row["turns"] for row in listed["rows"]] == [1, 2, 1]

    second = viewer.read("sessions", offset=1, limit=1)
    assert [row["title"] for row in second["rows"]] == ["Something else"]
    found = viewer.read("sessions", words="TESTS write")
    assert [row["title"] for row in found["rows"]] == ["Write its tests"]
    of_agent = viewer.read("sessions", agent="lead")
    assert {row["agent"] for row in of_agent["rows"]} == {"lead"}
    assert (of_agent["total"], of_agent["is_tree"]) == (2, False)

    ids = ",".join(row["id"] for row in listed["rows"])
    costs = viewer.read("costs", sessions=ids)
    assert [each["session"] for each in costs] == ids.split(",")
    assert all(each["spent"] > 0 and each["is_measured"] for each in costs)


@pytest.mark.row("X4")
def test_a_session_says_what_each_turn_added_and_what_the_model_saw_of_it(world):
    _work(world, 7)
    viewer = Viewer(world)

    session = viewer.read("sessions/last")
    assert (session["turns"], session["latest"]) == (8, 8)
    assert [row["id"] for row in session["family"]] == [session["id"]]

    part = viewer.read(f"sessions/{session['id']}/history", offset=1, limit=3)
    assert ([row["number"] for row in part["rows"]], part["total"]) == ([7, 6, 5], 8)
    grew = part["rows"][0]["grew"]
    assert grew[0]["what"] == "read_file result"
    assert grew[0]["tokens"] > 10 * grew[1]["tokens"]
    assert part["rows"][0]["said"].startswith("Reading on")

    born = viewer.read(f"sessions/{session['id']}/turns/2/difference")
    [change] = born["changes"]
    assert change["form"] == "an excerpt"
    assert change["is_fresh"]
    assert change["tokens"] < change["whole"]
    client = "".join(each["text"] for each in change["pieces"] if each["op"] != "added")
    assert client == code("state0", functions=60)
    model = "".join(each["text"] for each in change["pieces"] if each["op"] != "cut")
    assert model.encode() in world.upstream.requests[1].body.decode().encode().replace(
        b"\\n", b"\n"
    ).replace(b'\\"', b'"')
    assert {each["op"] for each in change["pieces"]} == {"same", "cut", "added"}


@pytest.mark.row("X4")
def test_what_left_the_window_opens_by_the_line_that_stands_for_it(world):
    _work(world, 7)
    viewer = Viewer(world)

    [first, *_] = viewer.read("sessions/last/references")["rows"]
    opened = viewer.read(f"references/{first['id']}")
    assert opened["total"] == first["pages"] > 0
    result = next(row for row in opened["rows"] if row["kind"] == "file")
    assert "state0_0" in viewer.read(f"pages/{result['id']}")["text"]

    rows = viewer.read("sessions/last/history")["rows"]
    assert any("tokens left as" in line for row in rows for line in row["happened"])
    broke = [row["broke"] for row in rows if row["broke"]]
    assert broke == ["old steps left, because there were too many"] * len(broke) != []
    latest = viewer.read("sessions/last/turns/8/difference")
    gone = next(each for each in latest["changes"] if each["reference"])
    assert gone["cause"] == "because too many steps were in the window"
    assert [each["op"] for each in gone["pieces"]] == ["cut", "added"]


@pytest.mark.row("X4")
def test_what_the_model_asked_back_is_told_with_the_rounds_that_the_client_never_saw(pair):
    back = Say(calls=(Call("retrieve_context", {"id": "toolu_one"}),))
    first = Say("Let me look.", calls=(read("a.py", id="one"),))
    world = pair([first, back, Say("I see.")])
    talk = Talk(world.address, "anthropic")
    talk.say("Read it.")
    talk.results(code())
    world.settle()

    [latest, *_] = Viewer(world).read("sessions/last/history")["rows"]
    assert (latest["rounds"], latest["faults"]) == (1, 1)
    assert any("retrieve_context" in line for line in latest["happened"])
    difference = Viewer(world).read("sessions/last/turns/2/difference")
    assert len(difference["retrievals"]) == 1


@pytest.mark.row("X4")
def test_search_looks_inside_one_session_alone(world):
    _work(world, 1, "Where is the flux capacitor?", **{"x-hotset-session": "one"})
    _work(world, 1, "Polish the flux capacitor.", **{"x-hotset-session": "two"})
    viewer = Viewer(world)
    one, two = (viewer.read(f"sessions/{name}")["id"] for name in ("one", "two"))

    for session, words in ((one, "Where is"), (two, "Polish")):
        found = viewer.read(f"sessions/{session}/search", words="flux capacitor")["rows"]
        lines = [line["text"] for row in found for line in row["lines"]]
        assert any(words in line for line in lines), lines
    marked = found[0]["lines"][0]
    start, end = marked["marks"][0]
    assert marked["text"][start:end].lower() in ("flux", "capacitor")
    assert viewer.read(f"sessions/{one}/search", words="  ")["rows"] == []


@pytest.mark.row("X4")
def test_a_session_downloads_without_its_secrets_and_is_taken_in_elsewhere(world, tmp_path):
    _work(world, 2, f"Use the key {KEY} for it.")
    viewer = Viewer(world)
    session = viewer.read("sessions/last")["id"]

    answer = viewer.get(f"sessions/{session}/export")
    assert answer.status == 200
    assert f"{session}.jsonl" in answer.header("content-disposition")
    assert KEY.encode() not in answer.body
    folder = tmp_path / "elsewhere"
    assert import_lines(folder, iter(answer.body.splitlines(True)), lambda rows: rows, gaps=False)
    with SqliteStore.open(folder) as store:
        assert len(list(store.turns(session))) == 3


@pytest.mark.row("X4")
def test_savings_add_up_in_every_grouping_and_say_what_is_measured(world):
    _work(world, 7, **{"x-hotset-session": "one", "x-hotset-agent": "coder"})
    _work(world, 2, **{"x-hotset-session": "two", "x-hotset-agent": "tester"})
    viewer = Viewer(world)

    total = viewer.read("savings")["all"]
    assert (total["turns"], total["unmeasured"]) == (11, 0)
    assert total["saved"] == pytest.approx(total["everything"] - total["spent"])
    ids = ",".join(row["id"] for row in viewer.read("sessions")["rows"])
    costs = viewer.read("costs", sessions=ids)
    for name in ("spent", "everything", "saved"):
        assert total[name] == pytest.approx(sum(each[name] for each in costs))
    for by, names in (
        ("day", 1),
        ("session", 2),
        ("client", {"coder", "tester"}),
        ("model", {"claude-sonnet-5"}),
        ("project", 1),
    ):
        view = viewer.read("savings", by=by)
        found = {row["name"] for row in view["rows"]}
        assert (found if isinstance(names, set) else len(found)) == names
        assert sum(row["spent"] for row in view["rows"]) == pytest.approx(total["spent"])
        assert sum(row["everything"] for row in view["rows"]) == pytest.approx(total["everything"])
    view = viewer.read("savings", days=0)
    assert [each["cause"] for each in view["breaks"]] == ["grown"]
    assert view["breaks"][0]["turns"] == total["breaks"] > 0
    assert view["control"] is None
    assert view["big_window"]["dollars"] == pytest.approx(total["everything"])


@pytest.mark.row("X4")
def test_a_file_that_is_read_again_and_again_is_a_finding_with_an_order_beside_it(world):
    talk = _work(world, 6)
    viewer = Viewer(world)

    found = viewer.read("findings")
    assert (found["sessions"], found["turns"]) == (1, 7)
    paid = [each["dollars"] or 0.0 for each in found["rows"]]
    assert paid == sorted(paid, reverse=True)
    again = next(each for each in found["rows"] if each["kind"] == "read_again")
    assert again["sentence"].startswith("src/app.py was read 6 times")
    assert "each time changed" in again["sentence"]
    assert (again["is_measured"], again["dollars"] > 0) == (False, True)
    filling = next(each for each in found["rows"] if each["kind"] == "fills")
    assert filling["action"]["text"].startswith('[knobs.tools]\n"read_file" = {over')

    done = viewer.act(act=again["action"]["act"], about=again["action"]["about"])
    assert done.status == 200, done.body
    assert [(each["act"], each["about"]) for each in done.json()["orders"]] == [
        ("pin", again["page"])
    ]
    assert talk.text


@pytest.mark.row("X4")
def test_a_setting_that_a_finding_names_can_be_set(world, tmp_path):
    _work(world, 6)
    rows = Viewer(world).read("findings")["rows"]
    settings = [each["action"]["text"] for each in rows if each["action"]["kind"] == "settings"]
    assert settings
    for number, text in enumerate(settings):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        environ = {"HOME": str(tmp_path), "HOTSET_CONFIG": str(file)}
        load(project=str(tmp_path), environ=environ)


@pytest.mark.row("X4")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("sessions?limit=0", 400),
        ("sessions?colour=red", 400),
        ("sessions/nope", 404),
        ("sessions/nope/history", 404),
        ("sessions/nope/export", 404),
        ("sessions/last/turns/99/difference", 404),
        ("sessions/last/search", 400),
        ("references/r00000000000", 404),
        ("savings?by=colour", 400),
        ("costs", 400),
    ],
)
def test_a_question_about_sessions_that_cannot_be_answered_gets_a_sentence(world, path, status):
    _work(world, 0)
    answer = Viewer(world).get(path)
    assert answer.status == status
    assert answer.json()["error"]


@pytest.mark.row("X4")
def test_the_description_names_the_download_and_every_other_route(world):
    paths = Viewer(world).read("openapi.json")["paths"]
    assert {"/findings", "/savings", "/sessions", "/sessions/{session}/history"} <= paths.keys()
    export = paths["/sessions/{session}/export"]["get"]["responses"]["200"]["content"]
    assert list(export) == ["application/x-ndjson"]


class CountingStore:
    """A store that counts the rows which are read of it."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.rows: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._store, name)

        def counted(*given: Any, **named: Any) -> Any:
            found = asked(*given, **named)
            if hasattr(found, "__next__"):
                return self._passing(name, found)
            self.rows[name] += len(found) if isinstance(found, list | tuple) else 1
            return found

        return counted

    def _passing(self, name: str, rows: Any) -> Any:
        for row in rows:
            self.rows[name] += 1
            yield row


_UNREAD = ("recent_ids",)
"""Ids alone: no row is decoded for them."""


@pytest.mark.row("X4")
@pytest.mark.parametrize(
    ("sessions", "long"),
    [(200, 300), pytest.param(10_000, 5_000, marks=pytest.mark.slow)],
    ids=["hundreds", "thousands"],
)
def test_a_page_of_a_list_reads_as_many_rows_however_long_the_list_is(tmp_path, sessions, long):
    config = load(
        data=str(tmp_path / "data"), project=str(tmp_path), environ={"HOME": str(tmp_path)}
    )
    with SqliteStore.open(tmp_path / "data") as store:
        store.load(many_sessions(sessions, 1, long))

        def rows_of(read: Any) -> int:
            counting = CountingStore(store)
            read(counting)
            return sum(count for name, count in counting.rows.items() if name not in _UNREAD)

        links = sessions // 20
        assert rows_of(lambda it: list_sessions(it, offset=100, limit=30)) < 300 + links
        assert rows_of(lambda it: list_sessions(it, words="task 19", limit=30)) < 200 + links
        assert rows_of(lambda it: list_turns(it, config, LONG, offset=200, limit=50)) < 700
        assert rows_of(lambda it: read_session(it, store.session(LONG))) < 50 + links
        assert rows_of(lambda it: read_findings(it, config, 0.0)) < 6_000 + long
        listed = list_sessions(store, limit=30)
        assert (listed.rows[0].id, listed.rows[0].turns) == (LONG, long)
        assert listed.total == sessions - links + 1
