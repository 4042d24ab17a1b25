"""The tree of commands: each one's name, summary, and the module that is loaded when it is
called."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

import hotset as package
from hotset.surfaces.cli.exit import discard_output

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class CommandEntry:
    where: str
    """`module:attribute`; imported only when the command runs or shows its own help."""
    short: str


Sections = Mapping[str, Mapping[str, CommandEntry]]
"""Commands by the title of their section in the help, and by name."""


class LazyGroup(click.Group):
    def __init__(self, *args: Any, sections: Sections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._entries = {
            name: entry for section in sections.values() for name, entry in section.items()
        }

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        entry = self._entries.get(name)
        if entry is None:
            return None
        module, attribute = entry.where.split(":")
        command: click.Command = getattr(import_module(f"hotset.surfaces.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = self.similar_commands(ctx, args[0])
            if not near:
                raise
            names = " or ".join(f"{ctx.command_path} {name}" for name in near)
            raise click.UsageError(
                f"No such command {args[0]!r}. Did you mean {names}?", ctx
            ) from error

    def similar_commands(self, ctx: click.Context, typed: str) -> list[str]:
        """Commands with a similar name."""
        from difflib import get_close_matches  # noqa: PLC0415 - only for a mistyped name

        return get_close_matches(typed, self.list_commands(ctx), 3, 0.5)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands that begin so, by their entries: none is loaded."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for a shell

        named = [
            CompletionItem(name, help=entry.short)
            for name, entry in self._entries.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.short) for name, entry in section.items()])


GROUPS: dict[str, dict[str, CommandEntry]] = {
    "Serve": {
        "up": CommandEntry("serve:up", "Serve the proxy for this project until Ctrl-C."),
        "wrap": CommandEntry("wrap:wrap", "Run an agent through the proxy: hotset wrap codex"),
        "service": CommandEntry(
            "tree:service", "One always-on proxy for all projects: install, remove."
        ),
        "open": CommandEntry("open:open_dashboard", "See and steer the window in your browser."),
        "mcp": CommandEntry("serve:mcp", "Give an agent tools, code and history, over MCP."),
        "demo": CommandEntry(
            "serve:demo", "See it work on a recorded session; no key, no network."
        ),
    },
    "Find": {
        "search": CommandEntry("search:search", "Search conversations and the project's code."),
        "keep": CommandEntry("keep:keep", "Keep a file, or what a command printed, as a page."),
        "index": CommandEntry("index:index", "Index the project's files, with your consent."),
    },
    "Tools": {
        "tools": CommandEntry(
            "tree:tools", "The tools behind find_tools: list, find, use, import ..."
        ),
        "connect": CommandEntry("connect:connect", "Connect a client over MCP or by its base URL."),
        "disconnect": CommandEntry("connect:disconnect", "Undo `connect`."),
    },
    "Memory": {
        "standup": CommandEntry(
            "standup:standup", "What was done, decided and is open, day by day."
        ),
        "memory": CommandEntry(
            "tree:memory", "What was learned: search, learn, review, add, edit ..."
        ),
        "continuity": CommandEntry(
            "continuity:continuity", "CONTINUITY.md: the state of the work, in a file."
        ),
    },
    "Learning": {
        "learn": CommandEntry(
            "tree:learn", "What sessions taught: status, why, compare, trial ..."
        ),
    },
    "Team": {
        "team": CommandEntry("tree:team", "Share a project with others: create, invite, join ..."),
    },
    "Look": {
        "status": CommandEntry("status:status", "Whether a proxy serves, and what is kept."),
        "top": CommandEntry("top:top", "The window of the latest session, live."),
        "statusline": CommandEntry(
            "statusline:statusline", "One line for Claude Code's statusline, tmux or a prompt."
        ),
        "doctor": CommandEntry("doctor:doctor", "Find out why nothing is kept, and what to do."),
        "sessions": CommandEntry(
            "sessions:sessions", "The sessions of this project, last used first."
        ),
        "show": CommandEntry("sessions:show", "One session, turn by turn."),
        "checkpoints": CommandEntry(
            "checkpoints:checkpoints", "Where sessions stood as they filled the window."
        ),
        "handoffs": CommandEntry(
            "handoffs:handoffs", "Agents that handed over, and the state that each left."
        ),
        "savings": CommandEntry("status:savings", "What was saved, in tokens and money."),
        "findings": CommandEntry("findings:findings", "What costs most, and what to do about it."),
        "window": CommandEntry(
            "window:window", "What the model sees now; pin, restore or evict a page."
        ),
        "diff": CommandEntry("diff:diff", "One turn: what was sent instead of what came."),
        "plan": CommandEntry("diff:plan", "One turn: what was decided, offered and left out."),
        "events": CommandEntry("events:events", "Evictions, retrievals, bypasses, alerts ..."),
        "recall": CommandEntry("sessions:recall", "The exact bytes of one page."),
        "replay": CommandEntry(
            "replay:replay", "What hotset would have saved on recorded sessions."
        ),
        "evolve": CommandEntry(
            "evolve:evolve", "Search better knobs on recorded sessions; adopt, revert."
        ),
    },
    "Care": {
        "verify": CommandEntry("maintenance:verify", "Check every byte that is kept."),
        "repair": CommandEntry(
            "maintenance:repair", "Save what can be saved from a damaged store."
        ),
        "export": CommandEntry("maintenance:export", "Write sessions to a file of JSON lines."),
        "import": CommandEntry("maintenance:import_", "Import what export wrote."),
    },
    "About": {
        "completion": CommandEntry(
            "completion:completion", "Make your shell complete commands: bash, zsh, fish."
        ),
        "rows": CommandEntry("promises:rows", "What hotset promises, and what of it works today."),
    },
}


_OF_COMMANDS = ("memory", "tools", "learn", "service", "continuity", "evolve", "team")


class Tree(LazyGroup):
    def similar_commands(self, ctx: click.Context, typed: str) -> list[str]:
        """Also searches the groups: `timeline` may be `memory timeline`."""
        groups = ((name, self.get_command(ctx, name)) for name in _OF_COMMANDS)
        inside = [
            f"{name} {typed}"
            for name, each in groups
            if isinstance(each, click.Group) and typed in each.list_commands(ctx)
        ]
        return inside or super().similar_commands(ctx, typed)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would treat it as a failure
            return discard_output()


@click.group(
    cls=Tree,
    sections=GROUPS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with:  hotset demo   or   hotset wrap claude",
)
@click.version_option(package.__version__, prog_name="hotset")
@click.pass_context
def hotset(ctx: click.Context) -> None:
    """Virtual memory for LLM agents: the hot set in the window, everything else whole in a
    store. Without a command: where things stand here, and what to do next."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand is None:
        from hotset.surfaces.cli.home import show_home  # noqa: PLC0415 - not for a help page

        show_home()


