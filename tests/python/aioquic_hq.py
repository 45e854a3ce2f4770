"""A small client and server of hq-interop (HTTP/0.9 over QUIC) on aioquic, to try Keyway's with.

    get HOST PORT CA FILE...      fetches /FILE and checks it against ./FILE
    serve CERTIFICATE KEY         serves the files of this folder, and prints its address
"""

import asyncio
import os
import sys

from aioquic.asyncio import connect, serve
from aioquic.quic.configuration import QuicConfiguration


def configuration(is_client):
    return QuicConfiguration(alpn_protocols=["hq-interop"], is_client=is_client)


async def fetch(client, file):
    reader, writer = await client.create_stream()
    writer.write(f"GET /{file}\r\n".encode())
    writer.write_eof()
    came = await reader.read()
    with open(file, "rb") as expected:
        assert came == expected.read(), f"{file}: {len(came)} bytes came, not the file's"


async def get(host, port, ca, *files):
    settings = configuration(is_client=True)
    settings.load_verify_locations(ca)
    async with connect(host, int(port), configuration=settings) as client:
        await asyncio.gather(*(fetch(client, file) for file in files))
        # New keys (RFC 9001 § 6), and once more.
        client.request_key_update()
        await fetch(client, files[0])


async def answer(reader, writer):
    line = await reader.readline()
    path = os.path.basename(line.decode().removeprefix("GET /").strip())
    with open(path, "rb") as file:
        writer.write(file.read())
    writer.write_eof()


async def serve_files(certificate, key):
    settings = configuration(is_client=False)
    settings.load_cert_chain(certificate, key)
    tasks = set()

    def stream(reader, writer):
        task = asyncio.ensure_future(answer(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await serve("127.0.0.1", 0, configuration=settings, stream_handler=stream)
    host, port = server._transport.get_extra_info("sockname")
    print(f"{host}:{port}", flush=True)
    await asyncio.Event().wait()


command, *arguments = sys.argv[1:]
asyncio.run({"get": get, "serve": serve_files}[command](*arguments))
