"""Forms that read well: results as the tools of real clients print them, and what a reader of
their excerpt has to find in it."""

from __future__ import annotations

import json
import re

import pytest

from hotset.dialects.parts import kind_of_result
from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Kind
from hotset.window.birth import shorten_alone, strip_numbers
from hotset.window.slice.lines import Text

SMALL = Knobs(window=16_000)


def source(functions: int, mark: str = "step") -> list[str]:
    lines = ['"""Steps of an order."""', "", "import json", "from pathlib import Path", ""]
    for number in range(functions):
        lines += [
            f"def {mark}_{number}(order: dict[str, int], limit: int = {number + 3}) -> int:",
            f"    total = order['price'] * order['count'] + {number * 17}",
            f"    if total > limit * {number + 100}:",
            f"        raise ValueError('order {number} is too large: ' + str(total))",
            "    return total - limit",
            "",
        ]
    return lines


def shown(text: str, knobs: Knobs | None = None, *, tool: str = "bash", **arguments: object) -> str:
    """What a model sees of a result."""
    content = text.encode()
    given = json.dumps(arguments).encode()
    return shorten_alone(content, tool, given, knobs or Knobs()) or text


def swe_agent(lines: list[str], first: int, last: int, *, edited: bool = False) -> str:
    """A window of SWE-agent's editor."""
    frame = f"[File: /testbed/shop/steps.py ({len(lines)} lines total{' after edit' * edited})]"
    above = [f"({first - 1} more lines above)"] if first > 1 else []
    return "\n".join(
        [
            frame,
            *above,
            *(f"{number}:{lines[number - 1]}" for number in range(first, last + 1)),
            f"({len(lines) - last} more lines below)",
            *(["File updated. Please review the changes and make sure they are correct."] * edited),
            "(Open file: /testbed/shop/steps.py)",
            "(Current directory: /testbed)",
            "bash-$",
        ]
    )


def test_an_editor_that_shows_where_it_edited_keeps_the_edited_lines():
    lines = source(120)
    text = swe_agent(lines, 250, 349, edited=True)
    called = "edit 298:300\n" + "\n".join(lines[297:300]) + "\nend_of_edit"

    form = shown(text, SMALL, command=called)

    assert len(form) < len(text)
    assert all(f"{number}:{lines[number - 1]}" in form for number in range(298, 301))


@pytest.mark.parametrize("called", [{"command": "goto 310"}, {"line_number": 310}])
def test_an_editor_that_goes_to_a_line_keeps_that_line(called):
    lines = source(120)
    text = swe_agent(lines, 261, 360)

    form = shown(text, SMALL, tool="goto", **called)

    assert f"310:{lines[309]}" in form


def test_a_window_of_an_editor_is_a_file_and_not_output():
    text = swe_agent(source(160), 250, 379)

    assert len(text) > Knobs().limit.over
    assert shown(text, command="goto 300") == text


def test_a_search_of_folders_keeps_the_files_that_it_found():
    found = [f"/testbed/django/contrib/app_{number}/models.py" for number in range(150)]
    text = "\n".join(
        [
            'Found 482 matches for "get_queryset" in /testbed/django:',
            *(f"{path} ({number % 7 + 1} matches)" for number, path in enumerate(found)),
            'End of matches for "get_queryset" in /testbed/django',
        ]
    )

    form = shown(text, tool="search_dir", search_term="get_queryset", dir="/testbed/django")

    assert 'Found 482 matches for "get_queryset"' in form
    assert sum(path in form for path in found) > 30


def _grep_context(count: int) -> str:
    groups = []
    for number in range(count):
        path, at = f"src/server/handlers/route_{number}.ts", 40 + number
        groups.append(
            "\n".join(
                [
                    f"{path}-{at - 2}-  const started = Date.now();",
                    f"{path}-{at - 1}-  log.debug('request came in', number);",
                    f"{path}:{at}:  return await sendReply(context, {number});",
                    f"{path}-{at + 1}-}}",
                    f"{path}-{at + 2}-",
                ]
            )
        )
    return "\n--\n".join(groups)


@pytest.mark.parametrize(
    ("files", "command"),
    [(True, "grep -rn -C 2 sendReply src"), (False, "grep -n -C 2 sendReply src/all.ts")],
)
def test_a_search_with_context_shows_what_it_was_for(files, command):
    text = _grep_context(40)
    if not files:
        text = re.sub(r"src/server/handlers/route_\d+\.ts[-:]", "", text)

    form = shown(text, command=command)

    hits = [line for line in text.split("\n") if "sendReply" in line]
    under = [re.sub(r"^src[^:]*:", "", line) for line in hits]  # the file's name stands above them
    assert sum(line in form.split("\n") for line in under) >= 20
    assert not files or sum(line.partition(":")[0] in form.split("\n") for line in hits) >= 20


