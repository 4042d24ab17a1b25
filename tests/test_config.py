"""What an operator chose: layers, origins, and settings that cannot be used."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from msgspec import Struct, ValidationError, structs

from hotset.config import load, project_root
from hotset.errors import BadConfig
from hotset.nouns.alert import THRESHOLDS
from hotset.nouns.embedding import Embedding
from hotset.nouns.knobs import (
    NEVER,
    PROFILES,
    STRATEGIES,
    FormKnobs,
    Knobs,
    Limit,
    PolicyName,
    Remembering,
)
from hotset.nouns.memory import MemoryKind
from hotset.nouns.page import Kind
from hotset.nouns.tooling import Deferring, Tooling
from hotset.window.evict import POLICIES


@pytest.fixture
def config(tmp_path):
    """Loads with a file, an environment and flags of the test's own."""

    def make(file: str = "", environ: dict[str, str] | None = None, **flags):
        path = tmp_path / "config.toml"
        path.write_text(file)
        env = {"HOTSET_CONFIG": str(path), "HOTSET_HOME": str(tmp_path / "home"), **(environ or {})}
        return load(project=flags.pop("project", str(tmp_path)), environ=env, **flags)

    return make


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(config):
    file, env = 'openai_url = "http://file/v1"', {"HOTSET_OPENAI_URL": "http://env/v1"}

    found = [
        config(file, env, openai_url="http://flag/v1"),
        config(file, env),
        config(file),
        config(),
    ]

    assert [each.upstreams["openai"].url for each in found] == [
        "http://flag/v1",
        "http://env/v1",
        "http://file/v1",
        "https://api.openai.com/v1",
    ]
    assert [each.origins["openai_url"] for each in found][:2] == [
        "--openai-url",
        "HOTSET_OPENAI_URL",
    ]
    assert found[2].origins["openai_url"].endswith("config.toml")
    assert found[3].origins["openai_url"] == "default"


