"""What the views of tools, memory, code, learning and health read and do, over HTTP."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from hotset.config import SERVERS, TOOLS, load
from hotset.index import open_index
from hotset.learn.events import Change, ChangeDecision, GateVerdict, change_id
from hotset.nouns.deposit import Remembered
from hotset.nouns.embedding import OFF, Embedding
from hotset.nouns.memory import Trust
from hotset.nouns.turn import Event
from hotset.runtime.learned_state import learn_event
from hotset.sources import code
from hotset.sources.tools.found.servers import add_servers
from hotset.sources.tools.toolbox import Toolbox
from tests.proxy.wire import Answer, call, post, question
from tests.runtime import notes_server
from tests.sources.memory.consolidate.making import fact

JSON = {"content-type": "application/json"}
LIMIT = {"over": 9000, "room": 4500}
SKILL = """---
name: release
description: Cut a release; use it when a version is due.
---

Run `make tag`.
"""


class Page:
    """A browser's page of the dashboard, as far as the API is concerned."""

    def __init__(self, world) -> None:
        self.world, self.address = world, world.address
        made = call(self.address, "POST", f"/{self.address.token}/hotset/open", b"").json()
        opened = call(self.address, "GET", made["path"], b"")
        self.cookie = opened.header("set-cookie").partition(";")[0]

    def get(self, path: str) -> Answer:
        return call(self.address, "GET", f"/hotset/api/{path}", b"", {"cookie": self.cookie})

    def read(self, path: str):
        answer = self.get(path)
        assert answer.status == 200, answer.body
        return answer.json()

    def send(self, path: str, **body) -> Answer:
        origin = f"http://127.0.0.1:{self.address.port}"
        given = {**JSON, "cookie": self.cookie, "origin": origin}
        return call(self.address, "POST", f"/hotset/api/{path}", json.dumps(body).encode(), given)

    def order(self, path: str, **body):
        answer = self.send(path, **body)
        assert answer.status == 200, answer.body
        done = answer.json()
        assert done["says"]
        assert done["undo"]
        return done


@pytest.fixture
def page(pair):
    world = pair()
    post(world.address, "anthropic", question("anthropic", "hello"))
    world.settle()
    return Page(world)


def toolbox(tmp_path, store) -> Toolbox:
    """The tools of the same project, for another program than its proxy."""
    folder, project = tmp_path / "data", tmp_path / "project"
    config = load(project=str(project), data=str(folder), environ={"HOME": str(tmp_path)})
    return Toolbox(config, lambda: store)


@pytest.fixture
def notes(tmp_path, pair):
    """A page of a project with a server of tools, one of which was used, and with a skill."""
    folder, project = tmp_path / "data", tmp_path / "project"
    skill = project / ".agents" / "skills" / "release" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)
    entry = {
        "command": sys.executable,
        "args": ["-I", "-S", str(Path(notes_server.__file__)), str(tmp_path)],
    }
    add_servers(folder / TOOLS / SERVERS, {"notes": entry})
    world = pair(project=project)
    post(world.address, "anthropic", question("anthropic", "hello"))
    with world.store() as store, closing(toolbox(tmp_path, store)) as own:
        own.stock(60.0)
        own.use("notes__add_note", {"title": "a", "text": "b"}, session="s")
        own.use("notes__read_note", {"title": "a"}, session="s")
    return Page(world)


# Tools


@pytest.mark.row("X4")
def test_the_library_is_searched_sorted_and_cut_into_pages_on_the_server(notes):
    every = notes.read("tools/list?order=name")
    assert every["total"] == 5
    (found,) = notes.read("tools/list?text=read%20title")["rows"]
    assert found["name"] == "notes__read_note"
    second = notes.read("tools/list?order=name&offset=1&limit=2")
    assert [row["name"] for row in second["rows"]] == [row["name"] for row in every["rows"][1:3]]
    used = notes.read("tools/list?order=calls")["rows"][0]
    assert (used["calls"], used["failures"], used["tier"]) == (1, 0, "hot")
    assert [row["name"] for row in notes.read("tools/list?state=unapproved")["rows"]] == ["release"]


@pytest.mark.row("X4")
def test_a_skill_of_the_project_is_read_and_then_approved_as_it_was_shown(notes):
    waiting = notes.read("tools/approvals")
    assert waiting["total"] == notes.read("tools")["waiting"] == 1
    (asked,) = waiting["rows"]
    assert "make tag" in asked["text"]
    assert notes.send("tools/act", act="approve", name="release").status == 400  # unseen
    notes.order("tools/act", act="approve", name="release", seen=asked["seen"])
    assert notes.read("tools/approvals")["total"] == 0
    assert notes.read("tools/tool/release")["row"]["state"] == "ready"


