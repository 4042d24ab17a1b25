"""Slices of a text: what was asked for, verbatim, within the budget."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given, settings, strategies as st

from hotset import tokens
from hotset.nouns.retrieval import END, JsonPath, Lines, Question, Regex, RowSlice, Symbol, Whole
from hotset.window.retrieval_tools import parse_call
from hotset.window.slice import cut
from tests.campaign import sample

ROOM = 2000
TEXT = "".join(f"line number {number} of the story\n" for number in range(1, 413))


def sliced(text: str, how, room: int = ROOM):
    made = cut(text, how, room, tokens.count)
    assert tokens.count(made.text.encode()) <= room
    return made


def test_a_text_that_fits_comes_back_byte_for_byte():
    text = "a\r\n\tb  \n\n\x0c c"

    assert sliced(text, Whole()).text == text


@pytest.mark.row("V6")
def test_a_text_that_does_not_fit_says_what_is_there_and_how_to_go_on():
    made = sliced(TEXT, Whole(), 200)
    shown = made.text.count("\n") + 1

    assert TEXT.startswith(made.text + "\n")
    assert not made.whole
    assert made.note.startswith(f'lines 1-{shown} of 412; more: lines="{shown + 1}-{2 * shown}"')


def test_going_on_as_the_note_says_brings_back_every_line():
    seen, how = [], Whole()
    for _ in range(100):
        made = sliced(TEXT, how, 300)
        seen += [
            line.partition("\t")[2] if "\t" in line else line for line in made.text.split("\n")
        ]
        following = re.search(r'lines="(\d+)-', made.note)
        if len(seen) >= 412:
            break
        assert made.whole or following
        how = Lines(((len(seen) + 1, END),))

    assert seen == TEXT.splitlines()


def test_lines_come_with_their_numbers():
    made = sliced(TEXT, Lines(((5, 6), (400, 401))))

    assert made.text == (
        "5\tline number 5 of the story\n6\tline number 6 of the story\n...\n"
        "400\tline number 400 of the story\n401\tline number 401 of the story"
    )
    assert (made.whole, made.note) == (True, "lines 5-6,400-401 of 412")


def test_lines_that_are_not_there_are_told():
    assert sliced(TEXT, Lines(((500, 600),))).note == "no such lines; it has lines 1-412"


def test_a_text_with_numbers_of_its_own_keeps_them_and_is_found_by_them():
    numbered = "".join(f"{number:>6}\tx = {number}\n" for number in range(500, 700))

    assert sliced(numbered, Lines(((650, 651),))).text == "   650\tx = 650\n   651\tx = 651"
    assert (
        sliced(numbered, Lines(((3, 3),))).text == "   502\tx = 502"
    )  # as the marks of an excerpt count


def test_a_heading_above_a_numbered_file_hides_no_line():
    numbered = "<file>\n" + "".join(f"{number:>6}→x = {number}\n" for number in range(1, 100))

    shown = sliced(numbered, Lines(((50, 52),))).text

    assert "    50→x = 50" in shown
    assert "    52→x = 52" in shown


def test_a_line_that_is_too_long_is_cut_and_told():
    made = sliced("x" * 100_000, Lines(((1, 1),)), 100)

    assert made.text
    assert made.note == (
        'line 1.1 of 1 (line 1 has pieces 1.1-1.200 of 500 characters); more: lines="1.2-1.200"'
    )


LONG = " ".join(f"word{number}" for number in range(9000))


def asked(lines: str):
    return parse_call("retrieve_context", json.dumps({"id": "c1", "lines": lines}).encode()).how


@pytest.mark.row("V6")
@pytest.mark.parametrize("how", [Whole(), Lines(((1, 1),))])
def test_going_on_as_the_note_says_brings_back_all_of_one_long_line(how):
    seen = ""
    while True:
        made = sliced(LONG, how, 1500)
        seen += made.text
        if len(seen) >= len(LONG):
            break
        begins = re.search(r'lines="(1\.\d+)-', made.note)
        assert begins
        how = asked(f"{begins[1]}-")

    assert seen == LONG


def test_a_piece_of_a_long_line_has_the_same_number_at_every_call():
    for room in (400, 1500):
        assert sliced(LONG, asked("1.7"), room).text == LONG[3000:3500]


def test_a_long_line_among_others_goes_on_behind_what_was_cut_and_so_do_the_lines_below():
    text = f"first\n{LONG}\nlast\n"
    made = sliced(text, Lines(((1, 3),)), 700)

    assert made.text.startswith("1\tfirst\n2.1\tword0 word1")
    named = re.search(r'more: lines="2\.(\d+)-3"', made.note)
    assert named
    assert sliced(text, asked(f"2.{named[1]}-3"), 700).text.startswith(
        f"2.{named[1]}\t{LONG[(int(named[1]) - 1) * 500 :][:500]}"
    )
    assert sliced(text, asked(f"2.{len(LONG) // 500}-3")).text.endswith(f"{LONG[-20:]}\n3\tlast")


def test_what_is_too_large_for_a_small_answer_says_how_large_one_must_be():
    made = sliced("words of a line " * 100, Lines(((1, 1),)), 60)

    named = re.search(r'all: lines="1", max_tokens=(\d+)', made.note)
    assert named
    assert tokens.count(b"words of a line " * 100) < int(named[1]) < 1000


def test_pieces_that_are_not_there_are_told():
    assert (
        sliced(LONG, asked("1.900")).note
        == f"no such lines; it has one line, in pieces 1.1-1.{-(-len(LONG) // 500)}"
    )
    assert sliced(LONG, Lines(((2, 5),))).note.startswith(
        "no such lines; it has one line, in pieces 1.1-1."
    )


def test_finds_in_a_long_line_say_which_piece_they_are_in():
    at = LONG.index("word7000")

    assert sliced(LONG, Regex("word7000")).text.startswith(f"1.{(at - 200) // 500 + 1}\t...")
    assert f"1.{at // 500 + 1}\t..." in sliced(LONG, Question('"word7000"')).text


def test_one_line_is_told_as_one():
    assert sliced(TEXT, Lines(((7, 7),))).note == "line 7 of 412"
    assert sliced("a,b\n1,2\n3,4\n", RowSlice(((2, 2),))).note == "row 2 of 2"


def test_a_regex_that_cannot_be_read_is_told_as_it_was_given():
    note = sliced(TEXT, Regex("(unclosed")).note

    assert "(unclosed" in note
    assert "(?m)" not in note


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("$.data[5:400]", r"\$\.data\[(\d+):400\]"),
        ("data[*].name", r"\$\.data\[(\d+):\]\.name"),
        ("$", r"\$\[(\d+):\]"),
        ("$[100:]", r"\$\[(\d+):\]"),
        ("$.long", r'rest: lines="1\.\d+-1\.\d+"'),
    ],
)
def test_values_that_did_not_fit_say_the_path_that_goes_on(path, more):
    rows = [{"id": number, "name": f"the name of {number}"} for number in range(500)]
    text = json.dumps(
        {"data": rows, "long": LONG, **{f"key_{number}": number for number in range(900)}}
    )

    assert re.search(more, sliced(text, JsonPath(path), 300).note)


def test_rows_bring_the_header_along():
    table = "id,name\n" + "".join(f'{number},"n {number}"\n' for number in range(1, 501))

    assert (
        sliced(table, RowSlice(((10, 11), (500, 900)))).text
        == 'id,name\n10,"n 10"\n11,"n 11"\n500,"n 500"'
    )


def test_a_row_with_a_line_end_in_quotes_is_one_row():
    assert sliced('a,b\n1,"x\ny"\n2,z\n', RowSlice(((1, 1),))).text == 'a,b\n1,"x\ny"'


def test_rows_of_a_drawn_table_stand_below_its_rule():
    assert (
        sliced("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", RowSlice(((2, 2),))).text
        == "| a | b |\n|---|---|\n| 3 | 4 |"
    )


def test_rows_of_an_array_are_its_elements_also_when_it_is_wrapped():
    assert (
        sliced('{"items": [{"a": 1.50}, {"a": 2}], "next": null}', RowSlice(((1, 1),))).text
        == '{"a": 1.50}'
    )


def test_rows_that_do_not_fit_are_told():
    table = "id,name\n" + "".join(f"{number},n\n" for number in range(1, 501))
    made = sliced(table, RowSlice(((1, 500),)), 100)

    assert not made.whole
    assert re.fullmatch(r'rows 1-(\d+) of 500; more: rows="\d+-500"', made.note)


DOCUMENT = (
    '{"a": {"b": [10, 11.50, {"c d": "é", "deep": {"x": 1}}]}, '
    '"n": 12345678901234567890123, '
    '"list": [[1],[2],[3]]}'
)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("$.a.b[1]", "11.50"),
        ("a.b[-1]['c d']", '"é"'),
        ("$.n", "12345678901234567890123"),
        ("$.list[1:]", "$.list[1]: [2]\n$.list[2]: [3]"),
        ("$.list[*][0]", "$.list[0][0]: 1\n$.list[1][0]: 2\n$.list[2][0]: 3"),
        ("$..x", "1"),
        ("$.a.b.2.deep", '{"x": 1}'),
        ('$["a"]["b"][0]', "10"),
        ("$", DOCUMENT),
    ],
)
def test_values_come_back_as_they_were_written(path, text):
    assert sliced(DOCUMENT, JsonPath(path)).text == text


@pytest.mark.parametrize(
    ("path", "note"),
    [
        ("$.z", "no z in $; keys: a, n, list"),
        ("$.list[7]", "no such element in $.list: it is an array of 3"),
        ("$.n.x", "no x in $.n: it is 12345678901234567890123"),
        ("$.a[?(@.x>1)]", "invalid path at '[?(@.x>1)]'"),
        ("$.__class__", "no __class__ in $"),
    ],
)
def test_a_path_that_leads_nowhere_is_answered_with_what_is_there(path, note):
    made = sliced(DOCUMENT, JsonPath(path))

    assert made.text == ""
    assert note in made.note


def test_json_is_found_behind_a_heading_and_in_lines():
    assert sliced('exit code 0\n{"a": 1}\n', JsonPath("$.a")).text == "1"
    assert sliced('{"a": 1}\n{"a": 2}\n', JsonPath("$[*].a")).text == "$[0].a: 1\n$[1].a: 2"
    assert "not JSON" in sliced("plain words", JsonPath("$.a")).note


def test_an_object_that_does_not_fit_is_told_member_by_member():
    document = '{"small": 1, "large": [' + ",".join(["123456"] * 500) + "]}"
    made = sliced(document, JsonPath("$"), 100)

    assert made.text == "$.small: 1\n$.large: (array of 500)"


def test_elements_that_do_not_fit_are_told_with_the_path_to_the_rest():
    made = sliced("[" + ",".join(f'{{"id":{n}}}' for n in range(300)) + "]", JsonPath("$"), 100)
    shown = made.text.count("\n") + 1

    assert made.note == f'values 1-{shown} of 300; more: path="$[{shown}:]"'


def test_matches_come_with_the_lines_around_them():
    made = sliced(TEXT, Regex(r"number 2\d\d of|number 7 "))

    assert made.text.startswith("5\tline number 5 of the story\n")
    assert "\n9\tline number 9 of the story\n...\n198\t" in made.text


def test_a_pattern_sees_line_ends_as_the_ends_of_lines():
    assert sliced("one\ntwo\nthree", Regex("^two$")).note == "1 match: lines 1-3 of 3"
    assert sliced("one\ntwo\nthree", Regex(r"one\ntwo")).note == "1 match: lines 1-3 of 3"


@pytest.mark.parametrize(
    "pattern", ["(", "(?=x)", r"(x)\1", "x{1,100000}", r"(\pL{1,30}\s*){1,30}q"]
)
def test_a_pattern_that_cannot_be_used_is_told(pattern):
    assert "invalid regex" in sliced(TEXT, Regex(pattern)).note


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        ("(x+x+)+y", "x"),
        (r"(a|b)*a(a|b){500}c", "abba"),
        (r"(?s)a.*z|a", "a\n"),
        (r"(a*)*b", "a"),
        ("(.*)(.*)(.*)z", "a b "),
    ],
)
def test_no_pattern_takes_long(pattern, unit):
    begun = time.process_time()

    sliced(unit * (1_000_000 // len(unit)), Regex(pattern))

    assert (
        time.process_time() - begun < 5
    )  # a fraction of a second; a backtracking engine would not come back


def test_matches_in_a_file_of_one_line_come_with_the_characters_around_them():
    made = sliced("a;" * 50_000 + "function needle(){}" + "b;" * 50_000, Regex("needle"))

    assert "function needle(){}" in made.text
    assert len(made.text) < 500
    assert made.whole


CODE = '''import re

LIMIT = 10  # why


class Window:
    """A window."""

    def plan(self, pages):
        """Chooses pages."""
        text = """