@pytest.mark.parametrize(
    ("name", "given", "used"),
    [
        ("openai", "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("openai", "http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("openai", "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
        ("anthropic", "https://gateway.example/v1", "https://gateway.example"),
        ("anthropic", "https://gateway.example/claude/", "https://gateway.example/claude"),
    ],
)
def test_a_base_url_may_be_given_with_or_without_its_version(config, name, given, used):
    assert config(**{f"{name}_url": given}).upstreams[name].url == used


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "api.openai.com/v1",
        "http://",
        "http://host/v1?x=1",
        "http://user:pass@host/v1",
        "http://host:99999/v1",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_with_its_name_and_origin(config, url):
    with pytest.raises(BadConfig, match=r"openai_url \(HOTSET_OPENAI_URL\)"):
        config(environ={"HOTSET_OPENAI_URL": url})


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("openai_url = [", "not TOML"),
        ("openai_url = [1]", "must be text"),
        ("port = 70000", "from 0 to 65535"),
        ('port = "http"', "from 0 to 65535"),
        ("[upstreams.Bad_Name]\nurl = 'http://x'", "lower-case"),
        ("[upstreams.groq]\nurls = 'http://x'", "needs a url"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(config, file, says):
    with pytest.raises(BadConfig, match=says):
        config(file)


def test_further_upstreams_have_names(config):
    found = config('port = 5000\n[upstreams.groq]\nurl = "https://api.groq.com/openai/v1"')

    assert found.upstreams["groq"].url == "https://api.groq.com/openai/v1"
    assert found.port == 5000


def test_the_machines_http_proxy_is_used_as_any_client_would_but_never_for_loopback(config):
    env = {
        "HTTPS_PROXY": "http://proxy:3128",
        "NO_PROXY": "api.anthropic.com",
        "HOTSET_OPENAI_URL": "https://gw.example/v1",
    }

    found = config('[upstreams.local]\nurl = "https://127.0.0.1:1/v1"', env)

    assert {name: upstream.proxy for name, upstream in found.upstreams.items()} == {
        "openai": "http://proxy:3128",
        "anthropic": None,
        "local": None,
    }


@pytest.mark.row("V17")
def test_each_project_has_a_folder_of_its_own_and_its_files_choose_nothing(config, tmp_path):
    folders = []
    for parent in ("one", "two"):
        root = tmp_path / parent / "app"
        (root / "src" / "deep").mkdir(parents=True)
        (root / ".git").mkdir()
        (root / "config.toml").write_text('openai_url = "http://evil.example/v1"')
        (root / "hotset.toml").write_text('openai_url = "http://evil.example/v1"')
        found = config(project=str(root / "src" / "deep"))
        assert found.project == project_root(root / "src") == root
        assert found.upstreams["openai"].url == "https://api.openai.com/v1"
        folders.append(found.folder)

    assert folders[0] != folders[1]
    assert all(folder.name.startswith("app-") for folder in folders)


def test_the_data_folder_can_be_named(config, tmp_path):
    assert config(data=str(tmp_path / "here")).folder == tmp_path / "here"
    assert config(environ={"HOTSET_DATA": str(tmp_path / "there")}).folder == tmp_path / "there"


@pytest.mark.row("V5")
def test_a_kind_of_agent_of_the_user_s_own_has_its_base_s_knobs_but_for_those_it_sets(config):
    found = config(
        "[window]\nkeep = 8\nsaid = 100\n"
        "[profiles.reviewer]\nbase = 'academic'\nkeep = 6\nprefetch.hints = 1\n"
        "[profiles.second]\nbase = 'reviewer'\nmost = 9\n"
    )

    reviewer, second = found.knobs_for("reviewer"), found.knobs_for("second")

    assert (reviewer.policy, reviewer.keep, reviewer.said) == ("topic", 6, 100)
    assert reviewer.prefetch.hints == 1
    assert (second.policy, second.keep, second.most) == ("topic", 6, 9)
    assert found.knobs_for("somebody").keep == 8
    assert {"reviewer", "second", "academic"} <= set(found.profiles)
    assert config("[profiles.mine]\nkeep = 7", profile="mine").knobs_for("claude-cli").keep == 7


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("[profiles.mine]\nbase = 'none'", r"base of \[profiles.mine\].* must be one of default"),
        ("[profiles.mine]\nkep = 6", "keep"),
        ("[profiles.mine]\nkeep = 0", "keep of .*profiles.mine.* must be"),
        ("[profiles]\nmine = 6", "must be a table of knobs"),
        ("[profiles.'a b']\nkeep = 6", "must be a table of knobs"),
    ],
)
def test_a_profile_that_cannot_hold_is_refused_with_its_place(config, file, message):
    with pytest.raises(BadConfig, match=message):
        config(file)


def test_the_window_s_switches_come_from_flags_environment_or_file(config):
    file = '[window]\noff = true\ninject = false\nbudget = 50000\nprofile = "lean"'
    env = {
        "HOTSET_OFF": "no",
        "HOTSET_INJECT": "1",
        "HOTSET_BUDGET": "60000",
        "HOTSET_PROFILE": "academic",
    }

    found = [
        config(file, env, off=True, inject=False, budget=70_000, profile="architect"),
        config(file, env),
        config(file),
        config(),
    ]

    assert [each.window for each in found] == [
        {"off": True, "inject": False, "budget": 70_000, "profile": "architect"},
        {"off": False, "inject": True, "budget": 60_000, "profile": "academic"},
        {"off": True, "inject": False, "budget": 50_000, "profile": "lean"},
        {"off": False, "inject": True, "budget": 0, "profile": ""},
    ]
    named = ("off", "inject", "budget", "profile")
    assert [found[0].origins[name] for name in named] == [
        "--off",
        "--no-tools",
        "--budget",
        "--profile",
    ]
    assert [found[1].origins[name] for name in named] == [
        f"HOTSET_{name.upper()}" for name in named
    ]
    assert found[2].origins["off"].endswith("config.toml")
    assert found[3].origins["off"] == "default"


def test_every_knob_can_be_set_by_name(config):
    found = config("""
        [window]
        high = 0.7
        low = 0.5
        keep = 3
        most = 12
        echo = false
        early = false
        policy = "size"
        spared = ["plan", "paper"]
        regret = 2
        patience = 40
        entry = 80
        limit = {over = 4000, room = 1000}
        [window.limits]
        file = {over = 9000, room = 6000}
        web_fetch = {over = 0}
        [window.tools]
        Bash = {over = 800, room = 800}
        """).knobs_for("anyone")

    assert (found.high, found.low, found.keep, found.most, found.echo, found.early) == (
        0.7,
        0.5,
        3,
        12,
        False,
        False,
    )
    assert (found.policy, found.spared) == ("size", {Kind.PLAN, Kind.PAPER})
    assert (found.regret, found.patience, found.entry) == (2.0, 40, 80)
    assert found.limit == Limit(4000, 1000)
    assert found.limits == {Kind.FILE: Limit(9000, 6000), Kind.WEB_FETCH: NEVER}
    assert found.tools == {"Bash": Limit(800, 800)}


def test_no_knob_is_out_of_the_file_s_reach(config):
    samples = {
        "policy": ('"use"', "use"),
        "prefetch.mode": ('"off"', "off"),
        "successor.clear": ('"off"', "off"),
        "cache.fixed": ('"1h"', "1h"),
        "limit": ("{over = 10, room = 5}", Limit(10, 5)),
        "limits": ("{file = {over = 10, room = 5}}", {Kind.FILE: Limit(10, 5)}),
        "tools": ("{Bash = {over = 10, room = 5}}", {"Bash": Limit(10, 5)}),
        "files": ("{md = {over = 10, room = 5}}", {"md": Limit(10, 5)}),
        "lines": ("{rarity = 1.5}", {"rarity": 1.5}),
        "toolbox.client": ("{WebFetch = true}", {"WebFetch": True}),
        "memory.tells": ("{pitfall = 0.7}", {MemoryKind.PITFALL: 0.7}),
        "memory.signals": ("{recent = 2.0}", {"recent": 2.0}),
        "spared": ('["plan"]', {Kind.PLAN}),
        "offers": ('["search_history"]', ("search_history",)),
        "handoff.state": ('"tester"', "tester"),
        "forms.instructions": ('["AGENTS.md"]', ("AGENTS.md",)),
    }
    for name, value in Knobs().by_name().items():
        other = (
            not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else 0.21
        )
        text, read = samples.get(name, (str(other).lower(), other))
        for table in ("window", "knobs") if name != "window" else ():
            found = config(f"[{table}]\n{name} = {text}").knobs_for("")
            assert found.changed(Knobs()).keys() == {name}, f"{name} was not set"
            assert found.by_name()[name] == read
            assert Knobs().with_changes(json.loads(json.dumps(found.changed(Knobs())))) == found


def test_a_knob_of_a_group_can_be_set_by_dotted_name_or_in_a_table_and_keeps_the_others(config):
    dotted = config("[knobs]\nforms.topics = 2\nmemory.reminders = 1\nkeep = 7").knobs_for(
        "librarian"
    )
    tables = config(
        "[knobs]\nkeep = 7\n[knobs.forms]\ntopics = 2\n[knobs.memory]\nreminders = 1"
    ).knobs_for("librarian")

    assert dotted == tables
    assert dotted.changed(PROFILES["librarian"]) == {
        "keep": 7,
        "forms.topics": 2,
        "memory.reminders": 1,
    }
    assert (dotted.forms.entities, dotted.high) == (FormKnobs().entities, 0.75)


def test_what_knobs_say_stands_over_what_the_window_says(config):
    assert config("[window]\nkeep = 3\n[knobs]\nkeep = 5").knobs_for("").keep == 5


def test_what_was_stored_of_a_session_s_knobs_is_checked_when_it_is_read_again():
    assert PROFILES["lean"].with_changes({}) == PROFILES["lean"]
    assert PROFILES["lean"].changed(Knobs())["limit"] == {"over": 500, "room": 500}
    with pytest.raises(ValidationError):
        Knobs().with_changes({"forms.logs_share": 7})


def test_entries_of_tables_among_the_knobs_change_by_name_and_go_by_none():
    longer = {"over": 9000, "room": 5800}
    found = Knobs().with_changes(
        {"tools.Bash": longer, "tools.mcp.a.b": longer, "limits.file": longer, "files.md": longer}
        | {"memory.tells.pitfall": 0.8, "lines.rarity": -1, "keep": 6}
    )

    assert found.tools == {"Bash": Limit(9000, 5800), "mcp.a.b": Limit(9000, 5800)}
    assert found.limits == {**Knobs().limits, Kind.FILE: Limit(9000, 5800)}
    assert (found.value("tools.Bash"), found.value("tools.Read")) == (longer, None)
    assert (found.value("memory.tells.pitfall"), found.value("keep")) == (0.8, 6)
    assert found.with_changes({"tools.Bash": None}).tools.keys() == {"mcp.a.b"}


def test_every_strategy_is_a_valid_change_of_knobs():
    changed = {name: Knobs().with_changes(values) for name, values in STRATEGIES.items()}

    assert changed["balanced"] == Knobs()
    assert changed["semantic-heavy"].memory.signals["semantic"] > 0
    assert changed["episodic-heavy"].memory.signals["episodic"] > 0


@pytest.mark.parametrize(
    "change",
    [
        {"tools.Bash": {"over": -1, "room": 1}},
        {"tools.Bash": 3},
        {"limits.nothing": {"over": 1, "room": 1}},
        {"memory.tells.pitfall": 2.0},
        {"memory.signals.recent": 11},
        {"lines.rarity": 11},
        {"keep.it": 1},
        {"memory.nothing": 1},
        {"nothing": 1},
    ],
)
def test_a_change_of_no_knob_or_out_of_its_range_is_refused(change):
    with pytest.raises(ValidationError):
        Knobs().with_changes(change)


def test_every_number_among_the_knobs_has_a_range_and_a_unit():
    groups = [
        Knobs,
        *(type(value) for value in structs.asdict(Knobs()).values() if isinstance(value, Struct)),
    ]
    for group in groups:
        for knob in structs.fields(group):
            bare, metas = (
                getattr(knob.type, "__origin__", knob.type),
                getattr(knob.type, "__metadata__", ()),
            )
            if bare in (int, float):
                assert [meta for meta in metas if meta.extra and meta.extra["unit"]], (
                    f"{group.__name__}.{knob.name}"
                )
                assert [meta for meta in metas if meta.ge is not None and meta.le is not None], (
                    f"{group.__name__}.{knob.name}"
                )


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("window = 5", r"window in .*config.toml must be a table"),
        ("[window]\noff = 'yes'", r"off \(.*config.toml\) must be true or false, not 'yes'"),
        (
            "[window]\nbudget = 10",
            r"budget \(.*config.toml\) must be a number of tokens from 1000 up",
        ),
        ("[window]\nbudget = true", "budget .* must be a number of tokens"),
        (
            "[window]\nprofile = 'fast'",
            r"profile \(.*config.toml\) must be one of default, lean, librarian",
        ),
        ("[window]\nprofile = ['lean']", "profile .* must be one of"),
        (
            "[window]\nwindow = 100000",
            r"cannot say 'window'; it can say off, inject, budget, profile, high",
        ),
        ("[window]\nhigh = 1.5", "high of .* must be a share of the window, from 0 to 1, not 1.5"),
        (
            "[window]\nhigh = 'much'",
            "high of .* must be a share of the window, from 0 to 1, not 'much'",
        ),
        ("[window]\nlow = 0.97", r"low \(0.97\).* must not be above high \(0.95\)"),
        (
            "[window]\nhandoff.start = 0.8",
            r"\[window\] in .*: handoff.start \(0.8\).* must be below handoff.at \(0.75\)",
        ),
        (
            "[profiles.x]\nhandoff.start = 0.9\nhandoff.at = 0.2",
            r"\[profiles.x\] in .*: handoff.start \(0.9\).* must be below handoff.at \(0.2\)",
        ),
        (
            "[profiles.x]\noffers = ['nope']",
            r"offers of \[profiles.x\] in .* must be a list of tools, .*search_history.*'nope'",
        ),
        ("[window]\nkeep = 0", "keep of .* must be a whole number from 1 to 10000, not 0"),
        ("[window]\nkeep = 2.5", "keep of .* must be a whole number"),
        ("[window]\necho = 1", "echo of .* must be true or false"),
        (
            "[window]\npolicy = 'random'",
            "policy of .* must be one of recency, use, size, topic, task",
        ),
        ("[window]\nspared = 'plan'", "spared of .* must be a list of kinds, of system, prompt"),
        ("[window]\nspared = ['novel']", "spared of .* must be a list of kinds, of system, prompt"),
        ("[window]\nlimit = 3000", "limit of .* must look like {over = 3000, room = 2000}"),
        ("[window]\nlimit = {over = 100, room = 200}", "limit.room of .* must be from 1 to 100"),
        (
            "[window]\nlimits = {file = {over = 9000}}",
            (
                r"limits.file of \[window\] in .* must also say its room, .*: \{over = 9000, room "
                r"= 6000\}, in characters"
            ),
        ),
        (
            "[window.limits]\nnovel = {over = 1, room = 1}",
            "a name in limits of .* must be one of system, prompt",
        ),
        ("[window]\ntools = 5", r"must be a table: \[window.tools\]"),
        (
            "[window]\nprefetch = 'always'",
            "prefetch.mode of .* must be one of off, hints, on, not 'always'",
        ),
        (
            "[window]\nprefetch = true",
            "prefetch of .* must be one of off, hints, on, or a table of mode, excerpt, hint",
        ),
        (
            "[window]\nprefetch = {depth = 3}",
            "prefetch of .* cannot say 'depth'; it can say mode, excerpt, hint",
        ),
        (
            "[window]\nprefetch = {hint = 85}",
            "prefetch.hint of .* must be a probability, from 0 to 1, not 85",
        ),
        ("[window]\nprefetch = {lines = 1.5}", "prefetch.lines of .* must be a whole number"),
        (
            "[window]\nkeeep = 5",
            r"\[window\] in .* cannot say 'keeep'; it can say off, inject, .* Did you mean keep\?",
        ),
        (
            "[knobs]\nkeep = 0",
            r"keep of \[knobs\] in .* must be a whole number from 1 to 10000, not 0",
        ),
        ("[knobs]\nlow = 0.97", r"\[knobs\] in .*: low \(0.97\).* must not be above high \(0.95\)"),
        ("[knobs.form]\ntopics = 1", r"\[knobs\] in .* cannot say 'form'; .* Did you mean forms\?"),
        (
            "[knobs]\nforms.topic = 1",
            r"forms of \[knobs\] in .* cannot say 'topic'; .* Did you mean topics\?",
        ),
        ("[knobs]\nforms = 1", r"forms of \[knobs\] in .* must be a table of again, change_share"),
        ("[window]\nregret = inf", "regret of .* must be a number from 0 to 10000, not inf"),
        ("[window]\nregret = nan", "regret of .* must be a number from 0 to 10000, not nan"),
        ("[alerts]\nwindow_pct = inf", "window_pct of .* must be a number from 0 up, not inf"),
        (
            "[search]\nenabled = 'yes'",
            r"enabled of \[search\] in .* must be true or false, not 'yes'",
        ),
        ("[clients.codex]\nbudget = 5", r"budget \(\[clients.codex\] in .*\) must be a number"),
        ("[clients.codex]\nof = true", r"cannot say 'of'; it can say off, .* Did you mean off\?"),
        ("[clients]\nCodex = 1", r"\[clients.Codex\] in .* must be a table of switches"),
        ("[alerts]\nlatency = 5", "cannot say 'latency'; it can say retrieval_pct"),
        ("[alerts]\noverhead_ms_p95 = 'slow'", "overhead_ms_p95 of .* must be a number from 0 up"),
    ],
)
def test_a_window_that_cannot_be_used_says_what_is_allowed(config, file, says):
    with pytest.raises(BadConfig, match=says):
        config(file)


