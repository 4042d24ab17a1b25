"""`hotset memory export|import`: memories as files, for those who like files."""

from __future__ import annotations

from pathlib import Path

import click

from hotset.surfaces.cli.ending import FOUND, OK
from hotset.surfaces.cli.memories import catch_up, no_encode, opened, progress
from hotset.surfaces.cli.memory_telling import counted
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import emit_json, say

_FORMATS = click.Choice(["markdown", "loki"])


@click.command(
    epilog=examples("hotset memory export notes", "hotset memory export .loki/memory --format loki")
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@of_project
@click.option(
    "--format",
    "form",
    type=_FORMATS,
    default="markdown",
    show_default=True,
    help="loki: JSON by layers and kinds.",
)
@no_encode
@as_json
def export(chosen: Chosen, folder: Path, *, form: str, no_encode: bool, as_json: bool) -> int:
    """Write every memory into FOLDER, as files that people and other programs read. `import` reads
    them back."""
    with opened(chosen) as memories:
        if not no_encode:
            catch_up(memories, chosen)
        with progress(chosen) as moved:
            written = memories.export(folder, form, moved)
    if as_json:
        emit_json({"folder": str(folder), "format": form, "memories": written})
    say(f"{counted(written)} written to {folder}", quiet=chosen.quiet)
    return OK


@click.command(
    "import",
    epilog=examples(
        "hotset memory import notes", "hotset memory import .loki/memory --format loki --trusted"
    ),
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@of_project
@click.option("--format", "form", type=_FORMATS, help="[default: told from the files]")
@click.option(
    "--trusted",
    is_flag=True,
    help="You stand for what it says: procedures and pitfalls count at once.",
)
@as_json
def import_(chosen: Chosen, folder: Path, *, form: str | None, trusted: bool, as_json: bool) -> int:
    """Read memories from FOLDER. What is there already stays; what you edited becomes a new
    version.

    Procedures and pitfalls of somebody else wait for your yes (hotset memory confirm), unless you
    trust them all.
    """
    with opened(chosen, makes=True) as memories, progress(chosen) as moved:
        taken = memories.import_(folder, form or "", trusted=trusted, progress=moved)
    if as_json:
        emit_json({"folder": str(folder), "memories": taken})
    say(f"{counted(taken)} new or changed" if taken else "nothing new", quiet=chosen.quiet)
    return OK if taken else FOUND
