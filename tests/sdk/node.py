"""Drives `node/streams.mjs`, so that the Node SDKs are asked and judged like those of Python."""

import asyncio
import itertools
import json
import os
import subprocess
import threading
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path

from asked import TOOLS
from folds import Answer, finish_of
from plant import CLEAN, STOP_SECONDS
from ways import Ask, Outcome

# `run` installs the packages beside a copy of the script and says here where; empty: there are none.
FOLDER = os.environ.get("BACKSTAY_SDK_NODE", "")

# Far over every deadline of a route here.
ANSWER_SECONDS = 60.0

# The ai-sdk has words of its own.
FINISHES = {"tool-calls": "tools"}


class Node:
    """The script as a process: asks go in, outcomes come out in the order they end."""

    def __init__(self, log: Path):
        self.errors = open(log, "wb")
        self.child = subprocess.Popen(
            ["node", "streams.mjs"],
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=CLEAN,
        )
        self.waiting: dict[int, Future] = {}
        self.ids = itertools.count()
        self.lock = threading.Lock()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.child.stdout:
            found = json.loads(line)
            future = self.waiting.pop(found.pop("id"))
            if future.set_running_or_notify_cancel():
                future.set_result(found)

    async def ask(self, ask: dict) -> dict:
        future = Future()
        with self.lock:
            number = next(self.ids)
            self.waiting[number] = future
            self.child.stdin.write(json.dumps({"id": number, **ask}).encode() + b"\n")
            self.child.stdin.flush()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), ANSWER_SECONDS)
        except TimeoutError:
            log = Path(self.errors.name).read_text(errors="replace")
            raise AssertionError(f"{ask['way']} never ended; {log}") from None

    def stop(self):
        self.child.stdin.close()
        try:
            self.child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait(STOP_SECONDS)
        self.reader.join(STOP_SECONDS)
        self.child.stdout.close()
        self.errors.close()


@dataclass(frozen=True)
class NodeWay:
    """One method of one Node SDK."""

    name: str
    node: Node
    can_abort = True

    @property
    def drops_codes(self) -> bool:
        """Whether it reads only the type and the message of an error in a stream."""
        return self.name == "ai-sdk-anthropic"

    @property
    def shapes_by_tool(self) -> bool:
        """Whether it asks for a shape as the arguments of a tool, as it does for models it does not know."""
        return self.name == "ai-sdk-anthropic"

    async def ask(self, ask: Ask) -> Outcome:
        found = await self.node.ask(
            {"way": self.name, "text": ask.text, "headers": ask.headers, "tools": TOOLS, **asdict(ask)}
        )
        if "finish" not in found:
            return Outcome(**found)
        answer = Answer(
            text=found["text"],
            finish=FINISHES.get(found["finish"], finish_of(found["finish"])),
            tools=[tuple(call) for call in found["tools"]],
            pieces=found["pieces"],
        )
        answer.input_tokens, answer.output_tokens = found["usage"]
        return Outcome(found["pieces"], answer, found["value"])


NAMES = [
    "openai-node-create",
    "openai-node-stream",
    "anthropic-node-create",
    "anthropic-node-stream",
    "ai-sdk-openai",
    "ai-sdk-compatible",
    "ai-sdk-anthropic",
]


def ways(node: Node) -> list[NodeWay]:
    return [NodeWay(name, node) for name in NAMES]
