"""What a server is started with, and what to say when it does not start. Pure."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping

from hotset.errors import ToolFailed
from hotset.nouns.tool import Stdio

_INHERITED = frozenset(
    (
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    )
)  # enough to run, to reach the network and to find the user's own settings: no key of a provider, no token of ours
_INHERITED_FAMILIES = ("LC_", "XDG_")
_SHELL_FUNCTION = "()"  # how a value begins that a shell would run


def request(launch: Stdio, cwd: str, environ: Mapping[str, str]) -> bytes:
    """What the warden is asked for, on one line. Raises `ToolFailed` for what no system could start."""
    env = {**inherited(environ), **launch.env}
    if not launch.command or not launch.command[0]:
        raise ToolFailed("this server has no command; write one into its settings")
    if any("\0" in text for text in (*launch.command, *env, *env.values(), cwd)):
        raise ToolFailed(f"{launch.command[0]!r}: its settings hold a null character, and no program can be given one")
    if any(not name or "=" in name for name in env):
        raise ToolFailed(f"{launch.command[0]!r}: the name of an environment variable is empty or holds '='; mend its settings")
    return json.dumps({"command": launch.command, "env": env, "cwd": cwd}).encode()


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The few variables that every server gets."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _INHERITED or name.startswith(_INHERITED_FAMILIES)) and not value.startswith(_SHELL_FUNCTION)
    }


def why_not(program: str, cwd: str, step: str, number: int) -> str:
    """Why a server did not start, from the step that failed and its errno."""
    if step == "cwd":
        reason = {errno.ENOENT: "does not exist", errno.ENOTDIR: "is not a folder", errno.EACCES: "may not be entered"}
        return f"{program!r} was not started: the folder {cwd!r} {reason.get(number, os.strerror(number))}"
    if step == "exec":
        return _WHY_NOT.get(number, "{program!r} could not be started: {error}").format(
            program=program, error=os.strerror(number)
        )
    return f"{program!r} was not started: {os.strerror(number)}; stop something else and try again"


_WHY_NOT = {
    errno.ENOENT: "there is no program {program!r}, or the interpreter that its first line names is missing; "
    "install it, or write its full path into the server's settings",
    errno.ENOTDIR: "there is no program {program!r}; install it, or write its full path into the server's settings",
    errno.EACCES: "{program!r} is no file that may be executed; `chmod +x` it, or name its interpreter in the server's settings",
    errno.ENOEXEC: "{program!r} is no program of this machine; its first line should name its interpreter, as #!/bin/sh does",
    errno.E2BIG: "{program!r} was not started: its arguments and environment variables are too long",
}
