"""A schema that the caller sends is kept, whatever the provider makes of it."""

import pytest

from asked import SCHEMA, Verdict
from clients import PROVIDERS
from settings import plain, plain_route, providers, target


@pytest.mark.parametrize("provider", PROVIDERS)
def a_schema_of_the_caller_is_kept(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "healthy")))
    Verdict.model_validate_json(client.say("ask", "How was it?", schema=SCHEMA).text)
    assert mock.calls()[0]["has_schema"]


@pytest.mark.parametrize("provider", PROVIDERS)
def the_parse_method_of_the_sdk_gives_an_instance(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "healthy")))
    assert isinstance(client.parse("ask", "How was it?", Verdict), Verdict)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("bad", ["fenced", "wrong-schema", "wrong-type", "extra-key", "enum-miss"])
def a_reply_that_misses_the_schema_of_the_caller_does_not_reach_it(sdk, start, mock, provider, bad):
    config = (
        providers(mock.url)
        + target("first", provider, bad)
        + target("second", provider, "healthy")
        + plain_route("ask", ["first", "second"])
    )
    client = sdk(start(config))
    assert isinstance(client.parse("ask", "How was it?", Verdict), Verdict)
    assert len(client.sent) == 1 and mock.calls_to(bad)


@pytest.mark.parametrize("provider", PROVIDERS)
def a_schema_of_the_caller_that_nobody_meets_is_an_error_of_the_sdk(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "wrong-schema")))
    with pytest.raises(sdk.kind.errors.APIStatusError) as failure:
        client.parse("ask", "How was it?", Verdict)
    assert sdk.kind.code(failure.value)
    assert failure.value.response.headers["x-should-retry"] == "false"
    assert len(client.sent) == 1
