"""The log of a container build, line by line, as `--progress=plain` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hotset.testing.recording.seeded import seeded


def failing_build() -> str:
    return "\n".join([*_image_steps(seeded("build")), *_LINT_FAILED])


def passing_build() -> str:
    return "\n".join([*_image_steps(seeded("build again")), *_LINT_PASSED])


_LIBRARIES = ("c", "gcc", "isl", "mpc", "sqlite3", "gomp", "quadmath", "ssl", "xcrypt", "tsan")

_PACKAGES = [
    "anyio",
    "certifi",
    "click",
    "h11",
    "httpcore",
    "httpx",
    "idna",
    "sniffio",
    "starlette",
    "typing-extensions",
    "uvicorn",
    "iniconfig",
    "packaging",
    "pluggy",
    "pygments",
    "pytest",
    "freezegun",
    "python-dateutil",
    "six",
    "ruff",
    "setuptools",
    "wheel",
]


def _image_steps(rng: Random) -> Iterator[str]:
    """A container build told line by line, as `--progress=plain` does."""
    yield "#1 [internal] load build definition from Dockerfile\n#1 transferring dockerfile: 1.21kB done\n#1 DONE 0.0s"
    yield "#2 [internal] load metadata for registry.ferrypost.example/python:3.11-slim\n#2 DONE 0.6s"
    second = 0.0
    for layer in range(5):
        digest = rng.randbytes(32).hex()
        for part in range(1, 9):
            second += rng.random() / 4
            yield f"#4 sha256:{digest} {part * 3.71:.2f}MB / 29.68MB {second:.1f}s"
        yield f"#4 extracting sha256:{digest} {rng.random() * 2:.1f}s done  (layer {layer + 1} of 5)"
    yield "#5 [build 2/7] RUN apt-get update && apt-get install -y --no-install-recommends build-essential libsqlite3-dev"
    for number in range(120):
        second += rng.random() / 5
        name = f"lib{rng.choice(_LIBRARIES)}{rng.randrange(1, 9)}-dev"
        version = f"{rng.randrange(1, 13)}.{rng.randrange(0, 40)}-{rng.randrange(1, 9)}"
        act = ("Selecting previously unselected package", "Preparing to unpack", "Unpacking", "Setting up")[number * 4 // 120]
        yield f"#5 {second:.3f} {act} {name}:amd64 ({version}) ..."
    yield "#6 [build 4/7] RUN pip install -e '.[dev]'"
    for name in _PACKAGES:
        version = f"{rng.randrange(0, 30)}.{rng.randrange(0, 20)}.{rng.randrange(0, 9)}"
        wheel = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        second += rng.random()
        yield f"#6 {second:.3f} Collecting {name}\n#6 {second + 0.02:.3f}   Downloading {wheel} ({rng.randrange(9, 900)} kB)"
        size, speed = rng.randrange(9, 900), rng.randrange(3, 60)
        yield f"#6 {second + 0.05:.3f}      {'━' * 40} {size}.0/{size}.0 kB {speed}.1 MB/s"
    yield f"#6 {second:.3f} Successfully installed {' '.join(_PACKAGES)}"


_LINT_FAILED = (
    "#7 [build 6/7] RUN ruff check . && python -m pytest",
    "#7 0.214 F401 [*] `datetime.datetime` imported but unused",
    "#7 0.214  --> ferrypost/backoff.py:6:27",
    "#7 0.214   |",
    "#7 0.214 5 | import random",
    "#7 0.214 6 | from datetime import UTC, datetime",
    "#7 0.214   |                           ^^^^^^^^",
    "#7 0.214 7 | from email.utils import parsedate_to_datetime",
    "#7 0.214   |",
    "#7 0.214 help: Remove unused import: `datetime.datetime`",
    "#7 0.214 Found 1 error.",
    '#7 ERROR: process "/bin/sh -c ruff check . && python -m pytest" did not complete successfully: exit code: 1',
    "exit status 1",
)

_LINT_PASSED = (
    "#7 [build 6/7] RUN ruff check . && python -m pytest",
    "#7 0.198 All checks passed!",
    "#7 1.904 ...........................                                             [100%]",
    "#7 1.905 27 passed in 1.23s",
    "#7 DONE 2.1s",
    "#8 [build 7/7] RUN python -m build --wheel\n#8 3.402 Successfully built ferrypost-2.3.2-py3-none-any.whl\n#8 DONE 3.6s",
    "#9 exporting to image\n#9 exporting layers 1.1s done",
    "#9 naming to registry.ferrypost.example/ferrypost:2.3.2 done\n#9 DONE 1.2s",
    "exit status 0",
)
