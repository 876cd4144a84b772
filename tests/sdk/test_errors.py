"""Failures reach the caller as errors of its own SDK, with a stable code, and are not multiplied."""

import socket
import time

import pytest

from settings import plain, plain_route, providers, target

ATTEMPTS = 3


def failing(sdk, client, kind: str, model="ask", **asked):
    """Asks, expects the SDK's error class `kind`, and returns the error."""
    with pytest.raises(getattr(sdk.kind.errors, kind)) as failure:
        client.say(model, "Hello", **asked)
    error = failure.value
    assert sdk.kind.code(error), error.body
    assert error.message
    assert error.response.headers["x-should-retry"] == "false"
    assert len(client.sent) == 1, "the SDK does not try again"
    return error


@pytest.mark.parametrize(
    ("behaviour", "kind", "status"),
    [
        ("status-400", "BadRequestError", 400),
        ("status-422", "APIStatusError", None),
        ("status-413", "APIStatusError", 413),
        ("context-exceeded", "BadRequestError", 400),
        ("content-policy", "BadRequestError", 400),
        ("quota-429", "RateLimitError", 429),
    ],
)
def a_refusal_of_the_request_is_passed_on_after_one_call(sdk, start, mock, behaviour, kind, status):
    client = sdk(start(plain(mock.url, sdk.kind.provider, behaviour)))
    error = failing(sdk, client, kind)
    assert status is None or error.status_code == status
    assert len(mock.calls()) == 1


def a_body_over_the_limit_is_refused_at_the_door(sdk, start, mock):
    client = sdk(start("[server]\nmax_body_bytes = 20000\n" + plain(mock.url, sdk.kind.provider, "healthy")))
    with pytest.raises(sdk.kind.errors.APIStatusError) as failure:
        client.say("ask", "word " * 10_000)
    assert failure.value.status_code == 413 and sdk.kind.code(failure.value)
    assert len(client.sent) == 1 and not mock.calls()
    assert client.say("ask", "word " * 1_000).text


def an_unknown_route_is_not_found(sdk, start, mock):
    client = sdk(start(plain(mock.url, sdk.kind.provider, "healthy")))
    error = failing(sdk, client, "NotFoundError", model="no-such-route")
    assert "no-such-route" in str(error.body)
    assert not mock.calls()


def a_caller_without_a_good_key_is_not_let_in(sdk, start, mock):
    config = plain(mock.url, sdk.kind.provider, "healthy")
    config += '[keys.app]\ntoken = { env = "APP_KEY" }\ntenant = "support"\n'
    gateway = start(config, {"APP_KEY": "the-right-key"})
    failing(sdk, sdk(gateway, key="another-key"), "AuthenticationError")
    assert not mock.calls()
    assert sdk(gateway, key="the-right-key").say("ask", "Hello").text
    # The Anthropic SDK sends a Bearer token; older clients of that API send x-api-key.
    key = {"authorization": "", "x-api-key": "the-right-key"}
    assert sdk(gateway, key="another-key").say("ask", "Hello", headers=key).text


def a_key_that_the_provider_refuses_is_not_the_fault_of_the_caller(sdk, start, mock):
    """An SDK would show AuthenticationError, and its user would look for a wrong key of their own."""
    client = sdk(start(plain(mock.url, sdk.kind.provider, "status-401")))
    error = failing(sdk, client, "APIStatusError")
    assert error.status_code != 401
    assert len(mock.calls()) == 1


@pytest.mark.parametrize("behaviour", ["status-500", "status-502", "status-503", "status-504", "status-529", "reset"])
def retries_of_the_sdk_and_of_the_gateway_do_not_multiply(sdk, start, mock, behaviour):
    """The SDK would send three requests, the gateway makes three attempts: together three, not nine."""
    extra = f"max_attempts = {ATTEMPTS}\n"
    client = sdk(start(plain(mock.url, sdk.kind.provider, behaviour, deadline="30s", extra=extra)))
    assert client.sdk.max_retries == 2, "the SDK is as it comes"
    error = failing(sdk, client, "APIStatusError")
    assert error.status_code >= 500
    assert error.response.headers["x-backstay-attempts"] == str(ATTEMPTS)
    assert len(mock.calls()) == ATTEMPTS


def a_wait_the_provider_asks_for_is_cut_before_it_reaches_the_sdk(sdk, start, mock):
    """One of the SDKs sleeps through any retry-after, however long."""
    client = sdk(start(plain(mock.url, sdk.kind.provider, "status-429+after=3000")))
    error = failing(sdk, client, "RateLimitError")
    assert float(error.response.headers.get("retry-after", "0")) <= 60
    assert len(mock.calls()) == 1, "no attempt stands before the provider's own time"


def a_silent_provider_is_an_error_before_the_deadline_is_far_gone(sdk, start, mock):
    client = sdk(start(plain(mock.url, sdk.kind.provider, "silence", deadline="3s")))
    began = time.monotonic()
    failing(sdk, client, "APIStatusError")
    assert time.monotonic() - began < 3.5


def a_provider_that_is_not_there_is_an_error_of_the_sdk(sdk, start, mock):
    with socket.socket() as free:  # bound and never listening: a connection is refused
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
        config = providers(nobody) + target("only", sdk.kind.provider, "healthy") + plain_route("ask", ["only"])
        failing(sdk, sdk(start(config)), "APIStatusError")
