"""Facts are what a user says to last: rules, decisions, preferences. Few and sure."""

from __future__ import annotations

import pytest
from told_sessions import Told

from hotset.nouns.memory import Fact, MemoryKind, MemoryRecord, Standing, Trust
from hotset.sources.memory.encode.facts import is_decision, subject_of


def facts(*prompts: str) -> list[MemoryRecord]:
    told = Told()
    for prompt in prompts:
        told.user(prompt).says("All right.")
    return told.memories(MemoryKind.FACT)


def subjects(*prompts: str) -> list[str]:
    return [each.detail.subject for each in facts(*prompts) if isinstance(each.detail, Fact)]


@pytest.mark.parametrize(
    "said",
    [
        "Please remember that the staging database is read-only on Fridays.",
        "From now on, write commit messages in the imperative mood.",
        "Always run the migrations before the tests.",
        "We should never log the bodies of requests.",
        "We use pnpm for the frontend.",
        "We no longer support Python 3.10.",
        "I prefer small functions over comments.",
        "We decided to keep the old endpoint until June.",
        "Let's go with Postgres for the job queue.",
        "The deadline for the release is the 14th of March.",
        "My dog's name is Max.",
        "I'm allergic to peanuts.",
        "Planned maintenance never counts against the SLA.",
        "The CRM is the source of truth for names.",
        "Our policy is that invoices are kept for ten years.",
        "By the way, I've been taking guitar lessons for six weeks.",
        "I usually go to the gym on Mondays and Fridays.",
        "We're on Ruby 3.3.",
        "Nightly builds run at 02:00 UTC.",
        "I'd rather have small pull requests.",
        "Dont edit the lock file by hand.",
        "Use ruff instead of black.",
        "If you need to look at the schema, refer to the wiki.",
        "The wiki has nothing to do with the handbook.",
        "The proxy is at https://proxy.example.com, can you note that.",
    ],
)
def test_what_is_meant_to_last_is_kept_in_the_users_words(said):
    (fact,) = facts(said)
    assert fact.text.rstrip(".").lower() in said.lower()
    assert (fact.trust, fact.standing) == (Trust.PERSON, Standing.ACTIVE)


@pytest.mark.parametrize(
    "said",
    [
        "Do you remember how we fixed the parser?",
        "Should we always run the migrations first?",
        "Let's go with that one.",
        "I've always wanted to see the sea.",
        "The build is failing again on the main branch.",
        "I prefer the second option.",
        "We use it a lot.",
        "Fix the parser and add a test for it.",
        "I'll definitely try to keep my files organized going forward.",
        "error: we use deprecated_call() at src/a.py:12",
        "> We always deploy on Fridays.",
        "```\nAlways use tabs here.\n```",
        "Could you always show the total in the header?",
        "Thanks, this was really helpful, I never knew that!",
        "we only have two tests, are any of them slow",
        "so we always write to disk, right",
        "We should look into the scheduler.",
        "We need to come up with a plan for every team.",
        "Our parser needs better messages.",
        "The import is also somehow failing.",
        "This branch should be based on main.",
        "Seems like the cache is no longer valid.",
        "The label should be that.",
        "All I see is the header.",
        "I can always see the total in the footer.",
        "Whether all services should log is another matter.",
    ],
)
def test_what_is_asked_pasted_or_points_elsewhere_is_no_fact(said):
    assert facts(said) == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "Remove the old exporter since it's no longer used.",
            "The old exporter is no longer used",
        ),
        ("can you delete legacy_sync, it's deprecated", "Legacy_sync is deprecated"),
        ("Clean up the forms because we only support Chrome.", "We only support Chrome."),
    ],
)
def test_the_reason_of_an_order_is_kept_without_the_order(said, kept):
    assert [fact.text for fact in facts(said)] == [kept]


def test_of_a_pasted_document_only_what_stands_before_it_is_the_users_word():
    document = "\n".join(
        f"## Part {number}\n- Always use method {number} for the import of rows."
        for number in range(60)
    )
    assert facts(f"Implement this plan.\n\n{document}") == []
    assert len(facts(f"From now on, ask before you touch the schema.\n\n{document}")) == 1


