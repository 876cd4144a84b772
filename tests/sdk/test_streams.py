"""A stream is the same answer in pieces; one that breaks is an error of the SDK and never a clean end."""

import pytest

from clients import PROVIDERS
from judge import is_a_triage
from settings import plain, plain_route, providers, target, triage

QUESTION = "Tell me what happened to order 1182."


@pytest.mark.parametrize("provider", PROVIDERS)
def a_stream_gives_the_text_and_the_usage_of_a_plain_call(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "healthy+n=12+prompt_tokens=31")))
    whole = client.say("ask", QUESTION)
    mock.reset()
    stream = client.stream("ask", QUESTION)
    assert stream.text == whole.text and stream.pieces > 1
    assert stream.finish == whole.finish == "stop"
    assert (stream.input_tokens, stream.output_tokens) == (whole.input_tokens, whole.output_tokens)
    assert [call["stream"] for call in mock.calls()] == [True]


@pytest.mark.parametrize("provider", PROVIDERS)
def the_helper_of_the_sdk_ends_with_the_whole_message(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "healthy+n=12")))
    helped, whole = client.helper("ask", QUESTION), client.say("ask", QUESTION)
    assert (helped.text, helped.finish) == (whole.text, whole.finish)
    assert helped.output_tokens == whole.output_tokens


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("odd", ["crlf", "byte-drip", "split-utf8"])
def an_odd_but_whole_stream_arrives_whole(sdk, start, mock, provider, odd):
    client = sdk(start(plain(mock.url, provider, odd)))
    whole, stream = client.say("ask", QUESTION), client.stream("ask", QUESTION)
    assert (stream.text, stream.finish) == (whole.text, "stop")


BREAKS = [
    "stream-cut",
    "stream-end-early",
    "stream-stall",
    "malformed-chunk",
    "no-finish",
    "error-event",
    "short-body",
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("broken", BREAKS)
def a_stream_that_breaks_after_its_release_raises_an_error_of_the_sdk(sdk, start, mock, provider, broken):
    client = sdk(start(plain(mock.url, provider, broken + "+n=12", deadline="6s")))
    pieces = []
    with pytest.raises(sdk.kind.errors.APIError):
        with client.open_stream("ask", QUESTION) as stream:
            pieces.extend(client.deltas(stream))
    assert pieces, "the break comes after the first content"
    assert (len(mock.calls()), len(client.sent)) == (1, 1), "what is released is not tried again"


@pytest.mark.parametrize("provider", PROVIDERS)
def a_stream_whose_last_word_is_missing_is_whole_or_an_error(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "no-done+n=12")))
    whole = client.say("ask", QUESTION)
    try:
        stream = client.stream("ask", QUESTION)
    except sdk.kind.errors.APIError:
        return
    assert (stream.text, stream.finish) == (whole.text, "stop")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("broken", ["status-503", "reset", "json-not-stream", "html-stream", "stream-cut+at=0"])
def a_stream_that_fails_before_its_first_content_is_taken_over_by_the_next_tier(sdk, start, mock, provider, broken):
    config = (
        providers(mock.url)
        + target("first", provider, broken)
        + target("second", provider, "healthy+n=12")
        + plain_route("ask", ["first", "second"])
    )
    client = sdk(start(config))
    stream = client.stream("ask", QUESTION)
    assert stream.finish == "stop" and stream.text
    assert len(client.sent) == 1 and mock.calls_to(broken)


@pytest.mark.parametrize("provider", PROVIDERS)
def a_streamed_triage_is_checked_before_a_word_of_it_is_sent(sdk, start, mock, provider, tickets):
    client = sdk(start(triage(mock.url, (provider, "enum-miss"), (provider, "healthy"))))
    ticket = tickets[0]["text"]
    stream = client.stream("triage", ticket)
    is_a_triage(stream.json(), ticket)
    assert stream.finish == "stop"
    assert mock.calls_to("enum-miss") and len(mock.calls_to("healthy")) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def a_streamed_triage_without_a_valid_answer_is_an_error_of_the_sdk(sdk, start, mock, provider, tickets):
    client = sdk(start(triage(mock.url, (provider, "enum-miss"))))
    with pytest.raises(sdk.kind.errors.APIError) as failure:
        client.stream("triage", tickets[0]["text"])
    assert sdk.kind.code(failure.value)
    assert len(client.sent) == 1
