"""The scripted provider as a process: `python -m hotset.testing.upstream --port 0 --ready-file F
[--script FILE]`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import msgspec

from hotset.files.write import write_output
from hotset.testing.upstream.script import Script, read_script
from hotset.testing.upstream.server import ScriptedUpstream


def main() -> None:
    options = _options()
    stops = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(
        signal.SIG_BLOCK, stops
    )  # before any thread starts: they inherit it, and only `sigwait` hears
    with ScriptedUpstream(_script(options), port=options.port, strict=options.strict) as upstream:
        ready = {
            "pid": os.getpid(),
            "port": upstream.port,
            "openai_url": upstream.openai_url,
            "anthropic_url": upstream.anthropic_url,
        }
        if options.ready_file:
            write_output(options.ready_file, [msgspec.json.encode(ready)])
        sys.stdout.write(f"scripted upstream on {upstream.url}\n")
        sys.stdout.flush()
        signal.sigwait(stops)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hotset.testing.upstream", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port")
    parser.add_argument("--ready-file", type=Path, help="written, as JSON, once the port is open")
    parser.add_argument(
        "--script", type=Path, help="JSON lines, one reply each; see hotset.testing.upstream.script"
    )
    parser.add_argument(
        "--recording",
        action="store_true",
        help="replay the assistant's side of the recorded session",
    )
    parser.add_argument("--strict", action="store_true", help="refuse what the providers refuse")
    return parser.parse_args()


def _script(options: argparse.Namespace) -> Script | None:
    if options.recording:
        from hotset.testing.recording import script, session  # noqa: PLC0415 - large, and only this option needs it

        return script(session())
    return read_script(options.script) if options.script else None


if __name__ == "__main__":
    main()
