"""Tools are found by what is asked, and better by what served before."""

import json
import threading

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from stores import store_of

from hotset.errors import StoreFailed
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.note import Space
from hotset.nouns.tool import UNLIKELY, OriginKind, Tool
from hotset.sources.tools.tool_search import FOLDER, PastUse, PastUses, ToolSearch

_TABLE = WordVectors()
_LIBRARY = {
    "git": {
        "create_pull_request": "Propose a change of a repository for review.",
        "listCommits": "The history of a branch, newest first.",
        "blame": "Who wrote each line of a file.",
    },
    "mail": {
        "send": "Write a letter to somebody and send it off.",
        "search": "Look through the letters that came.",
    },
    "weather": {
        "forecast": "Temperature and rain of the coming days at a place.",
        "current": "How warm it is now at a place.",
    },
    "bank": {
        "convert": "What an amount of money is worth in another currency.",
        "balance": "How much money an account holds.",
    },
}


def _tool(source, own_name, description, **arguments):
    schema = {
        "type": "object",
        "properties": {name: {"description": told} for name, told in arguments.items()},
    }
    return Tool(
        f"{source}__{own_name}",
        source,
        OriginKind.SERVER,
        own_name,
        description,
        json.dumps(schema).encode(),
    )


_TOOLS = [
    _tool(source, name, told) for source, tools in _LIBRARY.items() for name, told in tools.items()
]


@pytest.fixture
def index(tmp_path):
    with LocalIndex(tmp_path / FOLDER, _TABLE, folds=False) as opened:
        yield opened


@pytest.fixture
def finding(index, tmp_path):
    opened = ToolSearch(index, _TABLE, PastUses(store_of(tmp_path), _TABLE))
    opened.sync(_TOOLS)
    return opened


def _names(matches):
    return [match.name for match in matches]


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize(
    ("asked", "right"),
    [
        (
            "Can you please help me find out whether it will rain tomorrow in Lisbon?",
            "weather__forecast",
        ),
        ("I would like to know what 100 dollars are worth in euros", "bank__convert"),
        ("open a PR: propose my change for review", "git__create_pull_request"),
        ("list commits", "git__listCommits"),
        ("git__blame", "git__blame"),
    ],
)
def test_the_right_tool_comes_first_folded_or_not(finding, index, asked, right, folded):
    if folded:
        assert index.fold()
    assert finding.find(asked)[0].name == right


def test_scores_fall_and_say_what_speaks_for_a_tool(finding):
    matches = finding.find("how much money is on my account", most=20)
    scores = [match.score for match in matches]
    assert scores == sorted(scores, reverse=True)
    assert 1.0 >= scores[0] > 0.5
    assert scores[-1] >= 0.0
    assert matches[0].name == "bank__balance"
    assert matches[0].by == {"words", "meaning"}


@pytest.mark.parametrize("tools", [_TOOLS[:1], _TOOLS[:3], _TOOLS])
@pytest.mark.parametrize("asked", ["resize these photographs", "play a song of Schubert"])
def test_what_nothing_is_about_is_unlikely_in_a_library_of_any_size(finding, tools, asked):
    finding.sync(tools)
    assert finding.find(asked)[0].score < UNLIKELY


def test_several_tools_that_do_the_same_do_not_make_each_other_unlikely(finding):
    copies = [
        _tool(f"weather{at}", "forecast", "Temperature and rain of the coming days at a place.")
        for at in range(6)
    ]
    finding.sync([*_TOOLS, *copies])
    matches = finding.find("forecast of the rain of the coming days in Lisbon", most=6)
    assert {match.name.partition("__")[2] for match in matches} == {"forecast"}
    assert all(match.score > UNLIKELY for match in matches)


def test_a_question_that_names_the_only_tool_is_likely(finding):
    finding.sync(_TOOLS[:1])
    assert finding.find("create a pull request: propose my change for review")[0].score > 0.5


def test_what_served_for_the_same_question_is_likely(finding):
    asked = "tell Bert that dinner is at eight"
    before = finding.find(asked)[0].score
    finding.used(asked, "git__blame", 1.0)
    assert finding.find(asked)[0].score > max(before, 0.5)


def test_quotes_in_a_question_are_no_condition(finding):
    assert finding.find('send "Grandma" a letter')[0].name == "mail__send"


@pytest.mark.parametrize("nothing", ["", "  ", '"'])
def test_nothing_is_found_for_nothing(finding, nothing):
    assert finding.find(nothing) == ()
    assert finding.find("a letter", most=0) == ()


def test_only_the_sources_that_are_named_are_looked_through(finding):
    finding.used("send a letter", "mail__send", 1.0)
    found = _names(finding.find("send a letter", most=20, only=["git", "bank"]))
    assert found
    assert {name.partition("__")[0] for name in found} <= {"git", "bank"}
    assert finding.find("send a letter", only=["nobody"]) == ()


