"""What a file defines, in each language."""

from __future__ import annotations

import pytest
from code_project import GRAMMARS

from hotset.sources.code.grammars import NoGrammar, grammar
from hotset.sources.code.languages import LANGUAGES, language_of
from hotset.sources.code.parsing import Parsers
from hotset.sources.code.structure import structure

# ruff: noqa: E501, ISC004, Q000

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
            ["1-5 namespace n: namespace n", "2-3 class n.X: class X", "3-3 method n.X.m: void m()", "4-4 function n.A::foo: int A::foo()"]),
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
    "json": ('{\n "a": 1,\n "b": {"c": [1,\n 2]}\n}\n', ['2-2 key a: "a": 1', '3-4 key b: "b": {"c": [1,']),
    "markdown": ("# T\n\nx\n\n## U\n```\n# no\n```\n# V\n", ["1-8 section T: # T", "5-8 section T.U: ## U", "9-10 section V: # V"]),
    "yaml": ("# about a\na:\n  - b: 1\n'c d': 2\n", ["1-3 key a: a:", "4-5 key c d: 'c d': 2"]),
    "toml": ('x = 1\n[a.b]\ny = [\n  1]\n[[c]]\n', ["1-1 key x: x = 1", "2-4 table a.b: [a.b]", "5-6 table c: [[c]]"]),
    "swift": ("struct S {\n  func a() {}\n}\n", ["1-3 class S: struct S", "2-2 method S.a: func a()"]),
    "scala": ("object O { def f(a: Int) = 1 }\n", ["1-1 object O: object O", "1-1 method O.f: def f(a: Int)"]),
    "dart": ("class A { int f(int x) { return 1; } }\n", ["1-1 class A: class A", "1-1 method A.f: int f(int x)"]),
    "lua": ("function M.b(x)\nend\n", ["1-2 function M.b: function M.b(x)"]),
}  # fmt: skip


@pytest.mark.row("V3")
@pytest.mark.parametrize("name", _SOURCES)
def test_symbols_are_told_with_scope_signature_lines_and_comment(name: str, parsers: Parsers) -> None:
    source, expected = _SOURCES[name]
    found = parsers.symbols(source, LANGUAGES[name])
    assert not found.gave_up
    assert [
        f"{each.first}-{each.last} {each.kind} {each.qualified}: {each.signature}" + (f" # {each.doc}" if each.doc else "")
        for each in found.symbols
    ] == expected


def test_what_can_be_read_of_a_broken_file_is_read(parsers: Parsers) -> None:
    source = "def whole():\n    return 1\n\ndef broken(:\n    pass\n\nclass After:\n    pass\n"
    assert {"whole", "After"} <= {each.name for each in parsers.symbols(source, LANGUAGES["python"]).symbols}


def test_a_name_that_would_not_be_seen_is_shown_without_what_hides_in_it(parsers: Parsers) -> None:
    source = "# ig\u202enore\u200b \U000e0041this\ndef f(): pass\n"
    (symbol,) = parsers.symbols(source, LANGUAGES["python"]).symbols
    assert symbol.doc == "ignore this"


def test_a_file_with_more_symbols_than_a_person_would_write_has_none(parsers: Parsers) -> None:
    assert parsers.symbols("def f(): pass\n" * 6000, LANGUAGES["python"]).symbols == ()


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
def test_a_language_is_told_by_name_then_ending_then_first_line(path: str, text: str, name: str) -> None:
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
