"""`hotset up` and `hotset wrap`: real processes, a real port, a scripted provider."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from tests.cli.conftest import Desk, Served
from tests.waiting import lives, wait_until

TELL = "import json, os; print(json.dumps(dict(os.environ)))"
ASK = """
import json, os, sys, urllib.request
body = {"model": "claude-test", "max_tokens": 10, "messages": [{"role": "user", "content": "hello from the agent"}]}
headers = {"content-type": "application/json", "x-api-key": "k", "user-agent": "fake-agent/1.0"}
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
print(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).status)
sys.exit(7)
"""  # noqa: E501
CODEX = """
import json, os, sys, tomllib, urllib.request
settings = [tomllib.loads(word) for flag, word in zip(sys.argv[1:], sys.argv[2:]) if flag == "-c"]
provider = {name: value for each in settings for name, value in each.get("model_providers", {}).get("hotset", {}).items()}
headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ[provider["env_key"]]}
headers |= {name: os.environ[variable] for name, variable in provider["env_http_headers"].items()}
body = {"model": "gpt-test", "input": "hello from codex"}
request = urllib.request.Request(provider["base_url"] + "/" + provider["wire_api"], json.dumps(body).encode(), headers)
print(urllib.request.urlopen(request).status)
"""  # noqa: E501
WAIT = """
import os, sys
with open(sys.argv[1] + ".part", "w") as file:
    file.write(os.environ["ANTHROPIC_BASE_URL"])
