"""User messages that hold what a tool, a file or somebody else wrote, as agents without native tool
calls send them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

PROPOSES = "I propose to look at the deployment notes first."
CLINE_NOTE = (
    "<environment_details>\n# VSCode Visible Files\ndeploy.md\n\n"
    "# Current Mode\nACT MODE\n"
    "</environment_details>"
)


@dataclass(frozen=True)
class Wrapper:
    """What the model said before, and how the client hands over a text; `{}` stands where the text
    goes."""

    name: str
    reply: str
    parts: tuple[str, ...]

    def around(self, text: str) -> list[str]:
        return [part.replace("{}", text) for part in self.parts]


BASH = "THOUGHT: I look at the notes.\n\n```bash\ncat deploy.md\n```"
WRAPPERS = (
    Wrapper(
        "aider /run",
        PROPOSES,
        ("I ran this command:\n\ncat deploy.md\n\nAnd got this output:\n\n{}\n",),
    ),
    Wrapper(
        "aider /web", PROPOSES, ("Here is the content of https://docs.example/deploy:\n\n{}\n",)
    ),
    Wrapper(
        "aider /add",
        PROPOSES,
        (
            (
                "I have *added these files to the chat* so you can go ahead and edit them.\n\n"
                "*Trust this message as the true contents of these files!*\n\ndeploy.md\n```\n"
                "{}\n```\n"
            ),
        ),
    ),
    Wrapper("mini-swe-agent", BASH, ("<returncode>0</returncode>\n<output>\n{}\n</output>",)),
    Wrapper("mini-swe-agent, first version", BASH, ("Observation: {}\n",)),
    Wrapper(
        "Cline read_file",
        "<read_file>\n<path>deploy.md</path>\n</read_file>",
        ("[read_file for 'deploy.md'] Result:", "{}", CLINE_NOTE),
    ),
    Wrapper(
        "Cline execute_command",
        "<execute_command>\n<command>cat deploy.md</command>\n</execute_command>",
        (
            "[execute_command for 'cat deploy.md'] Result:",
            "Command executed.\nOutput:\n{}",
            CLINE_NOTE,
        ),
    ),
    Wrapper(
        "Cline, after a reply in words",
        PROPOSES,
        ("[execute_command for 'cat deploy.md'] Result:", "{}", CLINE_NOTE),
    ),
    Wrapper(
        "Roo read_file",
        "<read_file>\n<args><file><path>deploy.md</path></file></args>\n</read_file>",
        (
            "[read_file for 'deploy.md'] Result:",
            (
                '<files>\n<file><path>deploy.md</path>\n<content lines="1-1">\n 1 | {}\n'
                "</content>\n</file>\n</files>"
            ),
            CLINE_NOTE,
        ),
    ),
    Wrapper(
        "OpenHands",
        (
            "I look.\n<function=execute_bash>\n<parameter=command>cat deploy.md</parameter>\n"
            "</function>"
        ),
        (
            (
                "EXECUTION RESULT of [execute_bash]:\n{}\n[The command completed with exit "
                "code 0.]\n"
                "[Current working directory: /workspace]"
            ),
        ),
    ),
    Wrapper(
        "OpenHands CodeAct",
        "<execute_bash>\ncat deploy.md\n</execute_bash>",
        ("OBSERVATION:\n{}\n[Command finished with exit code 0]",),
    ),
    Wrapper(
        "SWE-agent",
        "DISCUSSION\nLook at the notes.\n```\ncat deploy.md\n```",
        ("OBSERVATION:\n{}\n\n(Open file: n/a)\n(Current directory: /repo)\nbash-$",),
    ),
    Wrapper(
        "SWE-agent, bare",
        "DISCUSSION\nLook at the notes.\n```\ncat deploy.md\n```",
        ("{}\n(Open file: n/a)\nbash-$",),
    ),
    Wrapper(
        "ReAct", "Thought: look\nAction: read_file\nAction Input: deploy.md", ("Observation: {}",)
    ),
    Wrapper(
        "ReAct, the result alone",
        "Thought: look\nAction: read_file\nAction Input: deploy.md",
        ("{}",),
    ),
    Wrapper(
        "LangChain JSON chat agent",
        '```json\n{"action": "read_file", "action_input": "deploy.md"}\n```',
        (
            (
                "TOOL RESPONSE: \n---------------------\n{}\n\nUSER'S INPUT\n"
                "--------------------\n\n"
                "Okay, so what is the response to my last comment?"
            ),
        ),
    ),
    Wrapper(
        "AutoGPT",
        '{"command": {"name": "read_file", "args": {"path": "deploy.md"}}}',
        ("Command read_file returned: {}",),
    ),
    Wrapper(
        "a JSON agent",
        '{"tool": "read_file", "input": "deploy.md"}',
        ('{"status": "ok", "output": "{}"}',),
    ),
    Wrapper(
        "a JSON agent, the result alone", '{"tool": "read_file", "input": "deploy.md"}', ("{}",)
    ),
    Wrapper(
        "smolagents",
        "Thought: I read it.\nCode:\n```py\nprint(open('deploy.md').read())\n```<end_code>",
        ("Observation:\nExecution logs:\n{}\nLast output from code snippet:\nNone",),
    ),
    Wrapper("a file", PROPOSES, ('<file path="deploy.md">\n{}\n</file>\nPlease go on.',)),
    Wrapper(
        "a document",
        PROPOSES,
        (
            (
                '<documents>\n<document index="1">\n<source>deploy.md</source>\n'
                "<document_content>\n{}\n</document_content>\n"
                "</document>\n</documents>\n\nPlease go on."
            ),
        ),
    ),
    Wrapper("an issue", PROPOSES, ("<issue>\n{}\n</issue>",)),
    Wrapper(
        "pasted mail",
        PROPOSES,
        (
            (
                "From: ops@shop.example\nTo: dev@shop.example\nSubject: deployments\n\nHi all,\n\n"
                "{}\n\nBest,\nBob"
            ),
        ),
    ),
    Wrapper("a letter", PROPOSES, ("Hi all,\n\n{}\n\nBest regards,\nBob",)),
    Wrapper(
        "search results",
        PROPOSES,
        ("Search results for deploy\n\n1. Deploy guide - https://docs.example/deploy\n{}\n",),
    ),
    Wrapper("a terminal", PROPOSES, ("$ cat deploy.md\n{}\n$",)),
    Wrapper("a page", PROPOSES, ("# Deploy guide\n\n{}",)),
    Wrapper("a quotation", PROPOSES, ("What do you say to this?\n\n> {}",)),
    Wrapper("a diff", PROPOSES, ("diff --git a/deploy.md b/deploy.md\n@@ -1 +1 @@\n-old\n+{}",)),
    Wrapper("opened in one part, closed in another", PROPOSES, ("<output>", "{}", "</output>")),
)

_WORDS = (
    "zorp",
    "blick",
    "fnord",
    "tool",
    "output",
    "result",
    "cell",
    "stage",
    "report",
    "node",
    "value",
    "trace",
    "page",
    "hit",
)
_SHELLS = ("$", "%", ">>>", "#", "\u276f", "user@host:~$", "root@box:/app#", "PS C:\\>")
Make = Callable[[random.Random], str]


def _name(chance: random.Random) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(chance.randint(1, 3)))


def _styled(chance: random.Random) -> str:
    name = _name(chance)
    return chance.choice(
        (
            name,
            name.upper(),
            name.title(),
            name.replace(" ", "_"),
            name.replace(" ", "-"),
            name.capitalize(),
        )
    )


_LINES: tuple[Make, ...] = (
    lambda chance: f"{_styled(chance)}:",
    lambda chance: f"{_styled(chance)} #{chance.randint(1, 99)}:",
    lambda chance: f"[{_styled(chance)}]",
    lambda chance: f"[{_styled(chance)}: {chance.randint(0, 99)}]",
    lambda chance: f"({_styled(chance)}: {chance.randint(0, 99)})",
    lambda chance: f"<{_name(chance).replace(' ', '_')}>",
    lambda chance: f"<<{_styled(chance)}>>",
    lambda chance: f"<|{_name(chance).replace(' ', '_')}|>",
    lambda chance: chance.choice("-=*#~_+.") * chance.randint(3, 40),
    lambda chance: f"{chance.choice('-=*#~') * 3} {_styled(chance)} {chance.choice('-=*#~') * 3}",
    lambda chance: (
        f"{_styled(chance)}: {chance.choice(('ok', '0', 'done', 'deploy.md', 'true', '200'))}"
    ),
    lambda chance: f"{_name(chance).replace(' ', '_')}={chance.randint(0, 9)}",
    lambda chance: f"{chance.choice(_SHELLS)} cat deploy.md",
    lambda chance: f"{_styled(chance)}",
    lambda chance: f"{'#' * chance.randint(1, 4)} {_styled(chance)}",
    lambda chance: f"{chance.randint(1, 9)}. {_styled(chance)}",
    lambda chance: f"@@ -{chance.randint(1, 9)} +{chance.randint(1, 9)} @@",
    lambda chance: (
        f"2026-01-0{chance.randint(1, 9)} 12:0{chance.randint(0, 9)}:00 {_styled(chance)}"
    ),
    lambda chance: f"{{{{{_name(chance).replace(' ', '_')}}}}}",
    lambda chance: f"| {_styled(chance)} |",
    lambda chance: f"{_styled(chance)} {chance.randint(0, 9)}.",
    lambda chance: f"{_styled(chance)} below.",
)
_PREFIXES: tuple[Make, ...] = (
    lambda chance: f"{_styled(chance)}: ",
    lambda chance: f"[{_styled(chance)}] ",
    lambda chance: f"{chance.randint(1, 400)}: ",
    lambda chance: f"{chance.randint(1, 400):6}\t",
    lambda chance: f"{chance.randint(1, 400):4} | ",
    lambda chance: f"{chance.choice('+-<>|*')} ",
    lambda chance: f"{chance.choice('+-<>|*')}",
    lambda chance: f"- {_styled(chance)}: ",
    lambda chance: "    ",
    lambda chance: "\t",
    lambda chance: f"<{_name(chance).replace(' ', '_')}>",
    lambda chance: f'"{_name(chance)}": "',
    lambda chance: f"{_name(chance).replace(' ', '_')}=",
    lambda chance: f"12:0{chance.randint(0, 9)}:00 ",
    lambda chance: f"{_styled(chance)}: done. ",
    lambda chance: f"{_styled(chance).capitalize()} {chance.randint(0, 9)}. ",
)


def made_up(chance: random.Random) -> str:
    """A wrapper that no agent has, with `{}` in it: lines before it, something at the start of its
    own line, lines behind it."""
    before = [chance.choice(_LINES)(chance) for _ in range(chance.choice((0, 1, 1, 2)))]
    prefix = chance.choice(_PREFIXES)(chance) if not before or chance.random() < 0.3 else ""
    behind = [chance.choice(_LINES)(chance) for _ in range(chance.choice((0, 0, 1, 2)))]
    gap = chance.choice(("\n", "\n\n"))
    return gap.join((*before, prefix + "{}", *behind))
