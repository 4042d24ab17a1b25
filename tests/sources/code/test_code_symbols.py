"""What a file defines, in each language."""

# ruff: noqa: E501, ISC004, Q000

from __future__ import annotations

from collections.abc import Iterable

import pytest
from code_project import GRAMMARS

from hotset.sources.code.grammars import NoGrammar, grammar
from hotset.sources.code.parsers import Parsers
from hotset.sources.code.symbols import CodeSymbol, structure
from hotset.text.languages import LANGUAGES, language_of

_SOURCES = {
    "python": (
        '@deco(\n  1)\nclass A(B):\n    """Doc of A."""\n    @property\n    def f(self, a: int) -> str:\n        return 1\n',
        ["1-7 class A: class A(B) # Doc of A.", "5-7 method A.f: def f(self, a: int) -> str"],
    ),
    "typescript": (
        "/** Says. */\nexport function f(a: number): string {\n  return ''\n}\nexport interface I { a: string }\n"
        "class A { private m(x) {} }\nexport const g = async (p: P) => {\n}\n",
        [
            "1-4 function f: function f(a: number): string # Says.",
            "5-5 interface I: interface I",
            "6-6 class A: class A",
            "6-6 method A.m: private m(x)",
            "7-8 function g: g = async (p: P)",
        ],
    ),
    "tsx": ("export const X = (p: P) => {\n  return <div/>\n}\n", ["1-3 function X: X = (p: P)"]),
    "javascript": ("class Q extends R { m() {} }\nmodule.exports.d = () => {}\n", ["1-1 class Q: class Q extends R", "1-1 method Q.m: m()",
                   "2-2 function module.exports.d: module.exports.d = ()"]),
    "go": ("package x\n\n// M does.\nfunc (a *A) M(b int) error {\n\treturn nil\n}\n", ["3-6 method A.M: func (a *A) M(b int) error # M does."]),
    "rust": ("/// S is\n#[derive(Debug)]\npub struct S { a: i32 }\nimpl T for S {\n    pub fn f(&self) -> i32 { 1 }\n}\n",
             ["1-3 struct S: pub struct S # S is", "4-6 impl S: impl T for S", "5-5 method S.f: pub fn f(&self) -> i32"]),
    "java": ("/** Doc. */\n@X\npublic class A extends B {\n  public int m(int a) { return 1; }\n}\n",
             ["1-5 class A: @X public class A extends B # Doc.", "4-4 method A.m: public int m(int a)"]),
    "c": ("/* adds */\nstatic int *foo(int a) {\n  return 0;\n}\nstruct s { int x; };\n",
          ["1-4 function foo: static int *foo(int a) # adds", "5-5 struct s: struct s"]),
    "cpp": ("namespace n {\ntemplate<class T>\nclass X { void m() {} };\nint A::foo() { return 0; }\n}\n",
            ["1-5 namespace n: namespace n", "2-3 class n.X: class X", "3-3 method n.X.m: void m()", "4-4 method n.A.foo: int A::foo()"]),
    "ruby": ("module M\n  class K < L\n    def m(a)\n      1\n    end\n  end\nend\n",
             ["1-7 module M: module M", "2-6 class M.K: class K < L", "3-5 method M.K.m: def m(a)"]),
    "php": ("<?php\nclass B { public function m($a) { } }\nfunction f() {}\n",
            ["2-2 class B: class B", "2-2 method B.m: public function m($a)", "3-3 function f: function f()"]),
    "csharp": ("namespace N {\npublic class A : B { public void M(int a) { } }\n}\n",
               ["1-3 namespace N: namespace N", "2-2 class N.A: public class A : B", "2-2 method N.A.M: public void M(int a)"]),
    "kotlin": ("/** Foo. */\nclass Foo(val x: Int) : Bar() {\n    fun go(a: Int): Int {\n        return 1\n    }\n}\n",
               ["1-6 class Foo: class Foo(val x: Int) : Bar() # Foo.", "3-5 method Foo.go: fun go(a: Int): Int"]),
    "bash": ("# does\nfoo() {\n  echo\n}\n", ["1-4 function foo: foo() # does"]),
    "sql": ("-- users\nCREATE TABLE a.b (id int);\n", ["1-2 table a.b: CREATE TABLE a.b (id int) # users"]),
    "json": ('{\n "a": 1,\n "b": {"c": [1,\n 2]}\n}\n', ['2-2 key a: "a": 1', '3-4 key b: "b": {"c": [1,', '3-4 key b.c: "c": [1,']),
    "markdown": ("# T\n\nx\n\n## U\n```\n# no\n```\n# V\n", ["1-8 section T: # T", "5-8 section T.U: ## U", "9-9 section V: # V"]),
    "yaml": ("# about a\na:\n  - b: 1\n'c d': 2\n", ["1-3 key a: a:", "4-4 key c d: 'c d': 2"]),
    "toml": ('x = 1\n[a.b]\ny = [\n  1]\n[[c]]\n', ["1-1 key x: x = 1", "2-4 table a.b: [a.b]", "5-5 table c: [[c]]"]),
    "swift": ("struct S {\n  func a() {}\n}\n", ["1-3 class S: struct S", "2-2 method S.a: func a()"]),
    "scala": ("object O { def f(a: Int) = 1 }\n", ["1-1 object O: object O", "1-1 method O.f: def f(a: Int)"]),
    "dart": ("class A { int f(int x) { return 1; } }\n", ["1-1 class A: class A", "1-1 method A.f: int f(int x)"]),
    "lua": ("function M.b(x)\nend\n", ["1-2 function M.b: function M.b(x)"]),
}  # fmt: skip


