"""A TCP proxy that gives every node a round trip of so many ms: delay.py MS PORT TO_PORT ADDRESS...

What comes in is let out later, each way by half; nothing is reordered and nothing is slowed down but by that.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import sys

PIECE = 1 << 16


async def later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Pass on what is read, `delay` seconds after it was."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

    async def out() -> None:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    task = asyncio.create_task(out())
    try:
        while data := await reader.read(PIECE):
            queue.put_nowait((loop.time() + delay, data))
    except ConnectionError:
        pass
    queue.put_nowait((loop.time() + delay, b""))
    await asyncio.gather(task, return_exceptions=True)


async def accepted(
    delay: float, port: int, near_reader: asyncio.StreamReader, near_writer: asyncio.StreamWriter
) -> None:
    address = near_writer.get_extra_info("sockname")[0]
    # The handshake of TCP itself is a round trip too.
    await asyncio.sleep(2 * delay)
    far_reader, far_writer = await asyncio.open_connection(address, port)
    for writer in (near_writer, far_writer):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    await asyncio.gather(later(near_reader, far_writer, delay), later(far_reader, near_writer, delay))


async def serve(milliseconds: float, port: int, to_port: int, addresses: list[str]) -> None:
    delay = milliseconds / 2000
    for address in addresses:
        await asyncio.start_server(functools.partial(accepted, delay, to_port), address, port)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