SERVICE = {
    "install": CommandEntry("always_on:install", "Start it with every login, on a fixed port."),
    "remove": CommandEntry("always_on:remove", "Stop it, and start it no more."),
    "status": CommandEntry("always_on:status", "Whether it runs, where, and for which projects."),
    "run": CommandEntry("always_on:run", "Serve until Ctrl-C: what its unit executes."),
}


@click.group(
    cls=LazyGroup,
    sections={"Commands": SERVICE},
    epilog="\b\nExamples:\n"
    "  hotset service install --print\n"
    "  hotset service install\n"
    "  hotset service status",
)
def service() -> None:
    """One proxy for all projects of yours, always on, on a port that stays.

    Send a client there with: hotset connect claude --proxy

    A call belongs to the project whose token `hotset connect --proxy` wrote into the client's base
    URL. Calls with your own token, of clients that have one setting for all projects, are kept as
    the project `unknown`; any other token is refused.
    """


MEMORY = {
    "Look": {
        "search": CommandEntry("memory_views:search", "Find memories, and why each was chosen."),
        "list": CommandEntry("memory_views:list_", "What is remembered, newest first."),
        "show": CommandEntry("memory_views:show", "One memory, with its versions, links and use."),
        "why": CommandEntry("memory_views:why", "Where a memory comes from."),
        "timeline": CommandEntry(
            "memory_views:timeline", "What was done and decided lately, in lines."
        ),
        "graph": CommandEntry("memory_views:graph", "Links between memories."),
        "economics": CommandEntry(
            "memory_views:economics", "What remembering costs and saves, in tokens."
        ),
    },
    "Make": {
        "learn": CommandEntry("memory_learn:learn", "Make memories from sessions that you have."),
        "add": CommandEntry("memory_edits:add", "Remember something, in your own words."),
        "consolidate": CommandEntry(
            "memory_edits:consolidate", "Find what memories have in common."
        ),
    },
    "Decide": {
        "review": CommandEntry(
            "memory_review:review", "New memories one by one: keep, correct, drop."
        ),
        "confirm": CommandEntry("memory_edits:confirm", "Confirm a memory that waits for you."),
        "suggest": CommandEntry(
            "memory_review:suggest", "Confirmed facts and checks, as a diff for AGENTS.md."
        ),
        "promote": CommandEntry("memory_review:promote", "Make a skill of a proven procedure."),
    },
    "Change": {
        "edit": CommandEntry("memory_edits:edit", "Correct a memory; the old version stays."),
        "forget": CommandEntry(
            "memory_edits:forget", "Forget a memory; --erase removes it for good."
        ),
        "restore": CommandEntry("memory_edits:restore", "Bring back what was forgotten."),
        "rollback": CommandEntry("memory_edits:rollback", "Remove all memories from one place."),
        "undo": CommandEntry("memory_edits:undo", "Undo what one run changed."),
    },
    "Files": {
        "export": CommandEntry("memory_edits:export", "Write memories as files."),
        "import": CommandEntry("memory_edits:import_", "Read memories from files."),
    },
}


