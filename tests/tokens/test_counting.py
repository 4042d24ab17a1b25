"""Counts are OpenAI's own, whatever the text is, and take a bounded time."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings, strategies as st
from tiktoken_ext import openai_public

import hotset
from hotset.tokens import Encoding, count, warm
from hotset.tokens.encodings import vocabulary
from tests.campaign import sample

PUBLISHED = {
    Encoding.O200K: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    Encoding.CL100K: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
SAMPLES = [
    "",
    " ",
    "\n\n\n  \n",
    "def f(x):\n\treturn x  # it's what we'll do\n",
    '{"a":[1,22,333,4444],"b":"it\'s \\u00e9"}' * 50,
    "お誕生日おめでとう、世界。\n" * 40,
    "naïve café 👩‍👩‍👧‍👦 e\u0301 ÀÉ ǅ Ⅷ ½ \u2003wide\u2028line",
    "https://example.com/a/b?c=d&e=f#g\r\n\r\n//// ----\n/x",
    "CamelCaseHTTPServer SCREAMING_SNAKE it'S IT'S I'LL",
]


@pytest.fixture(scope="module", params=list(Encoding))
def reference(request, tmp_path_factory):
    """tiktoken by itself, over the file that it would have downloaded: it checks the hash of that
    file."""
    encoding = request.param
    folder = tmp_path_factory.mktemp("ranks")
    url = f"https://openaipublic.blob.core.windows.net/encodings/{encoding}_base.tiktoken"
    (folder / hashlib.sha1(url.encode()).hexdigest()).write_bytes(published_file(encoding))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        made = tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[f"{encoding}_base"]())
    return encoding, lambda text: len(made.encode_ordinary(text))


def published_file(encoding: Encoding) -> bytes:
    return b"".join(
        b"%s %d\n" % (base64.b64encode(token), rank)
        for rank, token in enumerate(vocabulary(encoding))
    )


@pytest.mark.parametrize("encoding", list(Encoding))
def test_the_vocabularies_are_the_published_ones_to_the_byte(encoding):
    assert hashlib.sha256(published_file(encoding)).hexdigest() == PUBLISHED[encoding]


@pytest.mark.parametrize(
    ("text", "cl100k", "o200k"),
    [
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 9, 8),
        ("tiktoken is great!", 6, 6),
    ],
)
def test_counts_that_openai_has_published_are_met(text, cl100k, o200k):
    assert count(text, Encoding.CL100K) == cl100k
    assert count(text) == count(text.encode()) == o200k


@pytest.mark.parametrize("text", SAMPLES)
@pytest.mark.rest_slow
def test_samples_count_as_the_reference_counts_them(reference, text):
    encoding, counted = reference
    assert count(text, encoding) == counted(text)


@settings(deadline=None, max_examples=sample(80, 200))
@given(text=st.text())
def test_any_text_counts_as_the_reference_counts_it(reference, text):
    encoding, counted = reference
    assert count(text, encoding) == counted(text)


FRAGMENTS = st.sampled_from(
    [
        *SAMPLES,
        "it's",
        "x'",
        "'ll",
        "12345",
        " ",
        "  \n",
        "\r\n",
        "/",
        "//\n",
        "é",
        "ß",
        "世",
        "_",
        "A",
        "!?",
        "\t\t",
        "\x1c",
        "word ",
    ]
)


@settings(deadline=None, max_examples=60)
@given(fragments=st.lists(FRAGMENTS, min_size=20, max_size=200), times=st.integers(5, 60))
@pytest.mark.slow
def test_a_long_text_is_counted_in_pieces_that_add_up(reference, fragments, times):
    encoding, counted = reference
    text = "".join(fragments) * times
    assert count(text, encoding) == counted(text)


def test_a_slash_behind_a_line_end_stays_with_the_signs_before_it(reference):
    encoding, counted = reference
    text = ")\n/世" * 20_000
    assert count(text, encoding) == counted(text)


@pytest.mark.slow
def test_real_files_count_as_the_reference_counts_them(reference):
    encoding, counted = reference
    text = "\n".join(
        path.read_text("utf-8") for path in sorted(Path(hotset.__file__).parent.rglob("*.py"))
    )
    assert len(text) > 200_000
    assert count(text, encoding) == counted(text)


@settings(deadline=None)
@given(
    words=st.lists(st.from_regex(r"[a-z]{1,12}", fullmatch=True), min_size=2, max_size=50),
    cut=st.integers(1, 49),
)
@pytest.mark.slow
def test_counts_add_up_where_a_word_ends(words, cut):
    front, back = " ".join(words[:cut]), "".join(f" {word}" for word in words[cut:])
    assert count(front + back) == count(front) + count(back)


@given(data=st.binary(max_size=2000))
def test_no_bytes_make_a_count_fail(data):
    assert 0 <= count(data) <= 3 * len(data)


def test_halves_of_surrogate_pairs_count_as_the_sign_for_broken_text():
    assert count("a\ud800b") == count("a\ufffdb")
    assert count("a\ud800b" * 500) == count("a\ufffdb" * 500)


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|fim_prefix|>", "<|im_start|>user<|im_end|>"])
def test_the_text_of_special_tokens_is_plain_text(text):
    assert count(text) > 1
    assert count(text, Encoding.CL100K) > 1


@pytest.mark.parametrize("sign", ["a", "A", " ", "\n", "!", "世", "\u2003", " \n", "aB1 ", "'"])
@pytest.mark.rest_slow
def test_a_megabyte_of_anything_is_counted_in_bounded_time(sign):
    warm()
    text = (sign * 1_000_000)[:1_000_000]
    began = time.process_time()
    assert 0 < count(text) <= 1_000_000
    assert time.process_time() - began < 10  # a third of a second when nothing else runs


def test_a_text_without_any_place_to_cut_is_off_by_a_few_tokens_at_most(reference):
    encoding, counted = reference
    text = "ab" * 50_000
    assert abs(count(text, encoding) - counted(text)) <= 8


def test_what_was_counted_before_costs_no_second_count():
    text = "".join(f"line {number} of a long page\n" for number in range(40_000))
    began = time.process_time()
    first = count(text)
    between = time.process_time()
    assert count(text) == count(text.encode()) == first
    assert time.process_time() - between < (between - began) / 2


def test_encodings_do_not_share_what_they_remember():
    text = "お誕生日おめでとう" * 100
    assert count(text) != count(text, Encoding.CL100K)
    assert (count(text), count(text, Encoding.CL100K)) == (
        count(text),
        count(text, Encoding.CL100K),
    )


def test_many_threads_count_the_same():
    texts = [f"{number} " * 2000 for number in range(32)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(count, texts * 2)) == [count(text) for text in texts] * 2


def test_importing_the_package_loads_no_encoding():
    code = "import sys, hotset.tokens; sys.exit('tiktoken' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