def test_an_issue_that_is_handed_over_states_no_facts():
    assert (
        facts(
            "<pr_description>\nWe use Django 2.2 in this project. It should never crash "
            "here.\n</pr_description>"
        )
        == []
    )


def test_a_fact_and_what_amends_it_have_the_same_subject():
    assert subjects("The default port is 8080.", "Correction: the default port is 9090.") == [
        "default port",
        "default port",
    ]
    assert subjects("We use npm.", "From now on, use pnpm instead of npm.") == ["npm", "npm"]
    assert subjects(
        "We use Redis for the job queue.", "Let's switch to Postgres for the job queue."
    ) == [
        "job queue",
        "job queue",
    ]
    assert subject_of("amendment to the merge rule from last month") == "merge rule"


def test_an_amendment_says_that_it_is_one():
    (fact,) = facts("We no longer support Python 3.10.")
    assert "amends" in fact.why


def test_what_happened_has_no_subject_and_is_not_replaced_by_what_happens_next():
    assert subjects(
        "I just bought a red bike on March 2nd.", "I just bought a blue bike on May 9th."
    ) == ["", ""]


def test_the_same_words_twice_in_one_episode_are_one_fact():
    assert (
        len(
            facts(
                "Always run the migrations before the tests.",
                "Again: always run the migrations before the tests.",
            )
        )
        == 1
    )


def test_a_decision_that_a_model_words_counts_once_the_user_agrees():
    settled = "Settled: merge_records keys on the lowercased email and the calendar day."
    agreed = (
        Told()
        .user("Contacts come in twice after each sync.")
        .says(settled)
        .user("Right, do it that way.")
        .says("Done.")
    )
    (fact,) = agreed.memories(MemoryKind.FACT)
    assert (fact.trust, fact.text) == (Trust.AGENT, settled)
    assert fact.confidence < 0.7
    refused = (
        Told()
        .user("Contacts come in twice after each sync.")
        .says(settled)
        .user("No, not by day.")
        .says("Hm.")
    )
    assert refused.memories(MemoryKind.FACT) == []


def test_what_a_model_calls_settled_counts_where_the_user_had_just_said_it_and_nobody_takes_it_back():  # noqa: E501
    ruling = "Four attempts in total, and cap the backoff at 60 seconds."
    recap = "Final policy: retry any 5xx and 429, at most 4 attempts, backoff capped at 60 seconds."
    told = Told().user("The client retries too much.").says("How often may it try?").user(ruling)
    (fact,) = told.says(recap).memories(MemoryKind.FACT)
    assert (fact.text, fact.trust) == (recap, Trust.AGENT)
    again = Told().user("The client retries too much.").says("How often may it try?").user(ruling)
    assert (
        again.says(recap).user("No, that's not what I said.").says("Hm.").memories(MemoryKind.FACT)
        == []
    )


def test_what_a_model_settles_by_itself_is_no_fact():
    alone = (
        Told()
        .user("Write me a poem about the sea.")
        .says("Final policy: retry any 5xx and 429, at most 4 attempts.")
    )
    assert alone.memories(MemoryKind.FACT) == []
    asked = (
        Told()
        .user("How many attempts should the client make?")
        .says("Decision: the client makes 4 attempts in all.")
    )
    assert asked.memories(MemoryKind.FACT) == []


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        ("We decided to ship on Tuesdays.", True),
        ("From now on, use pnpm instead of npm.", True),
        ("Never force-push to main.", True),
        ("We switched from npm to pnpm.", True),
        ("Amended rule, superseding keep-latest: the fuller record wins.", True),
        ("Settled: merge_records keys on the lowercased email.", True),
        ("My dog's name is Rex.", False),
        ("I prefer short answers in the morning.", False),
        ("The staging database lives in Frankfurt.", False),
        ("I just bought a red bike on March 2nd.", False),
    ],
)
def test_a_decision_is_told_from_other_facts_by_its_words(text, decides):
    assert is_decision(text) is decides