def test_a_sync_tells_what_came_changed_and_left_and_is_nothing_where_nothing_did(finding):
    assert finding.sync(_TOOLS) == 0
    changed = _tool("mail", "send", "Order a parcel to be brought to somebody's door.")
    others = [tool for tool in _TOOLS if tool.name not in {"mail__send", "git__blame"}]
    assert (
        finding.sync(
            [*others, changed, _tool("map", "route", "The way from one place to another.")]
        )
        == 3
    )
    assert finding.find("order a parcel for my neighbour's door")[0].name == "mail__send"
    assert finding.find("the way from here to the station")[0].name == "map__route"
    assert "git__blame" not in _names(finding.find("who wrote this line", most=20))
    assert _names(finding.find("send", most=20)).count("mail__send") == 1


def test_arguments_find_a_tool(finding):
    finding.sync([*_TOOLS, _tool("misc", "run", "Does it.", isbn="the number of a book")])
    assert finding.find("look up a book by its ISBN")[0].name == "misc__run"


def test_what_was_used_for_the_like_comes_first_from_then_on(finding):
    asked = "tell Bert that dinner is at eight"
    assert finding.find(asked)[0].name != "git__blame"
    finding.used("tell Bert that dinner is at nine", "git__blame", 1.0)
    first = finding.find(asked)[0]
    assert first.name == "git__blame"
    assert "use" in first.by


def test_a_use_says_nothing_about_other_questions(finding):
    before = _names(finding.find("how warm is it now"))
    finding.used("tell Bert that dinner is at nine", "git__blame", 1.0)
    assert _names(finding.find("how warm is it now")) == before


def test_a_tool_that_left_is_not_found_by_its_past(finding):
    finding.used("who wrote this line", "git__blame", 1.0)
    finding.sync([tool for tool in _TOOLS if tool.name != "git__blame"])
    assert "git__blame" not in _names(finding.find("who wrote this line", most=20))


def test_uses_outlive_the_index_and_the_process(finding, tmp_path):
    finding.used("tell Bert that dinner is at nine", "git__blame", 1.0)
    finding.close()
    with LocalIndex(tmp_path / "another", _TABLE, folds=False) as anew:
        again = ToolSearch(anew, _TABLE, PastUses(store_of(tmp_path), _TABLE))
        again.sync(_TOOLS)
        assert again.find("tell Bert that dinner is at ten")[0].name == "git__blame"


def test_finding_goes_on_where_the_past_cannot_be_read(index):
    def closed():
        raise StoreFailed("the store is not open")

    finding = ToolSearch(index, _TABLE, PastUses(closed, _TABLE))
    finding.sync(_TOOLS)
    assert finding.find("how warm is it now")[0].name == "weather__current"
    assert "the store is not open" in finding.troubles()
    finding.used("how warm is it now", "weather__current", 1.0)
    assert finding.find("how warm is it now")[0].name == "weather__current"


# The past, as it is kept


def test_a_use_is_sealed(tmp_path):
    key = "ghp_" + "x7Rk2mQ9vLs4TzWb8NcYd1HfJg5PaE3uKo6M"
    uses = PastUses(store_of(tmp_path), _TABLE)
    uses.add(f"log in with {key}", "a__b", 1.0)
    assert key not in uses.every()[0].query
    uses.close()
    (note,) = store_of(tmp_path)().notes(Space("tool_uses")).values()
    assert b"log in with" in note.value
    assert key.encode() not in note.value


@given(cut=st.integers(1, 60))
@settings(deadline=None, max_examples=20)
def test_the_file_of_an_earlier_version_is_taken_over_once_without_a_line_that_was_cut_off(
    tmp_path_factory, cut
):
    folder = tmp_path_factory.mktemp("uses")
    old = folder / "uses.jsonl"
    lines = [
        msgspec.json.encode(PastUse(f"question {number}", "a__b", float(number)))
        for number in range(3)
    ]
    whole = b"\n".join(lines) + b"\n"
    old.write_bytes(whole[: len(whole) - cut])
    uses = PastUses(store_of(folder), _TABLE, old_file=old)
    uses.add("one more", "c__d", 9.0)
    uses.close()
    left = whole[: len(whole) - cut].split(b"\n")
    sound = [line for line in left if line in lines]
    assert [use.query for use in uses.every()] == [
        *(f"question {number}" for number in range(len(sound))),
        "one more",
    ]
    assert not old.exists()
    assert PastUses(store_of(folder), _TABLE, old_file=old).every() == uses.every()