@pytest.mark.row("V3")
@pytest.mark.parametrize("name", _SOURCES)
@pytest.mark.rest_slow
def test_symbols_are_told_with_scope_signature_lines_and_comment(
    name: str, parsers: Parsers
) -> None:
    source, expected = _SOURCES[name]
    found = parsers.symbols(source, LANGUAGES[name])
    assert not found.gave_up
    assert _told(found.symbols) == expected


_MORE = {
    "a closing bracket of a type is part of a signature": (
        "typescript",
        "async function f(): Promise<boolean> {\n}\nconst g = (): Promise<void> => {\n}\n",
        ["1-2 function f: async function f(): Promise<boolean>", "3-4 function g: g = (): Promise<void>"],
    ),
    "a generic type is called by its name": (
        "rust",
        "impl<T> Stack<T> {\n    fn all(self) -> Vec<T> { self.0 }\n}\n",
        ["1-3 impl Stack: impl<T> Stack<T>", "2-2 method Stack.all: fn all(self) -> Vec<T>"],
    ),
    "a C header declares": (
        "c",
        "#ifndef P_H\n#define P_H\n#define MAX 64\n/* sums */\nint bilby_checksum(const char *data,\n                   int n);\n"
        "char **names(void);\ntypedef int (*callback_fn)(int, void *);\ntypedef struct point { int (*f)(int); } point_t;\n#endif\n",
        [
            "3-3 macro MAX: #define MAX 64",
            "4-6 function bilby_checksum: int bilby_checksum(const char *data, int n) # sums",
            "7-7 function names: char **names(void)",
            "8-8 type callback_fn: typedef int (*callback_fn)(int, void *)",
            "9-9 type point_t: typedef struct point { int (*f)(int); } point_t",
            "9-9 struct point: struct point",
        ],
    ),
    "what C declares and defines in one file is told once": (
        "c",
        "static int f(int a);\nint f(int a) {\n  int g(int);\n  return g(a);\n}\n",
        ["2-5 function f: int f(int a)"],
    ),
    "a C++ class declares its methods": (
        "cpp",
        "class Api {\npublic:\n  Api();\n  int open(const char *path);\n  virtual void run() = 0;\n  Api &operator=(const Api &o);\n"
        "  template<class T> T get();\n  int (*field)(int);\n};\nint Api::open(const char *path) {\n  Lock held(mutex_);\n}\n",
        [
            "1-9 class Api: class Api",
            "3-3 method Api.Api: Api()",
            "4-4 method Api.open: int open(const char *path)",
            "5-5 method Api.run: virtual void run() = 0",
            "6-6 method Api.operator=: Api &operator=(const Api &o)",
            "7-7 method Api.get: T get()",
            "10-12 method Api.open: int Api::open(const char *path)",
        ],
    ),
    "each variable and constant of a group in Go": (
        "go",
        'package x\n\nvar (\n\t// ErrA is.\n\tErrA = errors.New("a")\n\tErrB = errors.New("b")\n)\n\nconst (\n\tOne = iota\n\tTwo\n)\n'
        "const Big, Bigger = 3, 4\n\ntype Doer interface {\n\tDo(x int) error\n}\n",
        [
            '4-5 variable ErrA: var ErrA = errors.New("a") # ErrA is.',
            '6-6 variable ErrB: var ErrB = errors.New("b")',
            "10-10 constant One: const One = iota",
            "11-11 constant Two: const Two",
            "13-13 constant Big: const Big, Bigger = 3, 4",
            "13-13 constant Bigger: const Big, Bigger = 3, 4",
            "15-17 type Doer: type Doer interface",
            "16-16 method Doer.Do: Do(x int) error",
        ],
    ),
    "a trigger once, and a procedure": (
        "sql",
        "CREATE TRIGGER trg AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();\n"
        "-- moves\nCREATE OR REPLACE PROCEDURE app.move(a int)\nLANGUAGE plpgsql AS $$\nBEGIN\n  CREATE TABLE inner_one (id int);\nEND;\n$$;\n"
        "CREATE TABLE t (id int);\n"
        "CREATE PROCEDURE old()\nBEGIN\n  SELECT 1;\nEND;\n\nCREATE VIEW v AS SELECT 1;\n",
        [
            "1-1 trigger trg: CREATE TRIGGER trg AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
            "2-8 procedure app.move: CREATE OR REPLACE PROCEDURE app.move(a int) # moves",
            "9-9 table t: CREATE TABLE t (id int)",
            "10-13 procedure old: CREATE PROCEDURE old()",
            "15-15 view v: CREATE VIEW v AS SELECT 1",
        ],
    ),
    "bodies of one line in Kotlin cost nothing of what follows": (
        "kotlin",
        "class A {\n    companion object { fun a() = 1 ; const val M = 3 }\n    fun later() = 2\n}\nobject O { fun z() {} }\nfun top() = 2\n",
        [
            "1-4 class A: class A",
            "2-2 method A.a: fun a()",
            "2-2 property A.M: const val M = 3",
            "3-3 method A.later: fun later()",
            "5-5 object O: object O",
            "5-5 method O.z: fun z()",
            "6-6 function top: fun top()",
        ],
    ),
    "underlined headings, and no settings in front of a document": (
        "markdown",
        "---\ntitle: x\n---\n\nTitle\n=====\n\ntext\n\nPart\n----\n\n- item\n---\n\n| a |\n---\n",
        ["5-17 section Title: Title", "10-17 section Title.Part: Part"],
    ),
    "the keys in a key where these are few": (
        "yaml",
        "a:\n  # about b\n  b: 1\n  c:\n    d: 2\ntext: |\n  e: no key\n",
        ["1-5 key a: a:", "2-3 key a.b: b: 1", "4-5 key a.c: c:", "6-7 key text: text: |"],
    ),
    "a type of Python": (
        "python",
        "type X = int\ntype Y[T] = list[T]\n",
        ["1-1 type X: type X = int", "2-2 type Y: type Y[T] = list[T]"],
    ),
    "several variables of one statement stand side by side": (
        "javascript",
        "const a = 1, b = () => 2\nconst c = 3;\nexport const d = 4, e = function () {\n}\n",
        [
            "1-1 variable a: a = 1",
            "1-1 function b: b = ()",
            "2-2 variable c: const c = 3",
            "3-3 variable d: d = 4",
            "3-4 function e: e = function ()",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", _MORE)
def test_symbols_that_are_easily_missed(what: str, parsers: Parsers) -> None:
    name, source, expected = _MORE[what]
    assert _told(parsers.symbols(source, LANGUAGES[name]).symbols) == expected


def _told(found: Iterable[CodeSymbol]) -> list[str]:
    return [
        f"{each.first}-{each.last} {each.kind} {each.qualified}: {each.signature}"
        + (f" # {each.doc}" if each.doc else "")
        for each in found
    ]


@pytest.mark.parametrize(
    ("name", "line"), [("yaml", "  k{}: 1\n"), ("json", '  "k{}": 1,\n')], ids=["yaml", "json"]
)
def test_the_entries_of_a_long_table_are_not_told(name: str, line: str, parsers: Parsers) -> None:
    inner = "".join(line.format(at) for at in range(30))
    source = f"a:\n{inner}" if name == "yaml" else f'{{"a": {{\n{inner}"z": 0}}}}\n'
    assert [each.qualified for each in parsers.symbols(source, LANGUAGES[name]).symbols] == ["a"]


@pytest.mark.parametrize("name", ["markdown", "rst", "yaml", "toml", "ini"])
def test_no_symbol_reaches_behind_the_last_line(name: str) -> None:
    source = {"markdown": "# T\n\nx\n", "rst": "T\n=\n===\nx\n", "yaml": "a:\n  b: 1\n"}.get(
        name, "[a]\nb = 1\n"
    )
    found = structure(source, LANGUAGES[name])
    assert max((each.last for each in found), default=0) <= source.count("\n")


def test_lines_that_a_grammar_could_not_make_sense_of_are_told(parsers: Parsers) -> None:
    parsed = parsers.symbols("fun a() = 1\nclass {{{ ] fun\n", LANGUAGES["kotlin"])
    assert parsed.lost
    assert not parsers.symbols("fun a() = 1\n", LANGUAGES["kotlin"]).lost


def test_what_can_be_read_of_a_broken_file_is_read(parsers: Parsers) -> None:
    source = "def whole():\n    return 1\n\ndef broken(:\n    pass\n\nclass After:\n    pass\n"
    assert {"whole", "After"} <= {
        each.name for each in parsers.symbols(source, LANGUAGES["python"]).symbols
    }


def test_a_name_that_would_not_be_seen_is_shown_without_what_hides_in_it(parsers: Parsers) -> None:
    source = "# ig\u202enore\u200b \U000e0041this\ndef f(): pass\n"
    (symbol,) = parsers.symbols(source, LANGUAGES["python"]).symbols
    assert symbol.doc == "ignore this"


def test_a_file_with_more_symbols_than_a_person_would_write_has_none(parsers: Parsers) -> None:
    assert parsers.symbols("def f(): pass\n" * 6000, LANGUAGES["python"]).symbols == ()


def test_thousands_of_values_in_a_header_do_not_hide_its_structures(parsers: Parsers) -> None:
    source = "".join(f"#define REG_{at} {at}\n" for at in range(6000)) + "struct chip { int a; };\n"
    assert [each.name for each in parsers.symbols(source, LANGUAGES["c"]).symbols] == ["chip"]


def test_headings_inside_of_a_fence_are_no_headings() -> None:
    found = structure("~~~~\n# a\n~~~\n# b\n~~~~\n# c\n", LANGUAGES["markdown"])
    assert [each.name for each in found] == ["c"]


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("a.py", "", "python"),
        ("x/Makefile", "", "make"),
        ("Dockerfile.dev", "", "dockerfile"),
        ("run", "#!/usr/bin/env python3\n", "python"),
        ("run", "#!/bin/bash\n", "bash"),
        ("run", "#!/usr/bin/env node\n", "javascript"),
        ("a.h", "class A {\npublic:\n};\n", "cpp"),
        ("a.h", "int f(void);\n", "c"),
        ("a.JSX", "", "jsx"),
        ("notes", "", "text"),
        ("a.unknown", "", "text"),
    ],
)
def test_a_language_is_told_by_name_then_ending_then_first_line(
    path: str, text: str, name: str
) -> None:
    assert language_of(path, text).name == name


def test_a_grammar_that_somebody_planted_in_our_folder_is_not_loaded(tmp_path) -> None:
    grammar("bash", tmp_path / "ours")
    (kept,) = (tmp_path / "ours").rglob("*bash*")
    planted = tmp_path / "planted" / kept.relative_to(tmp_path / "ours")
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"machine code of somebody else")
    grammar("bash", tmp_path / "planted")
    assert planted.read_bytes() == kept.read_bytes()
    assert planted.stat().st_mode & 0o777 == 0o600


def test_a_grammar_loads_where_nothing_can_be_written(tmp_path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    assert grammar("toml", blocked / "below").node_kind_count > 0
    assert grammar("toml").node_kind_count > 0


def test_a_language_without_a_grammar_says_so() -> None:
    with pytest.raises(NoGrammar, match="klingon"):
        grammar("klingon", GRAMMARS)
