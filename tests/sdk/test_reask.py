"""How often a model is asked again, and what it is told: the bounds hold, and the caller gets an answer or a
failure it can read."""

import json

import pytest

import plant
from judge import is_a_triage
from settings import REPLY, plain, triage


def more(config: str, lines: str) -> str:
    """The route of `config`, which ends with it, with more keys."""
    return config.replace('prompt_version = "triage-v3"\n', 'prompt_version = "triage-v3"\n' + lines)


def messages(mock) -> list[int]:
    """How many messages each call had: a re-ask has two more."""
    return [call["messages"] for call in mock.calls()]


DECISION = {
    "type": "object",
    "properties": {"status": {"type": "string", "enum": ["APPROVED", "DENIED", "ON_HOLD"]}},
    "required": ["status"],
    "additionalProperties": False,
}


@pytest.fixture
def undecided(tmp_path):
    """A mock whose model always gives a status that is none of the three."""
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"text": "Decide", "label": {"status": "pending_review"}}))
    mock = plant.Mock(tmp_path, answers)
    yield mock
    mock.stop()


@pytest.mark.parametrize(
    ("more", "calls"),
    [
        ('fields = [{ at = "/status", on_fail = "fallback", fallback = "ON_HOLD" }]\n', 1),
        ('fields = [{ at = "/status", fallback = "ON_HOLD" }]\n', 3),
    ],
    ids=["at-once", "after-the-re-asks"],
)
def a_status_outside_the_enum_becomes_the_declared_fallback(sdk, start, undecided, more, calls):
    client = sdk(start(plain(undecided.url, sdk.kind.provider, "healthy", extra=more)))
    answer = client.say("ask", "Decide on this.", schema=DECISION)
    assert answer.json() == {"status": "ON_HOLD"}
    assert answer.headers["x-backstay-outcome"] == "fallback"
    assert (len(undecided.calls()), len(client.sent)) == (calls, 1)


@pytest.mark.parametrize("reasks", [2, 5])
def a_wrong_enum_three_times_ends_in_the_last_resort_after_three_calls(sdk, start, mock, tickets, reasks):
    own = sdk.kind.provider
    config = triage(mock.url, (own, "enum-miss"), last_resort=True, attempts=6)
    client = sdk(start(config.replace("reasks = 2", f"reasks = {reasks}")))
    answer = client.say("triage", tickets[0]["text"])
    assert answer.json() == REPLY
    assert (len(mock.calls()), len(client.sent)) == (3, 1)
    assert answer.headers["x-backstay-outcome"] == "last_resort"


def a_route_with_words_of_its_own_is_answered_as_any_other(sdk, start, mock, tickets):
    own = sdk.kind.provider
    template = 'reask_template = { inline = "{{ number }}. {% for e in errors %}{{ e }}{% endfor %}" }\n'
    client = sdk(start(more(triage(mock.url, (own, "right-on-second")), template)))
    is_a_triage(client.say("triage", tickets[0]["text"]).json(), tickets[0]["text"])
    assert messages(mock) == [1, 3]


def tokens_bound_the_asking_and_the_failure_says_what_was_wrong(sdk, start, mock, tickets):
    own = sdk.kind.provider
    costly = "enum-miss+prompt_tokens=600+completion_tokens=40"
    client = sdk(start(more(triage(mock.url, (own, costly)), "reask_tokens = 1000\n")))
    with pytest.raises(sdk.kind.errors.APIStatusError) as failure:
        client.say("triage", tickets[0]["text"])
    assert sdk.kind.code(failure.value) == "reply_schema_error"
    assert "not in enum" in str(failure.value)
    assert (len(mock.calls()), len(client.sent)) == (2, 1)


def a_refusal_is_never_asked_again(sdk, start, mock, tickets):
    own = sdk.kind.provider
    client = sdk(start(triage(mock.url, (own, "refusal"), last_resort=True)))
    assert client.say("triage", tickets[0]["text"]).json() == REPLY
    assert (len(mock.calls()), len(client.sent)) == (1, 1)


def a_cut_reply_gets_a_larger_cap_once_and_then_the_next_tier(sdk, start, mock, tickets):
    own = sdk.kind.provider
    client = sdk(start(triage(mock.url, (own, "truncated"), (own, "healthy"))))
    is_a_triage(client.say("triage", tickets[0]["text"]).json(), tickets[0]["text"])
    caps = [call["max_tokens"] for call in mock.calls_to("truncated")]
    # The Anthropic SDK always sends a cap of its own, which is the caller's and stays.
    assert caps == ([300, 600] if sdk.kind.name == "openai" else [300])
    assert set(messages(mock)) == {1}, "nothing was asked again"
