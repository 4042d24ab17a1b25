"""How memories read: topics are words that people use, titles say what was asked, and clients'
marks are not the user's."""

from __future__ import annotations

from told_sessions import PASSED, Told

from hotset.nouns.memory import MemoryKind
from hotset.sources.memory.encode.outcome import title_of, topics_of
from hotset.sources.memory.encode.session import acts_of
from hotset.window.work.prompts import prompt_words


def test_how_something_is_said_is_no_topic():
    topics = topics_of(
        "Remember that we always pin dependencies in constraints.txt, never recently, basically."
    )
    assert {"dependency", "constraint"} <= set(topics)
    assert not {"remember", "always", "recently", "basically"} & set(topics)
    assert topics_of("The assembly line of the family supplies the anomaly") == (
        "assembly",
        "family",
        "supply",
        "anomaly",
    )


def test_a_title_has_no_full_stop_and_no_label_of_a_form():
    assert title_of("Make the tests of the parser pass.") == "Make the tests of the parser pass"
    handed = (
        "Consider the following PR description:\n\n## Description\n"
        "\nQuantity raises where it "
        "should return NotImplemented"
    )
    assert title_of(handed) == "Quantity raises where it should return NotImplemented"


def test_quotation_marks_around_a_whole_prompt_are_the_clients():
    assert (
        prompt_words('"Fix the parser. We pin versions."').text
        == "Fix the parser. We pin versions."
    )
    assert prompt_words('"Fix" and "pin"').text == '"Fix" and "pin"'
    assert prompt_words('"').text == '"'


def test_a_method_a_range_and_a_media_type_are_no_files():
    command = "node app.js console.log(1) origin/main..HEAD.x application/vnd.api src/report.ts"
    told = Told().user("Look at it").runs(command, PASSED)
    (act,) = acts_of(told.material().line)
    assert act.files == ("app.js", "src/report.ts")


def test_what_the_agent_said_last_ends_before_the_outcome_is_told():
    told = (
        Told().user("Make the report of invoices faster, it takes minutes.").edits("src/report.py")
    )
    told.runs("pytest -q", PASSED).says("Independent mode writes the prompt at once")
    (episode,) = told.memories(MemoryKind.EPISODE)
    assert "at once. It worked" in episode.text


def test_what_is_to_be_remembered_is_remembered_without_the_order_to_do_so():
    told = (
        Told()
        .user("Please remember that the staging database is read-only on Fridays.")
        .says("All right.")
    )
    (fact,) = told.memories(MemoryKind.FACT)
    assert fact.text == "The staging database is read-only on Fridays."
    told = (
        Told()
        .user("Remember to run the migrations before the tests of the parser.")
        .says("All right.")
    )
    assert [each.text for each in told.memories(MemoryKind.FACT)] in (
        [],
        ["Remember to run the migrations before the tests of the parser."],
    )
