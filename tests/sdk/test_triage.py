"""The triage route under every way a reply can be damaged: a valid answer always, or a typed failure."""

import pytest

from clients import SYSTEM
from judge import is_a_triage
from settings import MAX_ATTEMPTS, REASKS, REPLY, triage

# A bad answer is asked for again with its errors, at most twice.
ASKED_AGAIN = 1 + REASKS
ONCE = 1
# A broken reply may be whole the next time: it is fetched anew until the attempts are used up. One
# less than in the example, so that the waits between them stay short.
ALL = MAX_ATTEMPTS - 1

# Behaviour of the mock: calls when it stands alone, and the code of the failure then.
DAMAGED = {
    "two-objects": (ASKED_AGAIN, "reply_not_json"),
    "quiet-refusal": (ASKED_AGAIN, "reply_not_json"),
    "wrong-schema": (ASKED_AGAIN, "reply_schema_error"),
    "wrong-type": (ASKED_AGAIN, "reply_schema_error"),
    "extra-key": (ASKED_AGAIN, "reply_schema_error"),
    "enum-miss": (ASKED_AGAIN, "reply_schema_error"),
    "invented-quote": (ASKED_AGAIN, "reply_semantic_error"),
    "urgent-no-review": (ASKED_AGAIN, "reply_semantic_error"),
    "unknown-finish": (ONCE, "reply_unknown_finish"),
    "null-finish": (ONCE, "reply_unknown_finish"),
    "empty-content": (ALL, "reply_empty"),
    "empty-200": (ALL, "reply_empty"),
    "html-200": (ALL, "reply_malformed"),
    "json-array-200": (ALL, "reply_malformed"),
    "error-in-200": (ALL, {"openai": "provider_error", "anthropic": "provider_overloaded"}),
    "short-body": (ALL, "provider_connection_lost"),
}
# A refusal is a decision and not a breakdown: no laxer model is sought for it.
REFUSED = ["refusal", "content-filter"]
# These end well by themselves: the damage has one reading, the second ask is right.
MENDED = {
    "healthy": 1,
    "fenced": 1,
    "prose-around": 1,
    "unclosed": 1,
    "think-tags": 1,
    "right-on-second": 2,
    "right-after+k=2": 3,
    "wrong-category": 1,
}


def ask(client, ticket):
    return client.say("triage", ticket["text"], system=SYSTEM)


def providers_of(sdk):
    own = sdk.kind.provider
    return own, "anthropic" if own == "openai" else "openai"


@pytest.mark.parametrize("damage", [*DAMAGED, *REFUSED, *MENDED, "truncated"])
def a_damaged_first_tier_still_gives_a_valid_answer(sdk, start, mock, tickets, damage):
    own, other = providers_of(sdk)
    client = sdk(start(triage(mock.url, (own, damage), (other, "healthy+n=8"), last_resort=True)))
    # The mock knows the right second answer for the first ticket only; see plant.Mock.
    asked = (tickets[0],) if MENDED.get(damage, 1) > 1 else (tickets[0], tickets[57])
    for ticket in asked:
        mock.reset()
        answer = ask(client, ticket)
        is_a_triage(answer.json(), ticket["text"])
        assert answer.finish == "stop"
        if damage in REFUSED:
            assert answer.json() == REPLY
        else:
            assert answer.json() != REPLY
            who = "first" if damage in MENDED else "second"
            assert who in answer.headers["x-backstay-target"], answer.headers
        asked_second = damage not in MENDED and damage not in REFUSED
        assert len(mock.calls_to("healthy+n=8")) == asked_second
    assert len(client.sent) == len(asked), "the SDK sends each ticket once"


@pytest.mark.parametrize("damage", DAMAGED)
def a_damaged_tier_alone_is_a_typed_error_of_the_sdk(sdk, start, mock, tickets, damage):
    own, _ = providers_of(sdk)
    client = sdk(start(triage(mock.url, (own, damage), deadline="20s", attempts=ALL)))
    with pytest.raises(sdk.kind.errors.APIStatusError) as failure:
        ask(client, tickets[0])
    error, (calls, code) = failure.value, DAMAGED[damage]
    assert sdk.kind.code(error) == (code[own] if isinstance(code, dict) else code)
    assert error.response.headers["x-should-retry"] == "false"
    assert error.response.headers["x-backstay-call-id"]
    assert len(client.sent) == 1, "the SDK does not try again"
    assert len(mock.calls()) == calls


@pytest.mark.parametrize("damage", REFUSED)
def a_refusal_alone_is_handed_on_as_what_it_is(sdk, start, mock, tickets, damage):
    """With no last resort the caller gets the provider's own reason, and never an answer."""
    own, _ = providers_of(sdk)
    client = sdk(start(triage(mock.url, (own, damage))))
    try:
        answer = ask(client, tickets[0])
    except sdk.kind.errors.APIStatusError as error:
        assert sdk.kind.code(error) in {"reply_refused", "reply_content_filtered"}
    else:
        assert answer.finish == "refusal" and answer.headers["x-backstay-outcome"] != "valid"
    assert (len(mock.calls()), len(client.sent)) == (1, 1)


@pytest.mark.parametrize("damage", MENDED)
def a_reply_that_can_be_put_right_needs_no_other_tier(sdk, start, mock, tickets, damage):
    own, _ = providers_of(sdk)
    client = sdk(start(triage(mock.url, (own, damage))))
    answer = ask(client, tickets[0])
    is_a_triage(answer.json(), tickets[0]["text"])
    assert len(mock.calls()) == MENDED[damage]
    assert answer.headers["x-backstay-attempts"] == str(MENDED[damage])


def a_cut_reply_is_asked_for_once_more_with_a_larger_cap(sdk, start, mock, tickets):
    """Only the route's own cap may be raised. The Anthropic SDK always sends a cap of its own."""
    own, _ = providers_of(sdk)
    client = sdk(start(triage(mock.url, (own, "truncated-by-cap+need=400"))))
    if sdk.kind.name == "anthropic":
        with pytest.raises(sdk.kind.errors.APIStatusError):
            ask(client, tickets[0])
        assert [call["max_tokens"] for call in mock.calls()] == [300]
        return
    is_a_triage(ask(client, tickets[0]).json(), tickets[0]["text"])
    caps = [call["max_tokens"] for call in mock.calls()]
    assert caps[0] == 300 and len(caps) == 2 and 400 <= caps[1] <= 600


def a_reply_that_is_always_cut_is_not_asked_for_in_a_loop(sdk, start, mock, tickets):
    own, _ = providers_of(sdk)
    client = sdk(start(triage(mock.url, (own, "truncated"))))
    with pytest.raises(sdk.kind.errors.APIStatusError):
        ask(client, tickets[0])
    assert len(mock.calls()) == (2 if sdk.kind.name == "openai" else 1)


def the_last_resort_answers_when_nothing_else_does(sdk, start, mock, tickets):
    own, other = providers_of(sdk)
    client = sdk(start(triage(mock.url, (own, "status-503"), (other, "enum-miss"), last_resort=True)))
    answer = ask(client, tickets[0])
    assert answer.json() == REPLY and answer.finish == "stop"
    assert len(mock.calls()) <= MAX_ATTEMPTS and len(client.sent) == 1


def every_ticket_gets_the_answer_of_its_label_from_a_healthy_mock(sdk, start, mock, tickets):
    own, _ = providers_of(sdk)
    client = sdk(start(triage(mock.url, (own, "healthy"))))
    for ticket in tickets:
        assert ask(client, ticket).json() == ticket["label"], ticket["id"]
    assert len(mock.calls()) == len(client.sent) == len(tickets)
