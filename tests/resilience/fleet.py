"""Mock providers, a gateway and a small HTTP client: what the scenarios stand on. Standard library only."""

import asyncio
import json
import pathlib
import random
import re
import signal
import time

READY = re.compile(r"listening on (http://127\.0\.0\.1:(\d+))")


class Process:
    """A program of ours, ended by its id."""

    def __init__(self, name, child, port):
        self.name, self.child, self.port = name, child, port

    @classmethod
    async def start(cls, folder: pathlib.Path, name: str, *command: str):
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            child = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out)
        end = time.monotonic() + 10
        while time.monotonic() < end and child.returncode is None:
            found = READY.search(log.read_text(errors="replace"))
            if found:
                return cls(name, child, int(found.group(2)))
            await asyncio.sleep(0.05)
        raise SystemExit(f"{name} did not start:\n{log.read_text(errors='replace')[-2000:]}")

    async def stop(self):
        if self.child.returncode is None:
            self.child.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(self.child.wait(), 15)
            except TimeoutError:
                self.child.kill()
                await self.child.wait()


class Client:
    """HTTP/1.1 over kept connections. An answer is (status, headers, body)."""

    def __init__(self, port: int):
        self.port, self.idle = port, []

    async def call(self, method: str, path: str, body=None, headers=(), patience=30.0):
        """Sent again, once, where a kept connection turns out to have been closed meanwhile."""
        payload = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(payload)}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers) + "\r\n"
        raw = head.encode() + payload
        if self.idle:
            try:
                return await asyncio.wait_for(self._ask(raw, self.idle.pop()), patience)
            except (ConnectionError, asyncio.IncompleteReadError) as broken:
                if getattr(broken, "partial", b""):
                    raise
        return await asyncio.wait_for(self._ask(raw, None), patience)

    async def _ask(self, raw: bytes, pair):
        pair = pair or await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = pair
        try:
            writer.write(raw)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            status = int(lines[0].split(" ")[1])
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
            body = await self._body(reader, headers)
        except BaseException:
            writer.close()
            raise
        if headers.get("connection") == "close":
            writer.close()
        else:
            self.idle.append(pair)
        return status, headers, body

    @staticmethod
    async def _body(reader, headers):
        if "chunked" not in headers.get("transfer-encoding", ""):
            return await reader.readexactly(int(headers.get("content-length", 0)))
        whole = b""
        while size := int(await reader.readline(), 16):
            whole += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return whole

    def close(self):
        for _, writer in self.idle:
            writer.close()
        self.idle.clear()


class Mock:
    """A mock provider: what it is to play, and what it saw."""

    def __init__(self, process: Process):
        self.process, self.client = process, Client(process.port)

    async def play(self, model: str, *steps: str):
        await self._post("/_mock/script", {"model": model, "steps": list(steps)})

    async def limit(self, model: str, **numbers):
        await self._post("/_mock/limits", {"model": model, **numbers})

    async def _post(self, path, body):
        status, _, said = await self.client.call("POST", path, body)
        assert status == 200, said

    async def log(self):
        _, _, body = await self.client.call("GET", "/_mock/log")
        return json.loads(body)

    async def take_log(self):
        """What was seen since the last take: the mock keeps the newest 20,000 only."""
        log = await self.log()
        await self.client.call("POST", "/_mock/reset")
        return log


class Fleet:
    """Two mocks and a gateway, started for one scenario."""

    def __init__(self, binary: str, folder: pathlib.Path):
        self.binary, self.folder, self.running = binary, folder, []

    async def __aenter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.primary = Mock(await self._start("primary", "mock", "--listen", "127.0.0.1:0"))
        self.mirror = Mock(await self._start("mirror", "mock", "--listen", "127.0.0.1:0"))
        return self

    async def gateway(self, config: str) -> Client:
        ports = {"@PRIMARY@": self.primary.process.port, "@MIRROR@": self.mirror.process.port}
        for mark, port in ports.items():
            config = config.replace(mark, f"http://127.0.0.1:{port}/v1")
        path = self.folder / "backstay.toml"
        path.write_text(config)
        serve = await self._start("gateway", "serve", "-c", str(path), "--listen", "127.0.0.1:0")
        return Client(serve.port)

    async def _start(self, name, *arguments):
        process = await Process.start(self.folder, name, self.binary, *arguments)
        self.running.append(process)
        return process

    async def __aexit__(self, *_):
        for process in reversed(self.running):
            await process.stop()


class Call:
    """One call as its caller saw it. Times are seconds since the load began."""

    __slots__ = ("at", "took", "status", "tier", "code")

    def __init__(self, at, took, status, tier, code):
        self.at, self.took, self.status, self.tier, self.code = at, took, status, tier, code


async def ask(client: Client, began: float, body: dict, headers=(), patience=30.0) -> Call:
    at = time.monotonic()
    try:
        status, told, _ = await client.call("POST", "/v1/chat/completions", body, headers, patience)
    except (OSError, EOFError, TimeoutError) as broken:
        return Call(at - began, time.monotonic() - at, 0, None, type(broken).__name__)
    took = time.monotonic() - at
    return Call(at - began, took, status, told.get("x-backstay-tier"), told.get("x-backstay-code"))


async def load(client: Client, rate: float, seconds: float, body: dict, on_second=None) -> list:
    """Calls at even distances, however long each takes: an open loop, as callers are."""
    began, calls, tasks, second = time.monotonic(), [], set(), 0
    for index in range(int(rate * seconds)):
        due = began + index / rate
        if (pause := due - time.monotonic()) > 0:
            await asyncio.sleep(pause)
        task = asyncio.ensure_future(ask(client, began, body))
        tasks.add(task)
        task.add_done_callback(lambda done: (tasks.discard(done), calls.append(done.result())))
        if on_second and (now := int(time.monotonic() - began)) > second:
            second = now
            on_second(second)
    if tasks:
        await asyncio.wait(tasks)
    return sorted(calls, key=lambda call: call.at)


def question(route: str, words: int = 20, cap: int = 60) -> dict:
    text = " ".join(random.choice(["light", "house", "rock", "sea", "ship"]) for _ in range(words))
    return {"model": route, "max_tokens": cap, "messages": [{"role": "user", "content": text}]}
