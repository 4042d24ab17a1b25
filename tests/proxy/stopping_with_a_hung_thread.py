"""A proxy in which something hangs from the start. Arguments: its folder, its upstream, the file
that says it is ready, what."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

from hotset.config import load
from hotset.surfaces.proxy.address import Address
from hotset.surfaces.proxy.server import serve


def main(folder: str, upstream: str, ready_file: str, where: str) -> None:
    never = threading.Event()

    def ready(address: Address, _link: str) -> None:
        """On the event loop."""
        if where == "pool":
            for _ in range(3):
                asyncio.get_running_loop().run_in_executor(None, never.wait)
        elif where == "thread":
            threading.Thread(target=never.wait).start()
        elif where == "task":
            asyncio.get_running_loop().create_task(_stubborn())
        Path(ready_file).write_text(str(address.port))

    config = load(
        data=folder, project=folder, port=0, openai_url=f"{upstream}/v1", environ={"HOME": folder}
    )
    serve(config, ready=ready)
    print("stopped")


async def _stubborn() -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