def test_a_switch_in_the_environment_that_is_neither_yes_nor_no_is_refused(config):
    with pytest.raises(BadConfig, match=r"off \(HOTSET_OFF\) must be true or false, not 'maybe'"):
        config(environ={"HOTSET_OFF": "maybe"})


@pytest.mark.row("V5")
def test_an_agent_gets_the_knobs_of_its_kind_unless_a_profile_is_set(config):
    by_kind, lean = config(), config(profile="lean")

    librarian, academic, architect = (
        by_kind.knobs_for(agent) for agent in ("librarian", "academic", "architect")
    )
    assert (librarian.high, librarian.policy, librarian.keep, librarian.spared) == (
        0.75,
        "recency",
        5,
        {Kind.PROMPT},
    )
    assert (academic.high, academic.policy, academic.keep, academic.spared) == (
        0.80,
        "topic",
        3,
        {Kind.PAPER},
    )
    assert (architect.high, architect.policy, architect.keep, architect.spared) == (
        0.85,
        "task",
        5,
        {Kind.PLAN},
    )
    left = [1 - each.low / each.high for each in (librarian, academic, architect)]
    assert left == pytest.approx([0.25, 0.30, 0.25])
    assert by_kind.knobs_for("archivalist") == librarian
    assert by_kind.knobs_for("claude-cli") == Knobs()
    for kind in ("engineer", "designer", "inspector", "tester", "orchestrator", "guide"):
        hands_over = {"handoff.at": 0.75, "handoff.state": kind}
        assert by_kind.knobs_for(kind) == Knobs().turned(hands_over)
    assert lean.knobs_for("academic") == lean.knobs_for("claude-cli") == PROFILES["lean"]


