"""A plain call through the gateway gives what the provider gave, and says how it came about."""

import pytest

from clients import PROVIDERS
from settings import plain, plain_route, providers, target

HEADERS = ["call-id", "outcome", "target", "tier", "attempts", "fingerprint"]


@pytest.mark.parametrize("provider", PROVIDERS)
def a_plain_call_gives_the_answer_of_the_provider(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "healthy")))
    answer = client.say("ask", "Where is my parcel?")
    direct = sdk(mock).say("healthy", "Where is my parcel?")
    assert answer.text == direct.text and answer.text
    assert answer.finish == direct.finish == "stop"
    assert answer.input_tokens > 0 and answer.output_tokens > 0
    assert len(client.sent) == 1
    through = mock.calls()[0]
    expected = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[provider]
    assert (through["model"], through["path"]) == ("healthy", expected)


@pytest.mark.parametrize("provider", PROVIDERS)
def the_reply_says_how_it_came_about(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "healthy")))
    first, second = client.say("ask", "One"), client.say("ask", "Two")
    for answer in (first, second):
        assert all(answer.headers.get(f"x-backstay-{name}") for name in HEADERS), answer.headers
        assert answer.headers["x-backstay-attempts"] == "1"
        assert "only" in answer.headers["x-backstay-target"]
    assert first.headers["x-backstay-call-id"] != second.headers["x-backstay-call-id"]
    assert first.headers["x-backstay-fingerprint"] != second.headers["x-backstay-fingerprint"]
    assert client.say("ask", "One").headers["x-backstay-fingerprint"] == first.headers["x-backstay-fingerprint"]


def the_key_of_the_caller_does_not_go_upstream(sdk, start, mock):
    """The mock shows a key by its length only; ours has another length than the operator's."""
    client = sdk(start(plain(mock.url, sdk.kind.provider, "healthy")), key="a-key-of-the-caller")
    client.say("ask", "Hello")
    seen = {name: value for name, value in mock.calls()[0]["headers"].items() if name in ("authorization", "x-api-key")}
    assert seen and all("19 chars" not in value and "26 chars" not in value for value in seen.values()), seen


def a_failure_that_passes_is_not_seen_by_the_caller(sdk, start, mock):
    client = sdk(start(plain(mock.url, sdk.kind.provider, "status-503-once")))
    answer = client.say("ask", "Hello")
    assert answer.text and answer.headers["x-backstay-attempts"] == "2"
    assert (len(mock.calls()), len(client.sent)) == (2, 1)


def the_next_tier_answers_when_the_first_is_down(sdk, start, mock):
    other = "anthropic" if sdk.kind.provider == "openai" else "openai"
    config = (
        providers(mock.url)
        + target("first", sdk.kind.provider, "status-503")
        + target("second", other, "healthy")
        + plain_route("ask", ["first", "second"])
    )
    client = sdk(start(config))
    answer = client.say("ask", "Hello")
    assert answer.text and "second" in answer.headers["x-backstay-target"]
    assert len(mock.calls_to("healthy")) == 1 and len(client.sent) == 1


def the_cap_of_the_caller_goes_upstream(sdk, start, mock):
    client = sdk(start(plain(mock.url, sdk.kind.provider, "healthy")))
    client.say("ask", "Hello", cap=77)
    assert mock.calls()[0]["max_tokens"] == 77
