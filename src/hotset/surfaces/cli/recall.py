"""`hotset recall`: the exact bytes of one page."""

from __future__ import annotations

import base64
import sys
from typing import Any

import click

from hotset.runtime.reader import find_content, gist_of, open_existing
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import emit, emit_json, plain


@click.command(
    epilog=examples(
        "hotset recall p3f9a",
        "hotset recall toolu_01A09q90qw90lq917835lq9 > result.txt",
        "hotset recall p3f9a --json",
    )
)
@click.argument("id")
@of_project
@as_json
def recall(chosen: Chosen, id: str, as_json: bool) -> None:
    """The exact bytes of one page, on stdout. A terminal shows control codes instead of obeying
    them.

    ID is a page's id or the beginning of one, a tool call's id (its result is meant), or content's
    SHA-256.
    """
    with open_existing(chosen.config()) as store:
        page, address = find_content(store, id)
        content = store.content(address)
        about = gist_of(store, page, content) if page is not None else None
    if as_json:
        emit_json(
            {"page": page, "gist": about, "digest": address, "size": len(content), **_told(content)}
        )
        return
    if (
        sys.stdout.isatty()
    ):  # what moves the cursor is shown and not done; a file or a pipe gets the bytes
        emit(plain(content.decode("utf-8", "replace")).removesuffix("\n"))
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _told(content: bytes) -> dict[str, Any]:
    """Content that is text as text, anything else in base64: both come back byte for byte."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