@pytest.mark.row("V5")
def test_what_the_file_says_stands_over_every_profile(config):
    found = config("[window]\nkeep = 9")

    assert [found.knobs_for(agent).keep for agent in ("librarian", "academic", "claude-cli")] == [
        9,
        9,
        9,
    ]
    assert found.knobs_for("librarian").high == 0.75


def test_a_client_has_switches_of_its_own_which_a_flag_overrides(config):
    file = (
        "[window]\noff = true\nbudget = 9000\nprofile = 'lean'\n"
        "[clients.codex]\noff = false\nbudget = 0\nprofile = 'academic'\n[clients.codex-tui]\n"
    )
    found, flagged = config(file), config(file, off=True, budget=8000, profile="librarian")
    names = ("codex_cli_rs", "codex", "codex-tui", "codexer", "claude-cli")

    assert [found.is_off_for(each) for each in names] == [False, False, True, True, True]
    assert [found.budget_for(each) for each in names] == [0, 0, 9000, 9000, 9000]
    assert [found.knobs_for(each) == PROFILES["lean"] for each in names] == [
        *(False, False, True, True, True)
    ]
    assert flagged.is_off_for("codex")
    assert flagged.budget_for("codex") == 8000
    assert flagged.knobs_for("codex") == PROFILES["librarian"]