def test_the_name_of_a_file_stands_once_above_what_was_found_in_it():
    text = "\n".join(
        f"packages/core/src/evaluation/part_{n // 12}.ts:{n * 3 + 1}:  const limit{n} = load({n});"
        for n in range(240)
    )

    form = shown(text, command="rg -n 'load\\(' packages").split("\n")

    heading, found = "", []
    for line in form:
        heading = line if line.startswith("packages/") else heading
        found += [f"{heading}:{line}"] if re.match(r"\d+:", line) else []
    assert len(found) > 45
    assert [line for line in found if line not in text.split("\n")] == []
    assert len([line for line in form if line.startswith("packages/")]) == 20


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"filePath": "/repo/src/steps.py"}),
        ("read_file", {"target_file": "src/steps.py", "should_read_entire_file": True}),
        ("read_file", {"absolute_path": "/repo/src/steps.py"}),
        ("open", {"path": "src/steps.py", "line_number": 1}),
        ("fetch_source", {"file_name": "src/steps.py", "start_line": 1, "end_line": 700}),
    ],
)
def test_a_file_that_a_tool_reads_is_shown_whole(tool, arguments):
    text = "\n".join(source(100))
    given = json.dumps(arguments).encode()

    assert len(text) > 20_000
    assert kind_of_result(tool, given) is Kind.FILE
    assert shown(text, tool=tool, **arguments) == text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delete_file", {"path": "src/steps.py"}),
        ("edit", {"filePath": "a.py", "oldString": "a", "newString": "b"}),
        ("grep", {"path": "src/steps.py", "pattern": "def "}),
        ("list_dir", {"path": "src"}),
        ("write", {"filePath": "a.py", "content": "x"}),
    ],
)
def test_what_only_names_a_file_does_not_read_it(tool, arguments):
    assert kind_of_result(tool, json.dumps(arguments).encode()) is Kind.TOOL_RESULT


NUMBERED = {
    "1: x": "{n}: {line}",
    "1:x": "{n}:{line}",
    "00001| x": "{n:05}| {line}",
    "L1: x": "L{n}: {line}",
    "1|x": "{n}|{line}",
    "1→x": "{n:6}→{line}",
    "1\\tx": "{n:6}\t{line}",
}


@pytest.mark.parametrize("style", NUMBERED)
@pytest.mark.parametrize("first", [1, 400])
@pytest.mark.parametrize("frame", [True, False])
def test_lines_have_one_count_however_their_numbers_are_printed(style, first, frame):
    lines = source(150)
    printed = [NUMBERED[style].format(n=n, line=line) for n, line in enumerate(lines, first)]
    text = "\n".join(["<file>", *printed, "</file>"] if frame else printed)

    form = shown(text, tool="read", filePath="a.py")

    own = Text(text)
    gaps = [
        (int(low), int(high or low)) for low, high in re.findall(r"… lines? (\d+)(?:-(\d+))?", form)
    ]
    gaps += [(int(a), int(b)) for a, b in re.findall(r'lines="(\d+)-(\d+)"', form)]
    assert gaps
    missing = "\n".join(lines[at - first] for low, high in gaps for at in range(low, high + 1))
    assert all(line in form or line in missing for line in lines)
    for low, high in gaps:  # what a mark names is what a call with its numbers brings back
        place = own.resolve_lines(low, high)
        assert place is not None
        brought = "\n".join(own.bare[place[0] - 1 : place[1]])
        assert "\n".join(lines[low - first : high - first + 1]) in brought
    assert shown("\n".join(printed[:30]), tool="read", filePath="a.py").count(f"{first + 8}") <= 1


def test_numbers_stay_where_a_space_may_be_the_file_s_own():
    inside = [f"    call({n})" for n in range(40)]

    assert strip_numbers("\n".join(f"{n}:{line}" for n, line in enumerate(inside, 7))) is None


def test_colours_of_a_terminal_are_no_part_of_a_name():
    text = "\n".join(
        f"\x1b[32m[Nest] {n}  - \x1b[39m\x1b[32mLOG\x1b[39m [\x1b[38;5;3mInstanceLoader] "
        f"\x1b[32mTypeOrmModule{chr(65 + n % 26)}{n} dependencies initialized\x1b[39m {n * n}ms"
        for n in range(200)
    )

    form = shown(text, command="npm run start")

    assert "TypeOrmModule" in form
    assert not re.search(r"\d+mTypeOrm|\x1b", form)