@click.group(
    cls=LazyGroup,
    sections=MEMORY,
    epilog="\b\nExamples:\n"
    "  hotset memory learn ~/.codex/sessions\n"
    "  hotset memory list --since yesterday\n"
    '  hotset memory search "how did we fix the flaky upload test"\n'
    '  hotset memory add "Releases are cut on Tuesdays"\n'
    "  hotset memory why sem-7ha2c0de\n"
    "  hotset memory forget sem-7ha2c0de",
)
def memory() -> None:
    """What was learned from this project's sessions: episodes, facts, procedures and pitfalls.

    Sessions that go through hotset become memories by themselves. Each can be read, corrected and
    deleted; a change is a new version, and the versions before stay until they are erased.
    """


TOOLS = {
    "list": CommandEntry("tools:list_", "Every tool that is known."),
    "find": CommandEntry("tools:find", "The tools that fit a task, best first."),
    "use": CommandEntry("tools:use", "Call a tool."),
    "status": CommandEntry("tools:status", "What runs, what is active, what waits for you."),
    "graph": CommandEntry("tools:graph", "Which tools go together."),
    "import": CommandEntry("tool_edits:import_", "Take over the servers of another program."),
    "add": CommandEntry("tool_edits:add", "Add an MCP server."),
    "remove": CommandEntry("tool_edits:remove", "Remove an MCP server."),
    "approve": CommandEntry(
        "tool_edits:approve", "Allow what is new or has changed, after a look at it."
    ),
    "deny": CommandEntry("tool_edits:deny", "Forbid a tool or a source in this project."),
    "allow": CommandEntry("tool_edits:allow", "Undo `deny`."),
    "pin": CommandEntry("tool_edits:pin", "Keep a tool from being stopped or deleted."),
    "unpin": CommandEntry("tool_edits:unpin", "Undo `pin`."),
    "restore": CommandEntry("tool_edits:restore", "Bring back a deleted tool."),
}