def test_the_names_of_policies_are_those_that_there_are():
    assert set(get_args(PolicyName)) == set(POLICIES)
    assert {each.policy for each in PROFILES.values()} <= set(POLICIES)


def test_thresholds_can_be_moved(config):
    found = config("[alerts]\noverhead_ms_p95 = 25").thresholds

    assert found["overhead_ms_p95"].limit == 25.0
    assert found["overhead_ms_p95"].is_beyond(30)
    assert {name: each.limit for name, each in found.items() if name != "overhead_ms_p95"} == {
        name: each.limit for name, each in THRESHOLDS.items() if name != "overhead_ms_p95"
    }


@pytest.mark.parametrize("name", THRESHOLDS)
def test_an_alert_can_be_left_out(config, name):
    found = config(f"[alerts]\n{name} = false").thresholds

    assert not found[name].is_beyond(0)
    assert not found[name].is_beyond(1e12)


def test_what_makes_vectors_can_be_chosen_in_the_file_and_in_the_environment(config, tmp_path):
    weights = tmp_path / "model.safetensors"
    weights.touch()
    endpoint = {
        "HOTSET_EMBEDDING_URL": "http://localhost:8080",
        "HOTSET_EMBEDDING_MODEL": "small",
        "HOTSET_EMBEDDING_SIZE": "768",
    }

    assert config().embedding == Embedding()
    assert config('[search]\nminilm = "off"').embedding == Embedding("off")
    assert config(f'[search]\nminilm = "{weights}"').embedding == Embedding(str(weights))
    assert config(f'[search]\nminilm = "{weights}"').embedding.of_documents == Embedding("off")
    found = config("", {**endpoint, "HOTSET_EMBEDDING_KEY": "sk-not-a-real-one"})
    assert found.embedding == Embedding(
        "off", "http://localhost:8080/v1", "small", 768, "sk-not-a-real-one"
    )
    assert "sk-not-a-real-one" not in repr(found)
    file = '[search]\nembedding_url = "https://host/api"\nembedding_model = "m"\nembedding_size = 3'
    assert config(file, {"HOTSET_EMBEDDING_MODEL": "n"}).embedding == Embedding(
        "off", "https://host/api", "n", 3
    )


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("minilm = true", "minilm .* must be text"),
        ('minilm = "on"', "must be auto, off, or the full path of MiniLM's model.safetensors"),
        ('minilm = "/nowhere/model.safetensors"', "must be auto, off, or the full path"),
        ('embedding_url = "https://host"', "embedding_url .* says nothing without embedding_model"),
        (
            'embedding_url = "https://host"\nembedding_model = "m"',
            "embedding_url .* says nothing without embedding_size",
        ),
        ('embedding_model = "m"', "embedding_model .* says nothing without embedding_url"),
        (
            'embedding_url = "host"\nembedding_model = "m"\nembedding_size = 3',
            "embedding_url .* must look like https://host",
        ),
        (
            'embedding_url = 3\nembedding_model = "m"\nembedding_size = 3',
            "embedding_url .* must be text",
        ),
        (
            'embedding_url = "https://h"\nembedding_model = "m"\nembedding_size = -3',
            "embedding_size .* how many numbers",
        ),
        (
            'embedding_url = "https://h"\nembedding_model = "m"\nembedding_size = "big"',
            "embedding_size .* how many numbers",
        ),
        ('embedding_key = "sk"', "cannot say 'embedding_key'.*a key: HOTSET_EMBEDDING_KEY"),
        (
            (
                'minilm = "MODEL"\nembedding_url = "https://h"\nembedding_model = "m"\n'
                "embedding_size = 3"
            ),
            "minilm .* cannot ask for what embedding_url embeds",
        ),
    ],
)
def test_a_choice_of_vectors_that_cannot_be_is_told(config, tmp_path, file, told):
    (tmp_path / "model").touch()
    with pytest.raises(BadConfig, match=told):
        config("[search]\n" + file.replace("MODEL", str(tmp_path / "model")))