def test_the_oldest_leave_and_whoever_reads_beside_sees_it(tmp_path):
    writer, reader = (PastUses(store_of(tmp_path), _TABLE, most=8) for _ in range(2))
    for number in range(40):
        writer.add(f"question {number}", f"a__t{number}", float(number))
        writer.flush()
        assert reader.every()[-1].tool == f"a__t{number}"
        assert reader.votes(f"question {number}")
    assert [use.at for use in reader.every()] == [float(number) for number in range(32, 40)]
    assert reader.every() == PastUses(store_of(tmp_path), _TABLE, most=8).every()
    assert len(store_of(tmp_path)().note_versions(Space("tool_uses"), "")) == 1
    writer.close()


def test_many_add_at_once_and_nothing_is_lost(tmp_path):
    def add(who):
        uses = PastUses(store_of(tmp_path), _TABLE, most=30)
        for number in range(10):
            uses.add(f"question {number} of {who}", f"a__t{who}", float(number))
            uses.flush()
        uses.close()

    threads = [threading.Thread(target=add, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = PastUses(store_of(tmp_path), _TABLE, most=50).every()
    assert len(every) == 30
    assert {use.tool for use in every} <= {f"a__t{who}" for who in range(4)}


_ABROAD = {
    "send_email": ("发送一封电子邮件给指定收件人", "Sendet eine E-Mail an einen Empfänger"),
    "list_invoices": ("查看尚未付款的发票", "Zeigt die offenen Rechnungen eines Kunden"),
    "book_hotel": ("预订酒店房间", "Bucht ein Zimmer in einem Hotel"),
    "current_weather": ("查询某城市现在的天气和气温", "Das aktuelle Wetter an einem Ort"),
    "play_music": ("播放歌曲或歌单", "Spielt die Lieder einer Liste ab"),
}


@pytest.mark.parametrize(
    ("at", "asked", "right"),
    [
        (0, "帮我给王经理发一封邮件 告诉他明天的会议改到下午三点", "send_email"),
        (0, "在西湖附近订一间酒店房间 住两晚", "book_hotel"),
        (0, "播放一首周杰伦的歌曲", "play_music"),
        (1, "Gibt es eine Rechnung, die noch offen ist?", "list_invoices"),
        (1, "Wie wird das Wetter?", "current_weather"),
    ],
)
def test_other_languages_find_their_tools_folded_or_not(finding, index, at, asked, right):
    finding.sync([_tool("here", name, told[at]) for name, told in _ABROAD.items()])
    assert finding.find(asked)[0].name == f"here__{right}"
    assert index.fold()
    assert finding.find(asked)[0].name == f"here__{right}"


def test_no_letter_of_a_long_question_without_spaces_is_cut_off(finding, index):
    letters = [chr(0x4E00 + at) for at in range(90)]
    tools = [_tool("here", f"tool_{at}", "".join(letters[at : at + 10])) for at in range(0, 90, 10)]
    finding.sync(tools)
    assert index.fold()

    found = finding.find("".join(letters), most=20)
    assert {match.name for match in found} == {tool.name for tool in tools}


def test_how_much_the_past_counts_is_learned_from_the_past_itself(finding, tmp_path):
    """Prompts that sound like one tool and are served by another: only the past knows."""
    table = WordVectors()
    uses = PastUses(store_of(tmp_path), table)
    with LocalIndex(tmp_path / "other", table, folds=False) as index:
        search = ToolSearch(index, table, uses)
        search.sync(_TOOLS)
        assert search.learn(1.0) is None
        towns = ("Lisbon", "Porto", "Faro", "Braga", "Evora", "Sintra", "Tomar", "Beja", "Lagos")
        said = ("rain tomorrow in", "forecast for", "how warm will it be in", "weather of")
        for town in towns:
            for words in said:
                search.used(f"{words} {town}", "bank__balance", 2.0)
                search.used(f"{words} {town} please", "bank__balance", 2.0)
        uses.flush()

        learned = search.learn(3.0)
        assert learned.weight > 1.0
        assert learned.low > 0
        assert uses.weight() == learned.weight
        best, *_ = search.find("rain tomorrow in Coimbra", past=learned.weight)
        assert best.name == "bank__balance"
        assert not uses.has_grown()  # it is chosen again when there is more to learn from


def test_a_past_that_misleads_counts_for_nothing(tmp_path):
    table = WordVectors()
    uses = PastUses(store_of(tmp_path), table)
    with LocalIndex(tmp_path / "other", table, folds=False) as index:
        search = ToolSearch(index, table, uses)
        search.sync(_TOOLS)
        asked = {
            "weather__forecast": "will it rain in the coming days at place {}",
            "weather__current": "how warm is it now at place {}",
        }
        for at in range(60):  # as if every use had been noted for the question before
            name, other = ("weather__forecast", "weather__current")[:: 1 if at % 2 else -1]
            search.used(asked[name].format(at), other if at < 40 else name, float(at))
        uses.flush()

        assert search.learn(3.0).weight < 1.0
