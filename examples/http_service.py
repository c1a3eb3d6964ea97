"""A service that runs jobs: POST /KEY says what a job needs, GET /KEY how it is doing.

Run it with `python examples/http_service.py 8080`, and talk to it:

    curl -d '{"vcore": "500m", "seconds": 5}' http://127.0.0.1:8080/job-1
    curl http://127.0.0.1:8080/job-1
"""

import asyncio
import json
import re
import sys
from contextlib import suppress

from yunikorn_actors import AsyncApplication, AsyncLease, AsyncScheduler, CoreError


async def run(ask: "asyncio.Future[AsyncLease]", seconds: float) -> None:
    """Here the work would be done. It ends early if its room is wanted back."""
    with suppress(CoreError, TimeoutError):
        async with await ask as lease:
            await asyncio.wait_for(lease.wanted_back.wait(), seconds)


async def answer(
    app: AsyncApplication, jobs: asyncio.TaskGroup, method: str, key: str, body: bytes
) -> str:
    if method == "POST":
        job = json.loads(body)
        seconds = float(job["seconds"])
        jobs.create_task(run(app.ask(key, vcore=job["vcore"]), seconds))
    return str(await app.explain(key))


async def main(port: int) -> None:
    async with AsyncScheduler() as s, asyncio.TaskGroup() as jobs:
        await s.add_node("here", vcore=4)
        app = await s.application("service", user="web", stays=True)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = re.search(r"(?im)^content-length: *(\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            method, path, _ = head.split(" ", 2)
            try:
                status, text = "200 OK", await answer(app, jobs, method, path.strip("/"), body)
            except (ValueError, TypeError, LookupError) as error:
                # What was asked for makes no sense: the text says why.
                status, text = "400 Bad Request", f"{type(error).__name__}: {error}"
            writer.write(f"HTTP/1.0 {status}\r\n\r\n{text}\n".encode())
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
            print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
            await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 8080))
