"""From the index to full memories, and no further than needed."""

from __future__ import annotations

from collections.abc import Sequence

from disclosed_memories import (
    NOW,
    Recalled,
    a_busy_store,
    a_memory,
    a_store,
    arrangements,
    recalled,
    some_memories,
    texts,
)
from hypothesis import given, strategies as st

from hotset.nouns.memory import Arrangement, Layer, MemoryRecord, Task
from hotset.sources.memory.layers import LayerRoom, top_topics, unfold
from hotset.sources.memory.overview import Overview, overview
from hotset.tokens import count

PLAIN = Arrangement()
AUTH = a_memory(
    "Rotate refresh tokens", topics=["auth"], text="Rotation of refresh tokens needs a clock. " * 30
)
CACHE = a_memory("Warm the cache", topics=["cache"], text="The cache is warm in the morning. " * 30)
PROXY = a_memory(
    "Proxy timeouts", topics=["proxy"], text="Timeouts of the proxy come from the pool. " * 30
)
GLANCE = overview(a_store(AUTH, CACHE, PROXY))


class Finding:
    """Gives these, and remembers that it was asked."""

    def __init__(self, *memories: MemoryRecord) -> None:
        self.asked: list[str] = []
        self._found = [recalled(memory, 1 - at / 10) for at, memory in enumerate(memories)]

    def __call__(self, query: str) -> Sequence[Recalled]:
        self.asked.append(query)
        return self._found


def test_without_a_question_only_the_index_is_told():
    find = Finding(AUTH)
    told = unfold("", GLANCE, PLAIN, NOW, find=find)
    assert [load.layer for load in told.loads] == [Layer.INDEX]
    assert not find.asked


def test_a_question_that_the_timeline_answers_loads_no_memory():
    find = Finding(AUTH)
    told = unfold("did we rotate the refresh tokens in auth?", GLANCE, PLAIN, NOW, find=find)
    assert [load.layer for load in told.loads] == [Layer.INDEX, Layer.TIMELINE]
    assert not find.asked


def test_a_word_that_no_line_answers_takes_full_memories():
    find = Finding(AUTH)
    told = unfold("which clock does auth rotation need?", GLANCE, PLAIN, NOW, find=find)
    assert [load.layer for load in told.loads] == [Layer.INDEX, Layer.TIMELINE, Layer.FULL]
    assert "needs a clock" in told.memories.text
    assert told.loads[-1].ids == (AUTH.id,)


def test_where_no_topic_fits_the_timeline_is_left_out_and_the_search_decides():
    told = unfold("why is it slow after lunch?", GLANCE, PLAIN, NOW, find=Finding(CACHE))
    assert [load.layer for load in told.loads] == [Layer.INDEX, Layer.FULL]
    nothing = unfold("why is it slow after lunch?", GLANCE, PLAIN, NOW, find=Finding())
    assert [load.layer for load in nothing.loads] == [Layer.INDEX]


def about(*topics: str) -> list[MemoryRecord]:
    return [
        a_memory(f"On {topic}", topics=[topic], text=f"All there is to say of {topic}. " * 20)
        for topic in topics
    ]


def test_the_best_and_the_two_best_topics_are_shown_in_full_and_the_rest_can_be_read_by_id():
    memories = about("auth", "cache", "proxy", "socket", "parse")
    again = a_memory(
        "On auth again", topics=["auth"], text="Something else on how we sign in. " * 20
    )
    told = unfold(
        "explain", overview(a_store(*memories, again)), PLAIN, NOW, find=Finding(*memories, again)
    )
    in_full = {id for id, layer in told.memories.shown.items() if layer is Layer.FULL}
    assert in_full == {each.id for each in (*memories[:3], again)}
    assert set(told.memories.shown) == {each.id for each in (*memories, again)}
    assert told.loads[-1].topics == ("auth", "cache")


def test_a_composite_counts_as_one_topic():
    memories = about("auth", "cache", "proxy", "socket")
    shape = Arrangement(composites={"auth + socket": ("auth", "socket")})
    told = unfold("explain", overview(a_store(*memories)), shape, NOW, find=Finding(*memories))
    assert told.loads[-1].topics == ("auth + socket", "cache")
    assert told.memories.shown[memories[3].id] is Layer.FULL


def test_words_that_were_said_are_shown_though_they_have_no_topic():
    said = Recalled("page-1", "said", "", "I moved to Lisbon.", NOW, speaker="user")
    told = unfold("where do I live?", GLANCE, PLAIN, NOW, find=lambda _query: [said])
    assert told.memories.shown == {"page-1": Layer.FULL}


def test_the_index_is_told_once_a_conversation():
    told = unfold("which clock?", GLANCE, PLAIN, NOW, find=Finding(AUTH), has_index=True)
    assert [load.layer for load in told.loads] == [Layer.FULL]


def test_a_split_timeline_costs_a_question_a_hundred_tokens_at_most():
    glance = overview(a_busy_store())
    whole = unfold("proxy retry socket", glance, PLAIN, NOW, find=Finding())
    split = unfold("proxy retry socket", glance, Arrangement(split=True), NOW, find=Finding())
    assert 0 < split.timeline.tokens <= 100 < whole.timeline.tokens


def test_a_bypassed_kind_of_task_is_told_nothing_until_its_time_is_over():
    shape = Arrangement(bypass={Task.REVIEW: NOW + 10})
    assert not unfold("which clock?", GLANCE, shape, NOW, find=Finding(AUTH), task=Task.REVIEW).text
    assert unfold("which clock?", GLANCE, shape, NOW, find=Finding(AUTH), task=Task.DEBUGGING).text
    assert unfold(
        "which clock?", GLANCE, shape, NOW + 10, find=Finding(AUTH), task=Task.REVIEW
    ).text


def test_topics_that_nobody_reads_give_way():
    items = [recalled(AUTH, 1.0), recalled(CACHE, 0.9), recalled(PROXY, 0.8)]
    assert top_topics(items, (), PLAIN) == ("auth", "cache")
    assert top_topics(items, (), Arrangement(scores={"auth": 0.2})) == ("cache", "proxy")


def test_a_topic_that_the_question_names_goes_before_one_that_was_found_a_little_better():
    items = [recalled(AUTH), recalled(CACHE), recalled(PROXY)]
    assert top_topics(items, ("proxy",), PLAIN) == ("auth", "proxy")


def test_nothing_is_told_of_nothing():
    assert unfold("anything", Overview(), PLAIN, NOW, find=Finding(AUTH)).text == ""


rooms = st.builds(
    LayerRoom, index=st.integers(0, 150), timeline=st.integers(0, 300), memories=st.integers(0, 500)
)


@given(some_memories(), arrangements, texts, rooms)
def test_each_layer_keeps_its_room_and_each_load_says_what_it_took(memories, shape, query, room):
    told = unfold(
        query, overview(a_store(*memories)), shape, NOW, find=Finding(*memories), room=room
    )
    most = {Layer.INDEX: room.index, Layer.TIMELINE: room.timeline, Layer.FULL: room.memories}
    assert all(0 < load.tokens <= most[load.layer] for load in told.loads)
    parts = [part for part in (told.index, told.timeline, told.memories) if part.text]
    assert [load.tokens for load in told.loads] == [count(part.text) for part in parts]