def test_tools_are_chosen_in_a_table_of_their_own(config):
    told = config(
        '[tools]\nlimit = 3\nghosts = 0\ncall_seconds = 5\nskills = ["~/more"]\ndeny = '
        '["github__*"]'
    ).tooling
    assert told == Tooling(
        limit=3, ghosts=0, call_seconds=5.0, skills=("~/more",), deny=("github__*",)
    )


@pytest.mark.parametrize("mode", list(Deferring))
def test_tools_are_deferred_where_somebody_says_so(config, mode):
    assert config("").tooling.deferred is Deferring.OFF
    assert config(f'[tools]\ndeferred = "{mode}"').tooling.deferred is mode


@pytest.mark.parametrize(
    "wrong",
    [
        "limit = 0",
        "ghosts = -1",
        'skills = "one"',
        "deny = [1]",
        "nothing = 1",
        "enabled = 3",
        "deferred = true",
    ],
)
def test_a_setting_of_tools_that_cannot_be_is_named(config, wrong):
    with pytest.raises(BadConfig, match=wrong.split(" ", maxsplit=1)[0]):
        config(f"[tools]\n{wrong}")


def test_memory_is_chosen_in_a_table_of_its_own(config):
    told = config("[memory]\noffer = false\nquiet_seconds = 5\nconsolidate_hours = 0").memory
    assert told == Remembering(offer=False, quiet_seconds=5.0, consolidate_hours=0.0)