@pytest.mark.row("X4")
def test_a_tool_that_its_server_describes_anew_is_shown_as_a_diff(notes, tmp_path):
    texts = json.loads(json.dumps(notes_server.TOOLS).replace("Read a note by", "Send a note to"))
    (tmp_path / "tools.json").write_text(json.dumps(texts))
    with notes.world.store() as store, closing(toolbox(tmp_path, store)) as own:
        own.use("notes__add_note", {"title": "c", "text": "d"}, session="t")
    asked = next(row for row in notes.read("tools/approvals")["rows"] if row["is_diff"])
    assert asked["name"] == "notes__read_note"
    assert "-  Read a note by its title." in asked["text"]
    assert "+  Send a note to its title." in asked["text"]
    notes.order("tools/act", act="approve", name=asked["name"], seen=asked["seen"])
    assert notes.read("tools/tool/notes__read_note")["description"].startswith("Send")


@pytest.mark.row("X4")
def test_a_tool_is_pinned_and_denied_and_both_are_taken_back(notes):
    notes.order("tools/act", act="pin", name="notes__read_note")
    assert notes.read("tools")["pinned"] == 1
    notes.order("tools/act", act="unpin", name="notes__read_note")
    assert notes.read("tools")["pinned"] == 0
    notes.order("tools/act", act="deny", name="notes__read_note")
    assert notes.read("tools/tool/notes__read_note")["row"]["state"] == "denied"
    notes.order("tools/act", act="allow", name="notes__read_note")
    found = notes.read("tools/tool/notes__read_note")
    assert found["row"]["state"] == "ready"
    assert "title" in found["parameters"]


@pytest.mark.row("X4")
def test_tools_that_were_used_one_after_the_other_are_drawn_together(notes):
    graph = notes.read("tools/graph")
    assert {"notes__add_note", "notes__read_note"} <= {node["name"] for node in graph["nodes"]}
    pairs = [{edge["one"], edge["other"]} for edge in graph["edges"] if "together" in edge["why"]]
    assert {"notes__add_note", "notes__read_note"} in pairs


# Memory


@pytest.fixture
def remembered(page):
    facts = [
        fact("Releases are cut on Tuesdays", created=time.time(), topics=("release",)),
        fact(
            "The staging database listens on port 5432",
            created=time.time() - 3 * 86400,
            trust=Trust.OUTCOME,
            topics=("database",),
        ),
    ]
    with page.world.store() as store:
        store.keep(Remembered(tuple(facts))).result()
    return page, [each.id for each in facts]


@pytest.mark.row("X4")
def test_memories_are_listed_by_topic_by_day_and_found_by_words(remembered):
    page, (release, staging) = remembered
    view = page.read("memory")
    assert view["memories"] == 2
    assert {topic["name"] for topic in view["topics"]} == {"release", "database"}
    assert [row["id"] for row in page.read("memory/list")["rows"]] == [release, staging]
    first = page.read("memory/list?limit=1")
    assert ([row["id"] for row in first["rows"]], first["has_more"]) == ([release], True)
    assert [row["id"] for row in page.read("memory/list?topic=database")["rows"]] == [staging]
    assert page.read("memory/list?text=staging%20port")["rows"][0]["id"] == staging
    days = page.read("memory/timeline?days=7")["days"]
    assert len(days) == 2
    assert days[0]["day"] > days[1]["day"]
    (today,) = page.read("memory/timeline?days=1")["days"]
    assert [row["id"] for row in (*today["decided"], *today["noted"])] == [release]


@pytest.mark.row("X4")
def test_looking_at_memories_is_not_counted_as_use(remembered):
    page, (_, staging) = remembered
    page.read("memory/list?text=staging%20port")
    found = page.read(f"memory/memory/{staging}")
    assert (found["shown"], found["read"]) == (0, 0)
    with page.world.store() as store:
        assert not [each for each in store.events() if each.name == "MemoryLoaded"]


@pytest.mark.row("X4")
def test_a_memory_is_corrected_and_the_review_is_undone(remembered):
    page, (_, staging) = remembered
    queue = page.read("memory/review")
    before = queue["total"]
    assert staging in [row["id"] for row in queue["rows"]]
    page.order("memory/act", act="correct", id=staging, text="It listens on port 5433")
    found = page.read(f"memory/memory/{staging}")
    assert found["row"]["text"] == "It listens on port 5433"
    assert [each["version"] for each in found["versions"]] == [2, 1]
    assert page.read("memory/review")["total"] == before - 1
    run = page.read("memory")["runs"][0]["name"]
    page.order("memory/act", act="undo", id=run)
    assert "5432" in page.read(f"memory/memory/{staging}")["row"]["text"]