os.rename(file.name, sys.argv[1])
sys.stdin.read()
"""


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *arguments)


def proxy_pid(desk: Desk) -> int:
    pid = json.loads((desk.data / "proxy.json").read_bytes())["pid"]
    assert isinstance(pid, int)
    return pid


@pytest.mark.row("X2")
def test_up_announces_itself_serves_and_takes_its_note_back(desk: Desk, to_upstream):
    with desk.serving(env=to_upstream) as ready:
        status = desk.run("status", "--json").json()
        assert set(ready) == {"openai_base_url", "anthropic_base_url", "dashboard_url", "pid"}
        assert status["proxy"]["pid"] == ready["pid"]
        assert "nonce" not in status["proxy"]
        assert status["proxy"]["openai_base_url"] == ready["openai_base_url"]
        assert ready["anthropic_base_url"] in desk.run("status").out

    assert not (desk.data / "proxy.json").exists()
    told = (desk.home / "up.log").read_text()
    assert f"export ANTHROPIC_BASE_URL={ready['anthropic_base_url']}" in told
    assert "hotset wrap" in told
    assert str(desk.data) in told


@pytest.mark.row("X4")
def test_open_makes_a_link_that_opens_the_dashboard_once_and_up_and_wrap_print_one(served: Served):
    asked = served.desk.run("open", "--print")
    link = asked.out.strip()
    assert (asked.code, "works once" in asked.err) == (0, True)
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(link) as page:
        assert b"app.js" in page.read()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(link)
    assert b"hotset open" in refused.value.read()
    refused.value.close()

    port = urlsplit(served.ready["openai_base_url"]).port
    line = f"dashboard  http://127.0.0.1:{port}/hotset/open/"
    assert line in (served.desk.home / "up.log").read_text()
    assert line in served.desk.run("wrap", *python(TELL), env=served.env).err
    assert line not in served.desk.run("wrap", "--quiet", *python(TELL), env=served.env).err


@pytest.mark.row("X4")
def test_open_without_a_proxy_starts_none_and_says_how(desk: Desk):
    asked = desk.run("open")

    assert (asked.code, asked.raw) == (1, b"")
    assert "hotset up" in asked.err
    assert not (desk.data / "proxy.json").exists()


def test_a_second_up_says_where_the_first_one_serves(served: Served):
    second = served.desk.run("up", env=served.env)

    assert (second.code, second.raw) == (1, b"")
    assert "serves already" in second.err
    assert served.ready["openai_base_url"] in second.err


def test_a_port_that_is_taken_is_told_in_a_sentence(desk: Desk, to_upstream, upstream):
    ran = desk.run("up", "--port", str(upstream.port), env=to_upstream)

    assert ran.code == 2
    assert ran.err.startswith(f"hotset: port {upstream.port} cannot be used")


@pytest.mark.row("C9")
def test_an_agent_that_is_wrapped_reaches_its_provider_and_wrap_leaves_nothing_behind_but_what_is_kept(  # noqa: E501
    desk: Desk, to_upstream, upstream
):
    ran = desk.run("wrap", *python(ASK), env=to_upstream)

    assert (ran.code, ran.out) == (7, "200\n")
    assert len(upstream.requests) == 1
    assert "kept 1 call" in ran.err
    assert desk.run("sessions", "--json").json()[0]["session"]["agent"] == "fake-agent"
    left = {path.name for path in desk.data.iterdir()}
    assert not left & {"proxy.json"}
    assert not [name for name in left if name.startswith(("wrapped-", ".ready"))]
    assert (desk.data / "wrap.log").stat().st_mode & 0o777 == 0o600
    token = (desk.data / "token").read_text().strip()
    assert token not in (desk.data / "wrap.log").read_text()


def test_wrap_uses_the_proxy_that_serves_already_and_leaves_it_serving(served: Served):
    told = json.loads(served.desk.run("wrap", *python(TELL), env=served.env).raw)

    assert told["ANTHROPIC_BASE_URL"] == served.ready["anthropic_base_url"]
    assert told["OPENAI_BASE_URL"] == served.ready["openai_base_url"]
    assert served.desk.run("status", "--json").json()["proxy"]["pid"] == served.ready["pid"]


@pytest.mark.slow
@pytest.mark.row("V5")
def test_wrap_names_the_kind_of_its_agent(desk: Desk, to_upstream):
    ran = desk.run("wrap", "--agent", "academic", *python(ASK), env=to_upstream)

    assert ran.code == 7  # what the agent ends with
    (kept,) = desk.run("sessions", "--json").json()
    assert kept["session"]["agent"] == "academic"
    refused = desk.run("wrap", "--agent", "acedemic", *python(ASK), env=to_upstream)
    assert (refused.code, "one of default, lean, librarian" in refused.err) == (2, True)


def test_wrap_says_what_it_set_without_the_token(desk: Desk, to_upstream):
    ran = desk.run("wrap", *python("pass"), env=to_upstream)

    token = (desk.data / "token").read_text().strip()
    assert "/****" in ran.err
    assert token not in ran.err
    assert desk.run("wrap", "--quiet", *python("pass"), env=to_upstream).err == ""


def test_wrap_warns_where_it_replaces_a_base_url_and_says_how_to_go_on_there(served: Served):
    ran = served.desk.run(
        "wrap", *python("pass"), env={"OPENAI_BASE_URL": "https://gateway.example.com/team-secret"}
    )

    assert "OPENAI_BASE_URL was https://gateway.example.com/****" in ran.err
    assert "HOTSET_OPENAI_URL" in ran.err
    assert "team-secret" not in ran.err


@pytest.mark.slow
def test_the_token_of_a_wrapped_codex_reaches_the_proxy_by_a_header(
    desk: Desk, to_upstream, upstream, tmp_path
):
    agent = tmp_path / "codex"
    agent.write_text(f"#!{sys.executable}\n{CODEX}")
    agent.chmod(0o700)

    ran = desk.run("wrap", str(agent), env={**to_upstream, "OPENAI_API_KEY": "k"})

    assert (ran.code, ran.out) == (0, "200\n")
    assert not [
        name for name, _ in upstream.requests[0].headers if name.lower().startswith("x-hotset")
    ]
    assert desk.run("sessions", "--json").json()[0]["session"]["dialect"] == "openai-responses"


@pytest.mark.slow
def test_wrap_warns_of_settings_that_win_over_the_environment(desk: Desk, to_upstream, tmp_path):
    (desk.home / ".claude").mkdir()
    settings = {
        "env": {
            "ANTHROPIC_BASE_URL": "https://gateway.example.com",
            "ANTHROPIC_AUTH_TOKEN": "secret",
        }
    }
    (desk.home / ".claude" / "settings.json").write_text(json.dumps(settings))
    agent = tmp_path / "claude"
    agent.write_text("#!/bin/sh\n")
    agent.chmod(0o700)

    ran = desk.run("wrap", str(agent), env=to_upstream)

    assert "settings.json sends Claude Code to https://gateway.example.com and wins" in ran.err
    assert "secret" not in ran.err


def test_print_gives_export_lines_that_a_shell_understands(served: Served):
    lines = served.desk.run("wrap", "--print", "some-agent").out
    shell = subprocess.run(
        ["/bin/sh", "-c", f'{lines}\necho "$OPENAI_BASE_URL"'],
        capture_output=True,
        text=True,
        check=True,
    )

    assert shell.stdout.strip() == served.ready["openai_base_url"]


def test_print_without_a_proxy_is_a_finding(desk: Desk):
    ran = desk.run("wrap", "--print", "claude")

    assert (ran.code, ran.raw) == (1, b"")
    assert "hotset up" in ran.err


def test_a_command_that_is_not_there_is_told_before_anything_starts(desk: Desk):
    ran = desk.run("wrap", "no-such-agent")

    assert ran.code == 127
    assert "no command no-such-agent" in ran.err
    assert not desk.data.exists()


def test_an_option_that_wrap_does_not_know_is_no_agent(desk: Desk):
    ran = desk.run("wrap", "--openai-url", "http://gateway.example.com", "codex")
    assert ran.code == 2
    assert "wrap has no option --openai-url" in ran.err


@pytest.mark.slow
def test_an_agent_that_dies_of_a_signal_gives_the_shell_s_code(desk: Desk, to_upstream):
    ran = desk.run("wrap", *python("import os; os.kill(os.getpid(), 9)"), env=to_upstream)

    assert ran.code == 128 + signal.SIGKILL


def test_signals_reach_the_agent(desk: Desk, to_upstream, tmp_path):
    there = tmp_path / "there"
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\n"
        "open(sys.argv[1], 'w').close()\n"
        "time.sleep(60)"
    )
    wrapped = desk.start("wrap", "-q", *python(code, str(there)), env=to_upstream)
    wait_until(there.exists)

    wrapped.send_signal(signal.SIGTERM)

    assert wrapped.wait(120) == 42


COUNT = """
import signal, sys, time
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(1))
print("ready", flush=True)
while not heard: time.sleep(0.01)
time.sleep(0.3)
print("heard", len(heard), flush=True)
"""


@pytest.mark.slow
def test_ctrl_c_reaches_the_agent_once_and_nobody_else(desk: Desk, to_upstream):
    command, env = desk.command("wrap", "-q", *python(COUNT)), desk.environ(to_upstream)
    ours, theirs = pty.openpty()
    script = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, *command],
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as wrapped:
        os.close(theirs)
        seen = read_until(ours, b"ready")
        os.write(ours, b"\x03")
        seen += read_until(ours, b"heard 1")
        assert wrapped.wait(120) == 0
    os.close(ours)
    assert b"Traceback" not in seen


def read_until(descriptor: int, mark: bytes) -> bytes:
    seen = b""
    while mark not in seen:
        piece = os.read(descriptor, 4096)
        assert piece, seen
        seen += piece
    return seen


def test_the_proxy_ends_when_wrap_is_killed(desk: Desk, to_upstream, tmp_path):
    there = tmp_path / "there"
    wrapped = desk.start(
        "wrap",
        *python(WAIT, str(there)),
        env=to_upstream,
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    wait_until(there.exists)
    pid = proxy_pid(desk)
    assert lives(pid)

    wrapped.kill()
    wrapped.wait(120)

    wait_until(lambda: not lives(pid))
    assert wrapped.stdin is not None
    wrapped.stdin.close()


@pytest.mark.slow
def test_a_proxy_that_two_wraps_share_stays_until_the_second_ends(
    desk: Desk, to_upstream, tmp_path
):
    first_there, second_there = tmp_path / "first", tmp_path / "second"
    how = {"env": to_upstream, "stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    first = desk.start("wrap", *python(WAIT, str(first_there)), **how)
    wait_until(first_there.exists)
    pid = proxy_pid(desk)
    second = desk.start("wrap", *python(WAIT, str(second_there)), **how)
    wait_until(second_there.exists)
    assert first_there.read_text() == second_there.read_text()

    first.communicate(timeout=120)

    assert lives(pid)
    with urllib.request.urlopen(first_there.read_text() + "/hotset/status", timeout=120) as answer:
        assert answer.status == 200
    second.communicate(timeout=120)
    wait_until(lambda: not lives(pid))


@pytest.mark.row("V17", "V16")
@pytest.mark.slow
def test_two_projects_share_neither_folder_nor_token_nor_sessions(
    desk: Desk, to_upstream, tmp_path
):
    homes = {"HOTSET_DATA": "", "HOTSET_HOME": str(tmp_path / "hotset")}
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    env = {**to_upstream, **homes}

    desk.run("wrap", *python(ASK), env=env)
    desk.run("wrap", "--project", str(other), *python("pass"), env=env)

    folders = sorted((tmp_path / "hotset" / "projects").iterdir())
    assert len(folders) == 2
    assert len({(folder / "token").read_text() for folder in folders}) == 2
    assert len(desk.run("sessions", "--json", env=env).json()) == 1
    assert desk.run("sessions", "--json", "--project", str(other), env=env).json() == []
