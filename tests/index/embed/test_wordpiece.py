"""Texts to tokens: counted in one go as they would be one by one."""

from collections import Counter

from hypothesis import given, settings, strategies as st

from hotset.index.embed.wordpiece import counts_of, tokens_of

WORDS = st.lists(
    st.sampled_from(["the", "file", "snake_case", "naïve", "[SEP]", "日本", "=", "\ud800", " "]),
    max_size=30,
).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(WORDS, max_size=6), most=st.integers(1, 40))
def test_each_text_has_the_counts_of_its_first_tokens(texts, most):
    tokens, counts, ends = counts_of(texts, most)
    begin = 0
    for text, end in zip(texts, ends, strict=True):
        told = dict(zip(tokens[begin:end].tolist(), counts[begin:end].tolist(), strict=True))
        assert told == Counter(tokens_of([text], 1000)[0].tolist()[:most])
        assert list(told) == sorted(told)
        begin = end
    assert begin == len(tokens) == len(counts)


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(WORDS, max_size=6), most=st.integers(1, 40))
def test_texts_do_not_change_each_others_tokens(texts, most):
    together = [tokens.tolist() for tokens in tokens_of(texts, most)]
    assert together == [tokens_of([text], 1000)[0].tolist()[:most] for text in texts]


def test_words_in_lower_case_and_pieces_of_identifiers():
    [plain], [shouted] = tokens_of(["read file"], 9), tokens_of(["READ File"], 9)
    assert plain.tolist() == shouted.tolist()
    assert len(tokens_of(["getUserName"], 9)[0]) == 3