@pytest.mark.row("X4")
def test_a_memory_is_forgotten_and_restored(remembered):
    page, (release, _) = remembered
    page.order("memory/act", act="forget", id=release)
    gone = page.read("memory/list?standing=forgotten")["rows"]
    assert [row["id"] for row in gone] == [release]
    assert release not in [row["id"] for row in page.read("memory/list")["rows"]]
    page.order("memory/act", act="restore", id=release)
    assert release in [row["id"] for row in page.read("memory/list")["rows"]]


@pytest.mark.row("X4")
def test_of_two_memories_that_contradict_each_other_a_person_says_which_holds(page):
    with page.world.store() as store:
        for day in ("Tuesdays", "Wednesdays"):
            made = fact(f"Releases are cut on {day}", session=day, trust=Trust.AGENT)
            store.keep(Remembered((made,))).result()
    first, second = (row["id"] for row in page.read("memory/list")["rows"])
    page.order("memory/act", act="holds", id=first, other=second)
    found = page.read(f"memory/memory/{first}")
    assert [(link["id"], link["relation"]) for link in found["links"]] == [(second, "supersedes")]
    assert {node["name"] for node in found["graph"]["nodes"]} == {first, second}
    assert page.read("memory/graph")["total"] == 2
    assert page.read(f"memory/memory/{second}")["row"]["standing"] == "superseded"
    assert page.read("memory/economics")["rows"] == []


# Code


@pytest.mark.row("X4")
def test_files_are_searched_after_consent_and_nothing_is_left_when_it_is_withdrawn(tmp_path, pair):
    project = tmp_path / "project"
    project.mkdir()
    page = Page(pair(project=project))
    assert page.read("code")["answer"] == "unanswered"
    assert page.read("code/search?text=retries")["is_indexed"] is False
    page.order("code/act", act="allow")
    folder = page.world.folder
    (project / "retry.py").write_text("def count_retries(tries):\n    return len(tries)\n")
    for path in (project / "retry.py", project):  # younger ones are looked at again
        os.utime(path, (1e9, 1e9))
    for _ in range(50):  # until what was written a moment ago is old enough to be trusted
        with (
            closing(open_index(folder, Embedding(OFF))) as index,
            code.Manifest(folder, code.manifest_identity()) as manifest,
        ):
            code.index_project(project, index, manifest)
        if (view := page.read("code"))["fresh"]:
            break
    assert (view["answer"], view["code"]["symbols"], view["fresh"]) == ("granted", 1, True)
    (hit,) = page.read("code/search?text=count_retries&path=*.py")["rows"]
    assert (hit["path"], hit["first"]) == ("retry.py", 1)
    assert any(line["marks"] for line in hit["lines"])
    page.order("code/act", act="withdraw")
    assert page.read("code")["answer"] == "unanswered"
    assert page.read("code/search?text=count_retries") == {
        "rows": [],
        "is_indexed": False,
        "note": "",
    }
    assert not (folder / "code.db").exists()


# Learning


@pytest.mark.row("X4")
def test_what_was_learned_is_shown_with_its_reason_and_taken_back(page):
    knobs = {"tools.Bash": LIMIT}
    id = change_id(knobs, "limits")
    why = "14 of 31 were asked back"
    with page.world.store() as store:
        for name, payload in (
            ("ChangeProposed", Change(id, knobs, {}, "limits", why)),
            ("ChangeGated", GateVerdict(id, True, 0.05, 0.01, 0.09, 12, why="passed: +5 %")),
            ("ChangeAdopted", ChangeDecision(id, "it saves 5 %")),
        ):
            store.keep(learn_event(name, payload, time.time())).result()
    (change,) = page.read("learning")["status"]["changes"]
    assert (change["stage"], change["why"], change["evidence"]) == ("adopted", why, "it saves 5 %")
    assert page.read("learning/knob/tools.Bash")["source"] == "learned"
    said = page.read("events?type=learning")["rows"][0]["says"]
    assert said == f"{id} is in force: it saves 5 %"
    page.order("learning/act", act="reset", knobs=["tools.Bash"])
    assert page.read("learning/knob/tools.Bash")["source"] == "default"


