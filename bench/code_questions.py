"""Natural questions over code: is the right file among the first five hits?

    python -m bench.code_questions
    HOTSET_BENCH_QUESTIONS=httpx=/path/.git:werkzeug=/path/.git python -m bench.code_questions

The questions were written by hand, in a user's words, before any of them was asked. Tune on those
of even number: `held_out` counts the others alone, and all of werkzeug's. So far no number was
chosen by any of them, but the misses of all were seen before sources came first and files were
capped. hotset asks about this repository; httpx and werkzeug are left out unless named.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

from bench.code import indexed
from bench.results import tell
from hotset.index.embed.table import WordVectors
from hotset.nouns.search import Query
from hotset.sources.code.code_search import find_code
from hotset.sources.code.parsers import Parsers

_FIRST = 5
_HELD_OUT = frozenset({"werkzeug"})
"""Repositories of which no question was used to choose anything."""

Questions = Sequence[tuple[str, str]]
"""A question, and the files that answer it, separated by spaces; any of them is right."""

HOTSET: Questions = (
    ("where is it decided when pages leave the window", "src/hotset/window/evict.py"),
    ("how does a session get recognised from the messages", "src/hotset/store/lineage.py"),
    ("which headers name a session", "src/hotset/runtime/clients.py"),
    ("how are the word and vector scores combined", "src/hotset/index/fusion.py"),
    (
        "where are secrets detected in a text",
        (
            "src/hotset/sealing/sealer.py "
            "src/hotset/sealing/secret_kinds.py src/hotset/sealing/doubts.py"
        ),
    ),
    (
        "what happens when the store is full or broken",
        (
            "src/hotset/runtime/keeper.py src/hotset/store/writer.py "
            "src/hotset/store/connection.py "
            "src/hotset/runtime/record.py"
        ),
    ),
    (
        "how is a reply streamed to the client while it is recorded",
        "src/hotset/runtime/walk.py src/hotset/runtime/record.py src/hotset/runtime/reply_bytes.py",
    ),
    (
        "prices of cached and uncached tokens per model",
        "src/hotset/window/price.py src/hotset/nouns/price.py",
    ),
    ("parse server sent events", "src/hotset/dialects/sse.py"),
    (
        "how do I skip files that are ignored by git when indexing",
        "src/hotset/sources/code/scan.py",
    ),
    ("count tokens of an image", "src/hotset/tokens/"),
    ("where does the command line print the savings", "src/hotset/surfaces/cli/status.py"),
    ("migrate an old database to the current format", "src/hotset/store/migrations.py"),
    ("circuit breaker that rests a failing search backend", "src/hotset/files/breaker.py"),
    ("start and stop MCP servers of the tool library", "src/hotset/sources/tools/running/"),
    ("how is a summary of old turns made in the background", "src/hotset/runtime/summaries.py"),
    (
        "tell which kind of content a tool result has: json, log, diff",
        "src/hotset/window/preview/sniffer.py src/hotset/window/preview/content.py",
    ),
    ("merge duplicate memories", "src/hotset/sources/memory/consolidation.py"),
    (
        "export sessions to a file",
        "src/hotset/store/exchange.py src/hotset/surfaces/cli/maintenance.py",
    ),
    (
        "how is the proxy's port and address chosen",
        "src/hotset/surfaces/proxy/address.py src/hotset/surfaces/proxy/server.py",
    ),
)

HTTPX: Questions = (
    ("how are redirects followed", "httpx/_client.py"),
    ("where is the digest authentication challenge parsed", "httpx/_auth.py"),
    ("which environment variables set the proxy", "httpx/_utils.py"),
    ("decode gzip and brotli responses", "httpx/_decoders.py"),
    ("how is a multipart upload encoded", "httpx/_multipart.py"),
    ("what is the default timeout", "httpx/_config.py"),
    ("how do I call a WSGI app without a server", "httpx/_transports/wsgi.py"),
    ("map exceptions of httpcore to our own", "httpx/_transports/default.py"),
    ("raise an error for bad status codes", "httpx/_models.py"),
    ("how does the encoding of a response get guessed", "httpx/_models.py"),
    ("the command line options of the client", "httpx/_main.py"),
    ("percent encoding of a url path", "httpx/_urlparse.py"),
    ("merge query parameters into a url", "httpx/_urls.py httpx/_client.py"),
    ("read credentials from a netrc file", "httpx/_auth.py"),
    ("split text into lines while streaming", "httpx/_decoders.py"),
    ("how are cookies stored and sent again", "httpx/_models.py httpx/_client.py"),
    (
        "limit the number of connections in the pool",
        "httpx/_config.py httpx/_transports/default.py",
    ),
    ("verify the server's certificate", "httpx/_config.py"),
    ("stream a request body from an async generator", "httpx/_content.py"),
    ("when is the authorization header removed on a redirect", "httpx/_client.py httpx/_utils.py"),
)

WERKZEUG: Questions = (
    ("how does the development server reload when a file changes", "src/werkzeug/_reloader.py"),
    ("where is the debugger's pin made", "src/werkzeug/debug/__init__.py"),
    ("hash a password with scrypt", "src/werkzeug/security.py"),
    (
        "how are url rules matched to a path",
        "src/werkzeug/routing/matcher.py src/werkzeug/routing/map.py",
    ),
    ("which converters can a route have", "src/werkzeug/routing/converters.py"),
    ("trust x-forwarded-for behind a proxy", "src/werkzeug/middleware/proxy_fix.py"),
    (
        "parse a multipart form with files",
        "src/werkzeug/formparser.py src/werkzeug/sansio/multipart.py",
    ),
    (
        "how is the accept language header parsed and the best one chosen",
        "src/werkzeug/datastructures/accept.py src/werkzeug/http.py",
    ),
    (
        "serve static files from a folder",
        "src/werkzeug/middleware/shared_data.py src/werkzeug/utils.py",
    ),
    ("make a file name safe", "src/werkzeug/utils.py"),
    ("context local proxy objects", "src/werkzeug/local.py"),
    (
        "answer a conditional request with 304",
        "src/werkzeug/wrappers/response.py src/werkzeug/http.py",
    ),
    (
        "byte ranges of a response",
        (
            "src/werkzeug/datastructures/range.py src/werkzeug/wrappers/response.py "
            "src/werkzeug/http.py"
        ),
    ),
    ("dump a cookie with samesite", "src/werkzeug/http.py"),
    ("show a traceback in the browser", "src/werkzeug/debug/tbtools.py"),
    ("profile each request", "src/werkzeug/middleware/profiler.py"),
    (
        "limit the size of an upload",
        (
            "src/werkzeug/wsgi.py src/werkzeug/formparser.py "
            "src/werkzeug/wrappers/request.py src/werkzeug/sansio/multipart.py"
        ),
    ),
    ("raise a not found error", "src/werkzeug/exceptions.py"),
    ("convert an iri to a uri", "src/werkzeug/urls.py"),
    ("dispatch to several applications by prefix", "src/werkzeug/middleware/dispatcher.py"),
)

SETS: Mapping[str, Questions] = {"hotset": HOTSET, "httpx": HTTPX, "werkzeug": WERKZEUG}


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    named = (
        each.split("=", 1)
        for each in os.environ.get("HOTSET_BENCH_QUESTIONS", "").split(os.pathsep)
        if each
    )
    repositories = {"hotset": here} | {name: Path(path) for name, path in named}
    loud = "-v" in sys.argv
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as made:
        folder = Path(made)
        with Parsers(folder / "grammars") as parsers:
            tell(
                "code questions",
                {
                    name: {"hotset": ask(name, repository, folder, parsers, loud=loud)}
                    for name, repository in repositories.items()
                },
            )


def ask(
    name: str, repository: Path, folder: Path, parsers: Parsers, *, loud: bool
) -> dict[str, float]:
    """How many questions have a right file among the first hits."""
    root = folder / name
    root.mkdir()
    command = ["git", "archive", "--format=tar", "HEAD"]
    packed = subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(root, filter="data")
    (root / "bench" / Path(__file__).name).unlink(missing_ok=True)  # it holds the questions
    right: list[bool] = []
    with indexed(root, folder / f"{name}-index", WordVectors(), parsers) as (index, _):
        for words, answers in SETS[name]:
            paths = [hit.entry.path for hit in find_code(index, Query(words, most=_FIRST)).hits]
            right.append(any(path.startswith(tuple(answers.split())) for path in paths))
            if loud and not right[-1]:
                print(f"{len(right) - 1:>3} {words}\n      {paths}")
    held_out = right if name in _HELD_OUT else right[1::2]
    return {
        "questions": len(right),
        "right": sum(right),
        "held_out": len(held_out),
        "held_out_right": sum(held_out),
    }


if __name__ == "__main__":
    main()
