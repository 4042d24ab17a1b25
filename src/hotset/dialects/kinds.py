"""Which kind of page a tool's call or result is: a table of the names that agents in the field use."""

from __future__ import annotations

import re

from hotset.nouns.page import Kind

_RESULTS = {
    Kind.FILE: """
        read read_file readfile read_text_file read_many_files read_media_file file_read fs_read view view_file viewfile
        cat open_file get_file_contents notebookread""",
    Kind.WEB_FETCH: """
        webfetch web_fetch fetch fetch_url fetch_webpage fetch_page fetch_html fetch_markdown read_url open_url url_fetch
        browse scrape firecrawl_scrape""",
    Kind.AGENT_MESSAGE: """
        task agent subagent spawn_agent run_subagent runsubagent dispatch_agent delegate new_task wait_agent""",
    Kind.TEST_RESULT: "run_tests runtests pytest test_runner",
    Kind.PAPER: "fetch_paper read_paper get_paper download_paper",
}
_PLANS = "todowrite todo_write write_todos update_todo_list manage_todo_list update_plan exitplanmode exit_plan_mode"
_EDITORS = "str_replace_based_edit_tool str_replace_editor text_editor"
_SHELLS = """
    bash shell terminal exec exec_command run_command execute_command execute_bash run_shell_command run_terminal_cmd
    run_in_terminal shell_command local_shell container.exec"""

_plans = frozenset(_PLANS.split())
_editors = frozenset(_EDITORS.split())
_shells = frozenset(_SHELLS.split())
_results = {name: kind for kind, names in _RESULTS.items() for name in names.split()}

_HEAD = 4096  # a test command stands near the start of a call's arguments
_VIEW = re.compile(rb'"command"\s*:\s*"view"')
_PAPERS = re.compile(rb"arxiv\.org|openreview\.net|aclanthology\.org|(?<![\w.])doi\.org|semanticscholar\.org", re.IGNORECASE)
_SHOWS = re.compile(rb'"(?:cat|head|tail|sed -n|nl|bat)\s[^|;&<>]*"')
_TESTS = re.compile(
    rb"""(?:^|["'&;|(]|\\n)\s*                                  # where a command begins, in JSON
         (?:\w+=\S+\s+)*
         (?:(?:sudo|time|env|npx|pnpm|uv\ run|poetry\ run|pipenv\ run|hatch\ run|bundle\ exec|timeout\ \S+|python[\d.]*\ -m)\s+)*
         (?:[^\s"']{1,200}/)?
         (?:pytest|py\.test|tox|nox|unittest|jest|vitest|rspec|phpunit|ctest|mocha
           |(?:npm|yarn|pnpm|bun|deno)\ (?:run\ )?test|cargo\ (?:test|nextest)|go\ test|dotnet\ test|swift\ test|mix\ test
           |(?:mvn|gradle|gradlew)\ (?:\S+\ )?test|make\ (?:test|check))
         (?![\w-]*=)\b""",
    re.VERBOSE,
)


def kind_of_call(tool: str) -> Kind:
    return Kind.PLAN if _plain(tool) in _plans else Kind.TOOL_CALL


def kind_of_result(tool: str, arguments: bytes) -> Kind:
    name = _plain(tool)
    head = arguments[:_HEAD]
    if name in _shells:
        if _TESTS.search(head):
            return Kind.TEST_RESULT
        return Kind.FILE if _SHOWS.search(head) else Kind.TOOL_RESULT
    if name in _editors:
        return Kind.FILE if _VIEW.search(head) else Kind.TOOL_RESULT
    kind = _results.get(name, Kind.TOOL_RESULT)
    if "arxiv" in name or (kind is Kind.WEB_FETCH and _PAPERS.search(head)):
        return Kind.PAPER
    return kind


def _plain(tool: str) -> str:
    """`mcp__fetch__Fetch` and `fetch` are the same tool."""
    return tool.rpartition("__")[2].lower()