def test_every_path_in_a_form_is_a_path_of_the_original():
    paths = [
        path
        for n in range(120)
        for path in (
            f"/srv/app_{n}/config/settings.py",
            f"./tools_{n}/run.sh",
            f"~/notes_{n}/todo.md",
            f"@scope/package_{n}",
            f"src/app/[slug_{n}]/page.tsx",
            f"../shared_{n}/lib.rs",
            f"/home/jürgen_{n}/größe.py",
        )
    ]
    text = "\n".join(
        f"loaded ({path}) in {n % 9}ms, cached as '{n:x}'" for n, path in enumerate(paths)
    )

    form = shown(text, command="./start --verbose")

    listed = re.findall(r"[^\s,'()]*/[^\s,'()]*", re.sub(r"… lines .*?: | …$", " ", form))
    assert len(listed) > 20
    assert [path for path in listed if path not in paths] == []


def _diff(files: int, hunks: int = 3) -> str:
    lines = []
    for number in range(files):
        path = f"packages/core/src/feature_{number}/handler.ts"
        lines += [
            f"diff --git a/{path} b/{path}",
            f"index {number:07x}..{number + 9:07x} 100644",
            f"--- a/{path}",
            f"+++ b/{path}",
        ]
        for at in range(hunks):
            lines += [
                f"@@ -{at * 40 + 10},7 +{at * 40 + 10},7 @@ export class Handler{number} {{",
                "   private readonly log: Logger;",
                f"   async handle{at}(request: Request): Promise<Reply> {{",
                f"-    const limit = this.config.limits.small{number}x{at};",
                f"+    const limit = this.config.limits.large{number}x{at} ?? DEFAULT_LIMIT;",
                "     await this.log.info('request', request.id);",
                "   }",
                " ",
            ]
    return "\n".join(lines)


@pytest.mark.parametrize("files", [4, 12, 60])
@pytest.mark.parametrize(("knobs", "share"), [(Knobs(), 0.25), (SMALL, 0.1)])
def test_a_diff_under_review_shows_what_was_changed(files, knobs, share):
    text = _diff(files, 24 // files or 1)

    form = shown(text, knobs, command="git diff main...HEAD")

    changed = [line for line in form.split("\n") if re.match(r"[+-] ", line)]
    assert sum(map(len, changed)) > share * len(form)
    assert all(line in text.split("\n") for line in changed)


def test_packages_without_tests_are_counted_not_listed():
    text = "\n".join(
        line
        for n in range(60)
        for line in (
            "testing: warning: no tests to run",
            "PASS",
            f"ok  \tgithub.com/acme/shop/pkg{n}\t0.0{n:02}s [no tests to run]",
            f"?   \tgithub.com/acme/shop/types{n}\t[no test files]",
        )
    )
    text += "\n--- FAIL: TestOrder (0.00s)\n    order_test.go:41: got 3, want 4\nFAIL\n"

    form = shown(text, command="go test ./... -run TestOrder")

    assert "order_test.go:41: got 3, want 4" in form
    assert form.count("no tests to run") <= 2


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bash", {"command": "cat AGENTS.md"}),
        ("exec_command", {"cmd": "sed -n '1,400p' /home/me/.codex/skills/deploy/SKILL.md"}),
        ("shell", {"command": ["bash", "-lc", "head -n 400 docs/plans/2026-11-rollout.md"]}),
        ("mcp__fs__load", {"path": "/repo/.cursor/rules/tests.mdc"}),
    ],
)
def test_instructions_are_shown_whole_whatever_reads_them(tool, arguments):
    text = "\n".join(
        f"{n}. Before step {n}, run check_{n} and read its report." for n in range(350)
    )

    assert 17_000 < len(text) < 24_000
    assert shown(text, tool=tool, **arguments) == text
    assert len(shown(text, tool=tool, command="./report --long")) < 5000


@pytest.mark.parametrize(
    "command", ["grep -rn run_check AGENTS.md", "./check AGENTS.md", "cat AGENTS.md.bak"]
)
def test_what_only_names_a_file_of_instructions_is_output(command):
    text = "\n".join(f"AGENTS.md:{n}:Before step {n}, run check_{n}." for n in range(350))

    assert len(shown(text, command=command)) < 5000


def test_which_files_instruct_is_a_setting():
    text = "\n".join(
        f"{n}. Before step {n}, run check_{n} and read its report." for n in range(350)
    )
    knobs = Knobs().turned({"forms.instructions": ("HOUSE-RULES.txt",)})

    assert shown(text, knobs, command="cat docs/HOUSE-RULES.txt") == text
    assert shown(text, knobs, command="cat AGENTS.md") != text