not indented }
"""

        return [page for page in pages if page.hot]

    @cached
    def size(
        self,
    ) -> int:
        return 1


def plan(secret_key):
    return encrypt(secret_key)
'''


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("Window", 6, 21),
        ("Window.plan", 9, 15),
        ("size", 17, 21),
        ("LIMIT", 3, 3),
        ("def plan(secret_key)", 9, 25),
    ],
)
def test_a_definition_comes_with_its_whole_body_in_python(name, first, last):
    shown = sliced(CODE, Symbol(name)).text.split("\n")

    assert shown[0].startswith(f"{first}\t")
    assert shown[-1].startswith(f"{last}\t")


def test_a_method_is_told_from_a_function_of_the_same_name():
    assert "encrypt" not in sliced(CODE, Symbol("Window.plan")).text
    assert sliced(CODE, Symbol("plan")).note.startswith("2 definitions: ")


OTHERS = {
    "go": (
        "Add",
        (
            "// Add adds.\nfunc (s *Store) Add(a int,\n\tb int) (int, error) {\n\tif a > 0 {\n"
            '\t\treturn b\n\t}\n\treturn f("}{")\n}'
        ),
        "\n\nfunc Other() {\n\tAdd(1, 2)\n}\n",
    ),
    "typescript": (
        "getThing",
        "  async getThing(id: string): Promise<X> {\n    return {a: 1};\n  }",
        "\n  other() { this.getThing('x'); }\n}\n",
    ),
    "arrow": (
        "handler",
        "export const handler = async (event) => {\n  return event;\n};",
        "\nhandler(1);\n",
    ),
    "rust": (
        "parse",
        "#[inline]\npub(crate) fn parse<'a>(s: &'a str) -> Result<T> {\n    s.parse()\n}",
        "\n\nfn other() {}\n",
    ),
    "c": (
        "add",
        "static int add(int a, int b)\n{\n    return a + b;\n}",
        "\n\nint main(void)\n{\n    return add(1, 2);\n}\n",
    ),
    "java": (
        "run",
        "    @Override\n    public void run() throws X {\n        go();\n    }",
        "\n    void b() { run(); }\n}\n",
    ),
    "ruby": (
        "greet",
        "  def greet(name)\n    if name\n      puts name\n    end\n  end",
        "\n  def other\n  end\nend\n",
    ),
    "shell": ("deploy", "deploy() {\n  echo hi\n}", "\ndeploy\n"),
    "sql": (
        "users",
        "CREATE TABLE IF NOT EXISTS users (\n  id INT,\n  name TEXT\n);",
        "\nSELECT * FROM users;\n",
    ),
    "yaml": ("jobs", "jobs:\n  build:\n    runs-on: x", "\nother: 1\n"),
    "toml": ("tool.ruff", "[tool.ruff]\nline-length = 130\n", "[tool.mypy]\nstrict = true\n"),
    "markdown": (
        "Install",
        "## Install it\n\npip install x\n\n### More\n\nwords\n",
        "## Use\n\nwords\n",
    ),
}


@pytest.mark.parametrize("language", OTHERS)
def test_a_definition_comes_with_its_whole_body_in_other_languages(language):
    name, wanted, after = OTHERS[language]
    text = f"first line\n{wanted}{after}"

    made = sliced(text, Symbol(name))
    numbered = made.text or made.note

    assert [line.partition("\t")[2] for line in numbered.split("\n")] == wanted.removesuffix(
        "\n"
    ).split("\n")


def test_a_definition_is_found_in_an_excerpt_with_line_numbers():
    numbered = "\n".join(
        f"{number:>6}\t{line}" for number, line in enumerate(CODE.split("\n"), 100)
    )

    shown = sliced(numbered, Symbol("Window.size")).text

    assert shown.startswith("   116\t    @cached\n")
    assert shown.endswith("   120\t        return 1")


def test_a_name_that_nothing_has_is_answered_with_names_that_are_there():
    assert "defined here: Window" in sliced(CODE, Symbol("Windows")).note
    assert "mentioned in lines 25" in sliced(CODE, Symbol("encrypt")).note


def test_a_question_brings_the_function_that_answers_it():
    made = sliced(CODE, Question("where are secret keys encrypted?"))

    assert "24\tdef plan(secret_key):\n25\t    return encrypt(secret_key)" in made.text
    assert "Chooses pages" not in made.text


def test_a_question_is_answered_in_the_order_of_the_text():
    story = "\n\n".join(
        f"chapter {n}\n\n"
        + ("the dragon slept in its cave\n" if n in (3, 17) else "nothing much\n") * 4
        for n in range(30)
    )
    shown = [
        int(line.split("\t")[0])
        for line in sliced(story, Question("dragons sleeping in caves")).text.split("\n")
        if line != "..."
    ]

    assert shown == sorted(shown)


def test_a_question_with_no_word_in_the_text_is_told():
    assert "none of these words: unicorn" in sliced(CODE, Question("any unicorns?")).note


def test_a_question_finds_its_passage_in_a_file_of_one_line():
    made = sliced(
        "lorem ipsum " * 10_000 + "the password rotates daily " + "dolor sit " * 10_000,
        Question("password rotation"),
        500,
    )

    assert "the password rotates daily" in made.text


@pytest.mark.parametrize(
    "unit",
    [
        "/*",
        '"\\"',
        "class x {\n",
        "def x():\n",
        "-",
        "-|",
        "a x(",
        "{[",
        " ",
        "x: ",
        "(((",
        "\t1\t\n",
        "# x\n",
        "x,",
        "'\n",
        "[x]\n",
    ],
)
@pytest.mark.parametrize(
    "how",
    [Symbol("x"), RowSlice(((1, 3),)), JsonPath("$..x"), Question("x class def")],
    ids=lambda how: type(how).__name__,
)
@pytest.mark.rest_slow
def test_no_text_takes_long(unit, how):
    text = unit * (400_000 // len(unit)) + "x"
    begun = time.process_time()

    sliced(text, how)

    assert (
        time.process_time() - begun < 3
    )  # a fraction of a second; a quadratic pattern would take minutes


_hows = st.one_of(
    st.just(Whole()),
    st.lists(st.tuples(st.integers(1, 60), st.integers(60, 90)), min_size=1, max_size=3).map(
        lambda spans: Lines(tuple(spans))
    ),
    st.lists(st.tuples(st.integers(1, 9), st.integers(9, 30)), min_size=1, max_size=2).map(
        lambda spans: RowSlice(tuple(spans))
    ),
    st.text(max_size=12).map(JsonPath),
    st.sampled_from(["foo", "a.b", "x", ""]).map(Symbol),
    st.sampled_from(["a", ".", "^$", r"\s+", "(?i)É|b", "x*"]).map(Regex),
    st.sampled_from(["foo bar", "x", "été", "\u65e5\u672c\u8a9e"]).map(Question),
)
_texts = st.one_of(
    st.text(max_size=400),
    st.text(alphabet='ab x\n\t{}[]":,1#é\r\u0130', max_size=800),
    st.lists(
        st.sampled_from(
            ["def foo(x):", "    return x", "", "class x {", "}", "a,b,c", "# foo", "x" * 300]
        ),
        max_size=80,
    ).map("\n".join),
)


@settings(max_examples=sample(150, 400), deadline=None)
@given(_texts, _hows, st.integers(1, 200))
@pytest.mark.slow
def test_no_slice_is_larger_than_its_budget_and_every_cut_is_told(text, how, room):
    made = sliced(text, how, room)

    assert made.whole or made.note
    assert made.text or not text or made.note
    if isinstance(how, Whole) and made.whole:
        assert made.text == text


@settings(max_examples=sample(80, 200), deadline=None)
@given(_texts.filter(lambda text: "..." not in text), st.integers(1, 60))
def test_lines_are_verbatim(text, first):
    made = cut(text, Lines(((first, first + 5),)), 10_000, tokens.count)

    assert all(line.partition("\t")[2] in text or line in text for line in made.text.split("\n"))


def test_a_megabyte_is_sliced_in_milliseconds():
    tokens.warm()
    text = (CODE * 3000)[:1_000_000] + "\ndef only_here(x):\n    return x\n"
    for how in (
        Whole(),
        Lines(((9000, 9100),)),
        RowSlice(((1, 9),)),
        Symbol("only_here"),
        Regex("only_here"),
        Question("only_here"),
    ):
        begun = time.process_time()
        assert sliced(text, how).text
        assert time.process_time() - begun < 0.5, how  # 5 to 25 ms when nothing else runs


SECTIONS = [
    (
        f"<h2 id='s{number}'>Section {number}: <em>Limits</em> &amp; Auth</h2>\n<p>The limit is "
        f"{number * 37}.</p>"
    )
    for number in range(40)
]
PAGE = (
    "<html><head><title>Guide</title></head>\n<body><h1>All of it</h1>\n"
    + "\n".join(SECTIONS)
    + "\n<h1>Index</h1></body></html>"
)


@pytest.mark.parametrize("page", [PAGE, PAGE.replace("\n", "")], ids=["laid out", "on one line"])
@pytest.mark.parametrize("name", ["Section 12: Limits & Auth", "section 12:", "s12", "#s12"])
def test_a_section_of_a_page_is_found_by_its_heading_or_its_anchor(page, name):
    shown = sliced(page, Symbol(name)).text

    assert "The limit is 444." in shown
    assert "Section 13" not in shown
    assert "The limit is 407." not in shown


def test_a_heading_that_fits_several_sections_brings_all_of_them_and_the_title_is_one():
    made = sliced(PAGE.replace("\n", ""), Symbol("Limits"), 400)

    assert made.note.startswith("40 sections: ")
    assert re.search(r'; more: lines="1\.\d+-1\.\d+"$', made.note)
    assert sliced(PAGE.replace("\n", ""), Symbol("Guide")).text == "<title>Guide</title>"


def test_a_long_section_on_one_line_says_how_to_go_on():
    page = f"<html><body><h2>Terms</h2><p>{LONG}</p><h2>Other</h2></body></html>"
    made = sliced(page, Symbol("Terms"), 500)
    named = re.search(r'rest: lines="(1\.(\d+)-[^"]+)"', made.note)

    assert made.text.startswith("<h2>Terms</h2>")
    assert named
    assert sliced(page, asked(named[1])).text in page
    assert made.text[-30:] in made.text + sliced(page, asked(named[1])).text


def test_an_element_is_found_by_its_id_with_all_that_stands_in_it():
    page = '<div id="a"><div>one</div><div>two</div></div><div id="b">three</div>'

    assert sliced(page, Symbol("a")).text == page
    long = page.replace("one", "one " * 600)
    assert sliced(long, Symbol("b")).text == '<div id="b">three</div>'
    assert sliced(long, Symbol("a")).text.endswith("two</div></div>")


def test_a_heading_that_is_not_there_names_those_that_are():
    assert "defined here: Guide, All of it" in sliced(PAGE, Symbol("zzzzzz")).note
