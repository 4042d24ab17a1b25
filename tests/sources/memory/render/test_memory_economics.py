"""What memory costs and saves, the six limits, and what is done where one is crossed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from disclosed_memories import (
    DAY,
    NOW,
    a_busy_store,
    a_memory,
    a_store,
    keep,
    recalled,
    some_memories,
    topics_in,
)
from hypothesis import given, strategies as st

from hotset.nouns.memory import Arrangement, Layer, MemoryKind, MemoryRecord, Task, Uses
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.economics import (
    LIMITS,
    Breach,
    Economics,
    Effect,
    Metric,
    Remedy,
    arranged_event,
    by_task,
    carry_out,
    check,
    economics_of,
    loaded_event,
    uses_by_topic,
)
from hotset.sources.memory.layers import (
    Load,
    render_index,
    render_timeline,
    shown_topics,
    unfold,
)
from hotset.sources.memory.overview import overview
from hotset.store.port import Store

HERE = SessionId("s1")
HEALTHY = Economics(
    index_loads=1,
    index_tokens=90,
    full_loads=1,
    read_tokens=900,
    most_full_loads=1,
    available=30_000,
)


def loaded(
    layer: Layer, tokens: int, *, prompt: int = 1, ids: tuple[str, ...] = (), asked: bool = False
) -> Event:
    load = Load(layer, tokens, ("auth",), ids)
    return loaded_event(
        load, NOW, available=28_500, session=HERE, task=Task.DEBUGGING, prompt=prompt, asked=asked
    )


def breach_of(remedy: Remedy) -> Breach:
    threshold = next(each for each in LIMITS if each.remedy is remedy)
    return Breach(threshold.metric, threshold.limit, threshold.limit, remedy)


# What was spent


def test_what_a_session_spent_read_and_saved_is_told_from_its_events():
    events = [
        loaded(Layer.INDEX, 100),
        loaded(Layer.TIMELINE, 50),
        loaded(Layer.FULL, 2400, asked=True),
        Event("Other", NOW),
    ]
    told = economics_of(events)
    assert (told.discovery_tokens, told.read_tokens, told.ratio) == (150, 2400, 0.0625)
    assert (told.saved, round(told.savings or 0, 3)) == (25_950, 0.911)
    assert (told.loads, told.full_loads, told.asked, told.task) == (3, 1, 1, Task.DEBUGGING)


def test_loading_everything_is_reckoned_once_a_session_however_often_something_is_loaded():
    assert economics_of([loaded(Layer.FULL, 10)] * 5).available == 28_500


def test_full_loads_are_counted_for_each_task():
    events = [loaded(Layer.FULL, 10, prompt=prompt) for prompt in (1, 1, 2, 2, 2)]
    assert (economics_of(events).full_loads, economics_of(events).most_full_loads) == (5, 3)
    assert [economics_of(task).full_loads for task in by_task(events).values()] == [2, 3]


def test_an_event_holds_no_topic_and_no_word():
    event = loaded_event(
        Load(Layer.FULL, 10, ("the rabbit project",), ("sem-abc",)), NOW, available=1
    )
    assert "rabbit" not in repr(event)
    assert event.detail["ids"] == "sem-abc"
    effect = Effect(3, 2, "tokens of what is told")
    assert arranged_event(breach_of(Remedy.COMPRESS), effect, NOW).detail["remedy"] == "compress"


def test_events_that_somebody_else_wrote_are_passed_over():
    strange = [
        Event("MemoryLoaded", NOW, detail={}),
        Event("MemoryLoaded", NOW, detail={"layer": "attic", "tokens": 5}),
        Event(
            "MemoryLoaded",
            NOW,
            detail={"layer": "full", "tokens": "many", "task": "baking", "all": -4},
        ),
    ]
    assert economics_of(strange) == Economics(full_loads=1, most_full_loads=1)


def test_the_topics_of_a_load_are_those_that_most_of_its_memories_have():
    known = {"a": ("auth", "odd"), "b": ("auth", "cache"), "c": ("cache", "auth")}
    told = economics_of([loaded(Layer.FULL, 10, ids=("a", "b", "c"))], known.__getitem__)
    assert told.together == (("auth", "cache"),)


# The limits


def test_the_six_limits_stand_in_their_order_of_priority():
    bad = Economics(
        index_loads=1,
        index_tokens=100,
        timeline_loads=1,
        timeline_tokens=400,
        full_loads=4,
        read_tokens=900,
        most_full_loads=4,
        available=1500,
    )
    assert [breach.metric for breach in check("session", bad)] == list(Metric)
    assert [each.metric for each in LIMITS] == list(Metric)
    assert [breach.metric for breach in check("task", bad)] == [Metric.RATIO, Metric.FULL_LOADS]
    assert [breach.metric for breach in check("trigger", bad)] == [Metric.RATIO, Metric.FULL_LOADS]


@pytest.mark.parametrize(
    ("metric", "at_limit", "beyond"),
    [
        (
            Metric.RATIO,
            {"index_tokens": 150, "read_tokens": 1000},
            {"index_tokens": 151, "read_tokens": 1000},
        ),
        (
            Metric.SAVINGS,
            {"available": 8000, "read_tokens": 3910},
            {"available": 8000, "read_tokens": 3911},
        ),
        (Metric.FULL_LOADS, {"most_full_loads": 3}, {"most_full_loads": 4}),
        (
            Metric.DISCOVERY,
            {"index_tokens": 200, "read_tokens": 9000},
            {"index_tokens": 201, "read_tokens": 9000},
        ),
        (
            Metric.TIMELINE,
            {"timeline_loads": 1, "timeline_tokens": 100, "read_tokens": 9000},
            {"timeline_loads": 2, "timeline_tokens": 201, "read_tokens": 9000, "index_tokens": 0},
        ),
        (
            Metric.SAVED,
            {"available": 1990, "read_tokens": 900},
            {"available": 1989, "read_tokens": 900},
        ),
    ],
)
def test_each_limit_is_crossed_just_beyond_it(
    metric: Metric, at_limit: dict[str, int], beyond: dict[str, int]
):
    def crossed(changes: dict[str, int]) -> list[Metric]:
        return [breach.metric for breach in check("session", replace(HEALTHY, **changes))]

    assert metric not in crossed(at_limit)
    assert metric in crossed(beyond)


def test_the_trigger_is_the_third_full_load_of_a_task():
    costly = Economics(
        index_loads=1,
        index_tokens=500,
        full_loads=2,
        read_tokens=100,
        most_full_loads=2,
        available=9000,
    )
    assert check("trigger", costly) == ()
    assert [breach.metric for breach in check("trigger", replace(costly, most_full_loads=3))] == [
        Metric.RATIO
    ]


def test_a_healthy_session_crosses_nothing_nor_does_one_without_memory():
    assert check("session", HEALTHY) == check("session", Economics()) == ()
    index_alone = Economics(index_loads=1, index_tokens=98, available=30_000)
    assert check("session", index_alone) == ()


# What is done about it


def unread(store: Store) -> dict[str, Uses]:
    """Everything was shown twenty times; only what has to do with the proxy was ever read."""
    uses = {
        m.id: Uses(shown=20, read=6 if "proxy" in m.topics else 0, last=m.created)
        for m in store.memories()
    }
    return uses_by_topic(uses, topics_in(store))


def a_worn_store() -> Store:
    """With topics that are called by two names, and with some that have nothing to say any more."""
    store = a_busy_store()
    return keep(
        store,
        *(a_memory(f"tw{at}", topics=["timeout", "time-out"], age=at) for at in range(3)),
        a_memory("x1", topics=["previews"]),
        a_memory("x2", topics=["preview"]),
        *(
            a_memory(f"old{at}", kind=MemoryKind.FACT, topics=[f"attic {at}"], age=180)
            for at in range(5)
        ),
    )


COSTLY = Economics(
    index_loads=1,
    index_tokens=100,
    timeline_loads=4,
    timeline_tokens=2000,
    full_loads=4,
    read_tokens=4000,
    most_full_loads=4,
    available=5000,
    task=Task.REVIEW,
    together=(("proxy", "retry"), ("socket", "proxy"), ("parse", "retry"), ("proxy", "socket")),
)


def done(
    remedy: Remedy, store: Store, shape: Arrangement | None = None, now: float = NOW
) -> tuple[Arrangement, Effect]:
    items = [recalled(memory) for memory in store.memories()][-12:]
    return carry_out(
        breach_of(remedy),
        shape or Arrangement(),
        overview(store),
        unread(store),
        COSTLY,
        now,
        items=items,
    )


@pytest.mark.parametrize("remedy", Remedy)
def test_each_action_changes_the_arrangement_and_measures_that_it_got_cheaper(remedy: Remedy):
    shape, effect = done(remedy, a_worn_store())
    assert shape != Arrangement()
    assert effect.after < effect.before
    assert effect.unit
    assert not effect.note


@pytest.mark.parametrize("remedy", Remedy)
def test_each_action_comes_to_rest(remedy: Remedy):
    store, shape = a_worn_store(), Arrangement()
    for _ in range(10):
        before, (shape, effect) = shape, done(remedy, store, shape)
        assert effect.after <= effect.before
    assert shape == before, "it came to rest"


def test_compressing_stays_within_its_bounds_and_shortens_what_is_read_only_where_much_is():
    store, shape = a_worn_store(), Arrangement()
    for _ in range(10):
        shape, _ = done(Remedy.COMPRESS, store, shape)
    assert shape.full_days >= 1
    assert shape.line_days >= 7
    assert 60 <= shape.excerpt < 120
    little = replace(COSTLY, read_tokens=500)
    items = [recalled(memory) for memory in store.memories()][-12:]
    shape, _ = carry_out(
        breach_of(Remedy.COMPRESS), Arrangement(), overview(store), {}, little, NOW, items=items
    )
    assert (shape.full_days, shape.excerpt) == (7.0, 120)


def test_compressing_goes_no_further_than_the_first_step_that_helps():
    shape, _ = done(Remedy.COMPRESS, a_worn_store())
    assert (shape.line_days, shape.full_days, shape.excerpt) == (15.0, 3.5, 90)


def test_a_topic_that_is_shown_and_never_read_no_longer_unfolds_and_comes_back_when_it_is_read():
    store = a_worn_store()
    shape, _ = done(Remedy.RESCORE, store)
    assert shape.scores["merge"] < 1 <= shape.scores.get("proxy", 1.0)

    def told(shape: Arrangement) -> int:
        return unfold("merge", overview(store), shape, NOW, find=lambda _: []).timeline.tokens

    assert told(shape) == 0 < told(Arrangement())
    read = {**unread(store), "merge": Uses(shown=20, read=10)}
    again, _ = carry_out(breach_of(Remedy.RESCORE), shape, overview(store), read, COSTLY, NOW)
    assert again.scores["merge"] > 1


def test_topics_that_are_read_together_become_one():
    shape, effect = done(Remedy.COMPOSE, a_worn_store())
    assert shape.composites == {
        "parse + proxy + retry + socket": ("parse", "proxy", "retry", "socket")
    }
    assert (effect.before, effect.after) == (2, 1)


def test_reorganising_leaves_out_what_is_stale_and_says_once_what_is_there_twice():
    store = a_worn_store()
    shape, _ = done(Remedy.REORGANISE, store)
    assert set(shape.stale) >= {f"attic {at}" for at in range(5)}
    assert "proxy" not in shape.stale
    assert shape.aliases["time-out"] == "timeout"
    assert {"preview", "previews"} & {*shape.aliases}
    touched = keep(store, a_memory("back", topics=["attic 1"], age=0))
    assert "attic 1" in {topic.name for topic in shown_topics(overview(touched), shape)}


def test_a_stale_topic_that_was_read_lately_stays():
    store = a_worn_store()
    uses = {"attic 1": Uses(shown=1, read=1, last=NOW)}
    shape, _ = carry_out(
        breach_of(Remedy.REORGANISE), Arrangement(), overview(store), uses, COSTLY, NOW
    )
    assert "attic 1" not in shape.stale


def test_a_bypass_ends_by_itself_and_is_not_lengthened_while_it_runs():
    store = a_worn_store()
    shape, _ = done(Remedy.BYPASS, store)
    assert shape.bypass == {Task.REVIEW: NOW + DAY}
    again, _ = done(Remedy.BYPASS, store, shape, now=NOW + DAY / 2)
    assert again.bypass == shape.bypass
    later, _ = done(Remedy.BYPASS, store, shape, now=NOW + 2 * DAY)
    assert later.bypass == {Task.REVIEW: NOW + 3 * DAY}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"asked": 1}, "asked for"),
        ({"available": 400}, "too little"),
        ({"task": None}, "not known"),
    ],
)
def test_memory_that_was_asked_for_or_is_too_young_to_judge_is_not_bypassed(
    change: dict[str, int], why: str
):
    breach, glance = breach_of(Remedy.BYPASS), overview(a_worn_store())
    shape, effect = carry_out(breach, Arrangement(), glance, {}, replace(COSTLY, **change), NOW)
    assert shape == Arrangement()
    assert why in effect.note


@given(some_memories(12), st.permutations(list(Remedy)), st.data())
@pytest.mark.slow
def test_whatever_is_done_nothing_gets_dearer_and_everything_stays_readable(
    memories: list[MemoryRecord], remedies, data
):
    store = a_store(*memories)
    glance = overview(store)
    topics = [*glance.topics, "unknown"]
    uses = {
        name: Uses(shown=data.draw(st.integers(0, 30)), read=data.draw(st.integers(0, 3)))
        for name in topics
    }
    pairs = st.lists(st.sampled_from(topics), max_size=2).map(tuple)
    economics = replace(COSTLY, together=tuple(data.draw(st.lists(pairs, max_size=4))))
    shape = Arrangement()
    items = [recalled(memory) for memory in memories]
    for remedy in remedies:
        shape, effect = carry_out(
            breach_of(remedy), shape, glance, uses, economics, NOW, items=items
        )
        assert effect.after <= effect.before
        assert render_index(glance, shape, NOW).tokens <= 100
        assert render_timeline(glance, shape, NOW).tokens <= 500
    told = unfold("auth cache", glance, replace(shape, bypass={}), NOW, find=lambda _: items)
    assert {memory.id for memory in memories}.issuperset(told.memories.shown)
    shown = [member for topic in shown_topics(glance, shape) for member in topic.members]
    assert len(shown) == len(set(shown)), "no topic stands in the index twice"
    assert {*shown, *shape.stale} >= {*glance.topics}


def test_a_session_after_the_actions_is_cheaper_than_the_same_session_before():
    store = a_worn_store()
    glance, memories = overview(store), list(store.memories())
    questions = [
        "proxy retry socket",
        "merge turn problems",
        "parse the header again",
        "why did login break?",
    ]

    def spent(shape: Arrangement) -> Economics:
        events = []
        for prompt, question in enumerate(questions):
            found = [
                recalled(memory)
                for memory in memories
                if set(memory.topics) & set(question.split())
            ][-10:]
            told = unfold(
                question,
                glance,
                shape,
                NOW,
                find=lambda _, found=found: found,
                has_index=prompt > 0,
            )
            events += [
                loaded_event(load, NOW, available=glance.tokens, session=HERE, prompt=prompt)
                for load in told.loads
            ]
        return economics_of(events, topics_in(store))

    before, shape = spent(Arrangement()), Arrangement()
    breaches = check("session", before)
    assert {Metric.RATIO, Metric.DISCOVERY, Metric.TIMELINE} <= {
        breach.metric for breach in breaches
    }
    for breach in breaches:
        shape, _ = carry_out(breach, shape, glance, unread(store), before, NOW)
    after = spent(shape)
    assert after.spent < before.spent
    assert after.discovery_tokens < before.discovery_tokens
    assert len(check("session", after)) < len(breaches)
