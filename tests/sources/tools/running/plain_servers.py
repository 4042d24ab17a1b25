"""What the tests of sessions and pools share: sources that start the plain server, and what became
of its processes."""

import os
import select
import sys
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from hotset.nouns.tool import Http, OriginKind, Stdio, ToolOrigin
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.running.server_pool import ServerPoolThread

PLAIN = Path(__file__).with_name("plain_server.py")
QUICK = Tooling(list_seconds=20, call_seconds=20)
"""Nothing waits as long as that; a machine that is busy must not fail a test."""


def plain(folder, name="plain", *ways, env=None, shared=False):
    command = (sys.executable, "-I", "-S", str(PLAIN), str(folder), *ways)
    return ToolOrigin(
        name, OriginKind.SERVER, Stdio(command, env or {}), stamp=_stamp(command), shared=shared
    )


def remote(url, name="remote", headers=None):
    return ToolOrigin(name, OriginKind.SERVER, Http(url, headers or {}), stamp=_stamp(url))


def text(returned):
    return "".join(block["text"] for block in msgspec.json.decode(returned.content))


def starts(folder):
    """The pids of every process that was started, in order."""
    file = Path(folder, "starts")
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def ends(pid):
    """Waits for it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 20)[0])
    finally:
        os.close(descriptor)


@contextmanager
def pool(folder, tooling=QUICK, **more):
    made = ServerPoolThread(tooling, project=Path(folder), **more)
    try:
        yield made
    finally:
        made.close()


def _stamp(launch):
    return sha256(repr(launch).encode()).hexdigest()
