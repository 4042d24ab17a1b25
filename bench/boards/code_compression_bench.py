"""hotset as an arm of Code-Compression Bench: copy this file to `arms/hotset.py` there.

A proxy arm of that board names a base URL for Claude Code; behind it stands the board's gateway,
which counts what is paid. Before each task the arm starts a proxy of its own with an empty store,
and stops it afterwards, so that no task knows of another one. See README.md beside this file.

    CCB_GATEWAY_URL     where the board's gateway is (required)
    HOTSET_BASE_URL     a proxy that runs already, in front of that gateway, instead
    HOTSET_ARGUMENTS    more options of `hotset up`, such as "--profile lean"
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from bench.arm import ProxyArm, register  # of the board

PROGRAM = "hotset"
START_SECONDS = 60.0
STOP_SECONDS = 20.0


@register("hotset")
class HotsetArm(ProxyArm):
    name = "hotset"
    needs = ["CCB_GATEWAY_URL"]  # noqa: RUF012 - as the board declares it

    def __init__(self) -> None:
        self._url = os.environ.get("HOTSET_BASE_URL", "").rstrip("/")
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    def ready(self) -> tuple[bool, str]:
        """True with "ok", or False with what to do."""
        ok, reason = super().ready()
        if ok and not self._url and shutil.which(PROGRAM) is None:
            return False, "hotset is not on PATH; install it: uv tool install hotset"
        return ok, reason

    def setup(self) -> None:
        """Start a proxy in front of the gateway."""
        if self._url:
            return
        self._folder = Path(tempfile.mkdtemp(prefix="hotset-arm-"))
        ready = self._folder / "ready.json"
        command = [PROGRAM, "up", "--quiet", "--no-index", "--port", "0"]
        command += ["--anthropic-url", os.environ["CCB_GATEWAY_URL"].rstrip("/")]
        command += ["--data", str(self._folder / "data"), "--project", str(self._folder)]
        command += ["--ready-file", str(ready)]
        command += shlex.split(os.environ.get("HOTSET_ARGUMENTS", ""))
        self._process = subprocess.Popen(command)
        end = time.monotonic() + START_SECONDS
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                self.teardown()
                raise RuntimeError("hotset up did not start; see its message above")
            time.sleep(0.02)
        self._url = json.loads(ready.read_text())["anthropic_base_url"]

    def model_base_url(self) -> str:
        if not self._url:
            raise RuntimeError("call setup() first, or set HOTSET_BASE_URL")
        return self._url

    def headers(self) -> dict[str, str]:
        """None: the client's own headers, the run's id among them, are handed on."""
        return {}

    def teardown(self) -> None:
        """Stop the proxy that `setup` started, and delete its store."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process, self._url = None, ""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