@pytest.mark.row("X4")
def test_knobs_are_frozen_learning_is_switched_and_a_trial_is_begun_and_ended(page):
    page.order("learning/act", act="freeze", knobs=["keep"])
    assert page.read("learning/knob/keep")["source"] == "frozen"
    page.order("learning/act", act="unfreeze", knobs=["keep"])
    assert page.read("learning/knob/keep")["source"] != "frozen"
    page.order("learning/act", act="off")
    assert page.read("learning")["status"]["is_on"] is False
    page.order("learning/act", act="on")
    page.order("learning/act", act="trial", shares={"off": 0.1})
    arms = {arm["name"]: arm["share"] for arm in page.read("learning")["status"]["arms"]}
    assert arms == {"default": 0.9, "off": 0.1}
    page.order("learning/act", act="trial", shares={"off": 0})
    arms = {arm["name"]: arm["share"] for arm in page.read("learning")["status"]["arms"]}
    assert not arms.get("off")
    assert page.read("learning/evolution") == {
        "time": 0.0,
        "parts": [],
        "earlier": [],
    }


# Health


@pytest.mark.row("X4")
def test_health_says_what_the_proxy_does_and_what_is_wrong_comes_first(page):
    proxy = page.read("health")["proxy"]
    assert (proxy["requests"], proxy["store"]) == (1, "ok")
    assert proxy["breakers"]
    assert proxy["scopes"]
    levels = {each["about"]: each["level"] for each in page.read("health/checks")}
    assert levels["store"] == levels["folder"] == levels["bypassed"] == "ok"
    with page.world.store() as store:
        store.keep(Event("Bypassed", time.time(), detail={"reason": "store is full"})).result()
    first = page.read("health/checks")[0]
    assert (first["about"], first["level"]) == ("bypassed", "warn")
    assert "store is full" in first["says"]


@pytest.mark.row("X4")
def test_events_are_filtered_on_the_server_and_come_page_by_page(page):
    with page.world.store() as store:
        session = next(iter(store.sessions())).id
        for number in range(7):
            event = Event("Bypassed", 1000.0 + number, session, 1, {"reason": f"reason {number}"})
            store.keep(event).result()
        store.keep(
            Event("Alert", 2000.0, detail={"name": "x", "value": 1, "threshold": 0})
        ).result()
    found = page.read("events?type=bypass&limit=3")
    assert [row["says"] for row in found["rows"]] == ["reason 6", "reason 5", "reason 4"]
    rest = page.read(f"events?type=bypass&limit=9&before={found['following']}")
    assert [row["time"] for row in rest["rows"]] == [1003.0, 1002.0, 1001.0, 1000.0]
    assert rest["following"] is None
    assert [row["says"] for row in page.read("events?text=REASON%202")["rows"]] == ["reason 2"]
    between = page.read("events?since=1001&until=1003&session=last")["rows"]
    assert [row["time"] for row in between] == [1002.0, 1001.0]
    assert [row["type"] for row in page.read("events?type=alert,checkpoint")["rows"]] == ["alert"]


@pytest.mark.row("X4")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("tools/tool/nope", 404),
        ("tools/list?limit=5000", 400),
        ("tools/list?order=beauty", 400),
        ("memory/memory/nope", 404),
        ("memory/list?kind=dream", 400),
        ("learning/knob/nope", 404),
        ("learning/curves/knobs?limit=5000", 400),
        ("learning/curves/beliefs?days=-1", 400),
        ("learning/curves/shares?days=soon", 400),
        ("events?session=nope", 404),
        ("events?since=yesterday", 400),
        ("events?before=-1", 400),
    ],
)
def test_a_question_that_no_view_answers_gets_a_sentence(page, path, status):
    answer = page.get(path)
    assert answer.status == status
    assert answer.json()["error"]


@pytest.mark.row("X4")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("tools/act", {"act": "pin", "name": "nope"}),
        ("tools/act", {"act": "explode", "name": "x"}),
        ("memory/act", {"act": "forget", "id": "nope"}),
        ("memory/act", {"act": "holds", "id": "nope"}),
        ("code/act", {"act": "all"}),
        ("learning/act", {"act": "freeze", "knobs": ["nope"]}),
        ("learning/act", {"act": "trial", "shares": {"off": 0.95}}),
        ("learning/act", {"act": "adopt"}),
        ("learning/act", {"act": "adopt", "changes": ["c-00000000"]}),
        ("learning/act", {"act": "revert", "changes": ["c-00000000"]}),
        ("learning/act", {"act": "unreset", "changes": ["c-00000000"]}),
        ("learning/act", {"act": "trial", "shares": {"nope": 0.1}}),
    ],
)
def test_an_order_that_cannot_be_followed_changes_nothing(page, path, body):
    answer = page.send(path, **body)
    assert answer.status in (400, 404)
    assert answer.json()["error"]
    with page.world.store() as store:
        assert not list(store.memories())
        assert not [each for each in store.events() if each.name in ("TrialChanged", "KnobsFrozen")]