@pytest.mark.parametrize(
    "wrong", ["offer = 3", "index_tokens = -1", 'quiet_seconds = "soon"', "nothing = 1"]
)
def test_a_setting_of_memory_that_cannot_be_is_named(config, wrong):
    with pytest.raises(BadConfig, match=wrong.split(" ", maxsplit=1)[0]):
        config(f"[memory]\n{wrong}")


def test_memory_is_switched_off_by_the_environment(config):
    assert config(environ={"HOTSET_MEMORY": "off"}).memory == Remembering(enabled=False)


def test_on_a_slow_machine_every_deadline_is_longer_but_those_that_the_file_names(config):
    usual, longer = config(), config("patience = 3\n[tools]\ncall_seconds = 7")
    assert (usual.patience, longer.patience) == (1.0, 3.0)
    assert longer.tooling.list_seconds == 3 * usual.tooling.list_seconds
    assert longer.tooling.call_seconds == 7
    assert longer.memory.offer_seconds == 3 * usual.memory.offer_seconds
    assert config(environ={"HOTSET_PATIENCE": "2.5"}).patience == 2.5


@pytest.mark.parametrize("wrong", ["0", "0.5", "inf", "nan", "long"])
def test_a_patience_that_is_none_is_refused(config, wrong):
    with pytest.raises(BadConfig, match=r"patience .HOTSET_PATIENCE. must be a number from 1"):
        config(environ={"HOTSET_PATIENCE": wrong})
