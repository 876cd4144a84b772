"""One streamed call on a connection of its own, read cheaply and judged when it is over."""

import asyncio
import json

PROMPT = "Tell me what became of the parcel."
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {"order": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["order", "days"],
        },
    },
}


def request(model: str, mode: str | None, tools: bool) -> bytes:
    body = {"model": model, "stream": True, "max_tokens": 4000, "messages": [{"role": "user", "content": PROMPT}]}
    if tools:
        body["tools"] = [TOOL]
    payload = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(payload)}\r\n" + (f"x-backstay-stream: {mode}\r\n" if mode else "") + "\r\n"
    return head.encode() + payload


class Reader(asyncio.Protocol):
    """Collects a reply; `over` is set when it is whole or the connection is gone."""

    def __init__(self):
        self.raw, self.needed, self.over = bytearray(), None, asyncio.get_running_loop().create_future()

    def data_received(self, piece):
        self.raw += piece
        if self.needed is None:
            self._read_head()
        # A chunked body ends so, and its events hold no CRLF.
        if self.raw.endswith(b"\r\n0\r\n\r\n") if self.needed == 0 else self.needed and len(self.raw) >= self.needed:
            self._end()

    def connection_lost(self, _why):
        self._end()

    def _end(self):
        if not self.over.done():
            self.over.set_result(None)

    def _read_head(self):
        """Sets the length of the whole reply; 0 for a chunked one."""
        end = self.raw.find(b"\r\n\r\n")
        if end >= 0:
            length = [line for line in self.raw[:end].lower().split(b"\r\n") if line.startswith(b"content-length:")]
            self.needed = end + 4 + int(length[0].split(b":")[1]) if length else 0


class Reply:
    """What a caller makes of a reply: `whole` only with a finish and the end of the protocol."""

    def __init__(self, raw: bytes):
        self.status = int(raw.split(b" ", 2)[1]) if raw.startswith(b"HTTP/1.1 ") else 0
        self.text, self.arguments, self.finish, self.error, done = [], [], None, None, False
        for line in raw.split(b"\n"):
            if not line.startswith(b"data: "):
                continue
            if line.startswith(b"data: [DONE]"):
                done = True
                continue
            self._event(line[6:])
        self.said = "".join(self.text) + "".join(self.arguments)
        self.whole = self.status == 200 and done and self.finish is not None and self.error is None

    def _event(self, text: bytes):
        try:
            event = json.loads(text)
        except ValueError:  # cut in the middle
            self.error = self.error or "broken event"
            return
        if event.get("error"):
            self.error = event["error"].get("code") or "error"
        for choice in event.get("choices", []):
            self.finish = choice.get("finish_reason") or self.finish
            delta = choice.get("delta", {})
            self.text.append(delta.get("content") or "")
            for call in delta.get("tool_calls") or []:
                self.arguments.append(call.get("function", {}).get("arguments") or "")

    @property
    def trouble(self) -> str:
        return self.error or (f"status {self.status}" if self.status != 200 else "no end")


async def call(port: int, raw: bytes, patience: float, hang_up: float | None = None, abrupt=False) -> Reply | None:
    """The reply, or `None` if the caller hung up `hang_up` seconds after it asked. A reply that does not
    end within `patience` is a TimeoutError."""
    transport, reader = await asyncio.get_running_loop().create_connection(Reader, "127.0.0.1", port)
    try:
        transport.write(raw)
        await asyncio.wait({reader.over}, timeout=patience if hang_up is None else hang_up)
        if reader.over.done():
            return Reply(bytes(reader.raw))
        if hang_up is None:
            raise TimeoutError
        if abrupt:
            transport.abort()
        return None
    finally:
        transport.close()
