"""`hotset status`: is a proxy serving, and what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hotset.errors import NotFound
from hotset.store.port import Census
from hotset.surfaces.cli import meant
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import count, emit, emit_json, moment, size, span
from hotset.surfaces.proxy.address import Address, ask, read_note

_OUR_OWN = ("nonce",)
"""What the proxy tells that is of no use to anybody but us."""


@click.command(epilog=examples("hotset status", "hotset status --json"))
@of_project
@as_json
def status(chosen: Chosen, as_json: bool) -> None:
    """Is a proxy serving this project, since when, what went through it, and how much is kept."""
    config = chosen.config()
    address = read_note(config.folder)
    said = ask(address) if address else None
    census = _census(chosen)
    on_disk = _bytes_below(config.folder)
    if as_json:
        proxy = {name: value for name, value in (said or {}).items() if name not in _OUR_OWN} or None
        if proxy is not None and address is not None:
            proxy |= {"port": address.port, **address.announce()}
        emit_json(
            {"project": config.project.as_posix(), "folder": str(config.folder), "proxy": proxy, "store": census, "disk": on_disk}
        )
        return
    emit(f"project  {config.project}")
    if said is not None and address is not None:
        _tell_proxy(said, address)
    else:
        emit("proxy    none serves; start with: hotset up")
    if census is None:
        emit(f"store    empty, in {config.folder}")
        return
    emit(
        f"store    {count(census.sessions, 'session')}, {count(census.turns, 'turn')}, {count(census.pages, 'page')}; "
        f"{size(census.content_bytes)} of content in {size(census.stored_bytes)}"
    )
    emit(f"disk     {size(on_disk)} in {config.folder}")


def _tell_proxy(said: dict[str, Any], address: Address) -> None:
    emit(f"proxy    {address.root}")
    emit(f"serving  since {moment(said['started'])} ({span(said['uptime'])}), process {said['pid']}")
    told = f"{count(said['requests'], 'call')}, {said['kept']:,} kept, {said['bypassed']:,} bypassed"
    emit(f"calls    {told}" + ("; ask: hotset doctor" if said["bypassed"] or said["store"] != "ok" else ""))
    if said["store"] != "ok":
        emit(f"keeping  nothing at the moment: {said['store']}")
    for name, url in said["upstreams"].items():
        emit(f"to       {name}: {url}")


def _census(chosen: Chosen) -> Census | None:
    try:
        with meant.reading(chosen.config()) as store:
            return store.census()
    except NotFound:
        return None


def _bytes_below(folder: Path) -> int:
    """What the folder takes up on disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) if folder.exists() else 0
