"""The ways in which the Python SDKs read a stream, behind one face with those of Node (`node.py`).

A way takes an `Ask` and gives an `Outcome`: an answer, an error, or that it left as it was told to.
"""

import asyncio
import inspect
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anthropic
import openai

from asked import SCHEMA, TOOLS, Verdict
from clients import Anthropic, OpenAi
from folds import Answer

USAGE = {"include_usage": True}

# Made once: every client would read the machine's certificates again.
TRUST = ssl.create_default_context()


@dataclass(frozen=True)
class Ask:
    """One stream that is asked for."""

    url: str
    model: str
    what: str = "text"  # text | tools | shape
    mode: str | None = None  # said in the header; None: the route's own
    silence: float | None = None  # the longest silence between two reads, in seconds; None: the SDK's default
    leave_after: int | None = None  # leave after so many pieces of text
    leave_within: float | None = None  # leave after so many seconds; for ways that can

    @property
    def headers(self) -> dict:
        return {"x-backstay-stream": self.mode} if self.mode else {}

    @property
    def text(self) -> str:
        return {"text": "What about order 1182?", "tools": "Pay 500 cents back.", "shape": "How was it?"}[self.what]


@dataclass
class Outcome:
    """What a way made of a stream: an answer, or an error, or neither, if it left."""

    pieces: int = 0
    answer: Answer | None = None
    value: dict | None = None  # what the SDK parsed
    error: str | None = None  # the name of the error's class
    own: bool = False  # the class is the SDK's own
    code: str | None = None  # the stable code in the error's body
    said: str = ""  # the error's message, for a test that fails


class Left(Exception):
    """Goes through the SDK's `with` block, as a caller's own exception does."""


@dataclass
class Reading:
    """The text that has come so far."""

    ask: Ask
    parts: list[str] = field(default_factory=list)

    def take(self, text: str | None):
        if text:
            self.parts.append(text)
        if self.ask.leave_after is not None and len(self.parts) >= self.ask.leave_after:
            raise Left


# A way is written once for both clients of an SDK: what the asynchronous one awaits, the other has.


async def settled(value):
    return await value if inspect.isawaitable(value) else value


async def each(stream):
    if hasattr(stream, "__aiter__"):
        async for item in stream:
            yield item
    else:
        for item in stream:
            yield item


@asynccontextmanager
async def opened(manager):
    if hasattr(manager, "__aenter__"):
        async with manager as stream:
            yield stream
    else:
        with manager as stream:
            yield stream


def openai_body(ask: Ask, shape_key: str | None = None) -> dict:
    tools = TOOLS if ask.what == "tools" else None
    by_hand = SCHEMA if ask.what == "shape" and shape_key is None else None
    body = OpenAi.body(ask.model, ask.text, schema=by_hand, tools=tools)
    if ask.what == "shape" and shape_key:
        body[shape_key] = Verdict
    return body | {"stream_options": USAGE, "extra_headers": ask.headers}


def anthropic_body(ask: Ask, shape_key: str | None = None) -> dict:
    tools = TOOLS if ask.what == "tools" else None
    by_hand = SCHEMA if ask.what == "shape" and shape_key is None else None
    body = Anthropic.body(ask.model, ask.text, schema=by_hand, tools=tools)
    if ask.what == "shape" and shape_key:
        body[shape_key] = Verdict
    return body | {"extra_headers": ask.headers}


async def by_hand(stream, ask, reading, fold) -> tuple[Answer, dict | None]:
    """The plain stream of either SDK, put together here."""
    async with opened(stream):
        async for item in each(stream):
            reading.take(fold.take(item))
    whole = fold.whole()
    return whole, Verdict.model_validate_json(whole.text).model_dump() if ask.what == "shape" else None


async def openai_create(client, ask, reading):
    stream = await settled(client.chat.completions.create(**openai_body(ask), stream=True))
    return await by_hand(stream, ask, reading, OpenAi.Fold())


async def openai_stream(client, ask, reading):
    async with opened(client.chat.completions.stream(**openai_body(ask, "response_format"))) as stream:
        async for event in each(stream):
            reading.take(event.delta if event.type == "content.delta" else None)
        whole = await settled(stream.get_final_completion())
    parsed = whole.choices[0].message.parsed
    return OpenAi.answer_of(whole), parsed.model_dump() if parsed else None


async def anthropic_create(client, ask, reading):
    stream = await settled(client.messages.create(**anthropic_body(ask), stream=True))
    return await by_hand(stream, ask, reading, Anthropic.Fold())


async def anthropic_stream(client, ask, reading):
    async with opened(client.messages.stream(**anthropic_body(ask, "output_format"))) as stream:
        async for event in each(stream):
            reading.take(event.text if event.type == "text" else None)
        whole = await settled(stream.get_final_message())
    return Anthropic.answer_of(whole), whole.parsed_output.model_dump() if whole.parsed_output else None


async def anthropic_text(client, ask, reading):
    async with opened(client.messages.stream(**anthropic_body(ask, "output_format"))) as stream:
        async for text in each(stream.text_stream):
            reading.take(text)
        whole = await settled(stream.get_final_message())
    return Anthropic.answer_of(whole), whole.parsed_output.model_dump() if whole.parsed_output else None


@dataclass(frozen=True)
class Way:
    """One method of one client, used as its SDK documents it."""

    name: str
    read: object
    client: type
    drops_codes = False
    shapes_by_tool = False

    @property
    def dialect(self) -> type:
        return OpenAi if self.client in (openai.OpenAI, openai.AsyncOpenAI) else Anthropic

    @property
    def can_abort(self) -> bool:
        """Whether it can leave while nothing comes: a thread that waits for bytes cannot."""
        return self.client in (openai.AsyncOpenAI, anthropic.AsyncAnthropic)

    async def ask(self, ask: Ask) -> Outcome:
        if self.can_abort:
            return await self._outcome(ask)
        return await asyncio.to_thread(lambda: asyncio.run(self._outcome(ask)))

    def _client(self, ask: Ask):
        url = ask.url + "/v1" if self.dialect is OpenAi else ask.url
        errors = self.dialect.errors
        http = errors.DefaultAsyncHttpxClient if self.can_abort else errors.DefaultHttpxClient
        more = {} if ask.silence is None else {"timeout": ask.silence}
        return self.client(base_url=url, api_key="sdk-test", http_client=http(verify=TRUST), **more)

    async def _outcome(self, ask: Ask) -> Outcome:
        reading = Reading(ask)
        outcome = Outcome()
        try:
            async with opened(self._client(ask)) as client, asyncio.timeout(ask.leave_within):
                outcome.answer, outcome.value = await self.read(client, ask, reading)
        except (Left, TimeoutError):
            pass
        except Exception as error:
            outcome.error, outcome.said = type(error).__name__, str(error)
            outcome.own = isinstance(error, self.dialect.errors.APIError)
            outcome.code = self.dialect.code(error) if outcome.own else None
        outcome.pieces = len(reading.parts)
        return outcome


PYTHON = [
    Way("openai-create", openai_create, openai.OpenAI),
    Way("openai-create-async", openai_create, openai.AsyncOpenAI),
    Way("openai-stream", openai_stream, openai.OpenAI),
    Way("openai-stream-async", openai_stream, openai.AsyncOpenAI),
    Way("anthropic-create", anthropic_create, anthropic.Anthropic),
    Way("anthropic-create-async", anthropic_create, anthropic.AsyncAnthropic),
    Way("anthropic-stream", anthropic_stream, anthropic.Anthropic),
    Way("anthropic-text-async", anthropic_text, anthropic.AsyncAnthropic),
]
