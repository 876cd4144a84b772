"""The asynchronous clients, many calls at once."""

import asyncio
import json

import anthropic
import openai
import pytest

from clients import PROVIDERS, Anthropic, OpenAi
from judge import is_a_triage
from settings import plain, triage

AT_ONCE = 24


def client_of(sdk, gateway):
    if sdk.kind is OpenAi:
        return openai.AsyncOpenAI(base_url=gateway.url + "/v1", api_key="sdk-test")
    assert sdk.kind is Anthropic
    return anthropic.AsyncAnthropic(base_url=gateway.url, api_key="sdk-test")


async def say(client, model, text) -> str:
    messages = [{"role": "user", "content": text}]
    if isinstance(client, openai.AsyncOpenAI):
        whole = await client.chat.completions.create(model=model, messages=messages)
        return whole.choices[0].message.content
    whole = await client.messages.create(model=model, max_tokens=300, messages=messages)
    return whole.content[0].text


async def stream(client, model, text) -> str:
    messages, parts = [{"role": "user", "content": text}], []
    if isinstance(client, openai.AsyncOpenAI):
        async for chunk in await client.chat.completions.create(model=model, messages=messages, stream=True):
            parts += [choice.delta.content for choice in chunk.choices if choice.delta.content]
    else:
        async with client.messages.stream(model=model, max_tokens=300, messages=messages) as pieces:
            async for piece in pieces.text_stream:
                parts.append(piece)
    return "".join(parts)


@pytest.mark.parametrize("provider", PROVIDERS)
def many_plain_and_streamed_calls_at_once_get_their_own_answers(sdk, start, mock, provider):
    gateway = start(plain(mock.url, provider, "healthy+n=12+gap=5ms"))

    async def all_of_them():
        async with client_of(sdk, gateway) as client:
            questions = [f"What about order {number}?" for number in range(AT_ONCE)]
            whole = await asyncio.gather(*(say(client, "ask", question) for question in questions))
            streamed = await asyncio.gather(*(stream(client, "ask", question) for question in questions))
            return whole, streamed

    whole, streamed = asyncio.run(all_of_them())
    assert whole == streamed and all(whole)
    assert len(mock.calls()) == 2 * AT_ONCE


def every_ticket_at_once_gets_a_valid_answer(sdk, start, mock, tickets):
    gateway = start(triage(mock.url, ("openai", "right-on-second"), ("anthropic", "healthy"), last_resort=True))

    async def all_of_them():
        async with client_of(sdk, gateway) as client:
            return await asyncio.gather(*(say(client, "triage", ticket["text"]) for ticket in tickets))

    for ticket, answer in zip(tickets, asyncio.run(all_of_them())):
        is_a_triage(json.loads(answer), ticket["text"])