@click.group(
    cls=LazyGroup,
    sections={"Commands": TOOLS},
    epilog="\b\nExamples:\n"
    "  hotset tools import                     the servers of Claude Code, Codex, Cursor, VS "
    "Code ...\n"
    "  hotset tools add files -- npx -y @modelcontextprotocol/server-filesystem .\n"
    '  hotset tools find "open an issue"\n'
    "  hotset tools status",
)
def tools() -> None:
    """The library of tools: MCP servers, skills, and what agents wrote.

    An agent sees two tools, find_tools and use_tool, however many there are behind them; nothing
    runs that is not in use.
    """


LEARN = {
    "Look": {
        "status": CommandEntry("learn:status", "What was learned, and how to undo it."),
        "why": CommandEntry("learn:why", "Why a knob has its value."),
        "log": CommandEntry("learn:log", "Every offer, recall and search, and what came of it."),
        "profiles": CommandEntry(
            "learn:profiles", "Sets of knobs that sessions can be tried with."
        ),
        "compare": CommandEntry("learn:compare", "The arms of a trial side by side."),
    },
    "Learn": {
        "now": CommandEntry("learn:learn_now", "Learn from the sessions that ended."),
        "trial": CommandEntry(
            "learn_orders:trial", "Give a share of new sessions to a profile, or `off`."
        ),
    },
    "Decide": {
        "freeze": CommandEntry("learn_orders:freeze", "Keep knobs as they are, or set them."),
        "unfreeze": CommandEntry("learn_orders:unfreeze", "Undo `freeze`."),
        "reset": CommandEntry("learn_orders:reset", "Take back what was learned."),
        "unreset": CommandEntry("learn_orders:unreset", "Let what was reset be learned again."),
        "on": CommandEntry("learn_orders:on", "New sessions get what was learned."),
        "off": CommandEntry("learn_orders:off", "New sessions get the defaults."),
    },
}


@click.group(
    cls=LazyGroup,
    sections=LEARN,
    epilog="\b\nExamples:\n"
    "  hotset learn status\n"
    "  hotset learn why tools.Bash\n"
    "  hotset learn trial off=10%              a control on your own work\n"
    "  hotset learn compare\n"
    "  hotset learn freeze keep=8",
)
def learn() -> None:
    """What this project's sessions taught about knobs: proposed from evidence, proven by replay on
    later sessions, tried on a share of new ones, adopted or taken back.

    Task success comes first: what could hide something is adopted only when a trial shows that
    success is no worse; what hides nothing (more is shown, or found in another order) by replay
    alone. Either is rolled back when success falls.
    """


TEAM = {
    "create": CommandEntry("team:create", "Make a project of a team, and join it here."),
    "invite": CommandEntry("team:invite", "An invitation for a person, or another machine."),
    "join": CommandEntry("team:join", "Join the project of an invitation with this checkout."),
    "status": CommandEntry("team:status", "Whether the database answers, and what waits for it."),
    "list": CommandEntry("team:list_", "Who is in the project."),
    "log": CommandEntry("team:log", "What was done to the project and its people."),
    "revoke": CommandEntry("team:revoke", "End every token of a person."),
    "rotate": CommandEntry("team:rotate", "Take a new token in place of this machine's."),
    "leave": CommandEntry("team:leave", "Work alone from here on."),
}


@click.group(
    cls=LazyGroup,
    sections={"Commands": TEAM},
    epilog="\b\nExamples:\n"
    "  hotset team create --store postgresql://postgres@localhost/team\n"
    "  hotset team invite bob\n"
    "  hotset team join hotset-invitation:eyJ...\n"
    "  hotset team list",
)
def team() -> None:
    """One PostgreSQL database for the machines and people of a project.

    Each person has a desk there: all that their agents keep, on whichever machine. A session goes
    on at another machine, and while the database is away everything goes on here.
    """
