"""Replies that are almost right: stock SDKs get the value, and are told what was done to it."""

from collections import Counter
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict

from clients import PROVIDERS
from judge import is_a_triage
from settings import plain, plain_route, providers, target, triage

FALLBACK = 'fields = [{ at = "/category", fallback = "other" }]\n'
AT_ONCE = 'fields = [{ at = "/category", on_fail = "fallback", fallback = "other" }]\n'
CAST = FALLBACK + 'align = { enum = "fallback" }\n'


class Decision(BaseModel):
    model_config = ConfigDict(extra="forbid")
    status: Literal["APPROVED", "DENIED"]
    reason: str


def more(config: str, lines: str) -> str:
    """The route of `config`, which ends with it, with more keys."""
    return config.replace('prompt_version = "triage-v3"\n', 'prompt_version = "triage-v3"\n' + lines)


@pytest.mark.parametrize(("lines", "calls"), [(FALLBACK, 3), (AT_ONCE, 1), (CAST, 1)])
def a_wrong_enum_ends_in_the_declared_fallback_after_exactly_the_calls_it_may_cost(
    sdk, start, mock, tickets, lines, calls
):
    own = sdk.kind.provider
    client = sdk(start(more(triage(mock.url, (own, "enum-miss"), last_resort=True), lines)))
    answer = client.say("triage", tickets[0]["text"])
    is_a_triage(answer.json(), tickets[0]["text"])
    assert answer.json()["category"] == "other"
    assert (len(mock.calls()), len(client.sent)) == (calls, 1)
    assert answer.headers["x-backstay-outcome"] == "fallback"
    assert answer.headers["x-backstay-edits"] == "enum_fallback=1"


@pytest.mark.parametrize("provider", PROVIDERS)
def a_status_outside_a_schema_of_the_caller_becomes_the_fallback_state_of_the_route(sdk, start, mock, provider):
    route = 'fields = [{ at = "/status", fallback = "DENIED" }]\n'
    config = providers(mock.url) + target("only", provider, "enum-miss") + plain_route("ask", ["only"], extra=route)
    client = sdk(start(config))
    decision = client.parse("ask", "Shall we?", Decision)
    assert isinstance(decision, Decision) and decision.status == "DENIED"
    assert (len(mock.calls()), len(client.sent)) == (3, 1)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("broken", "kind"),
    [("fenced", "fence"), ("prose-around", "prose_before"), ("think-tags", "think_block"), ("unclosed", "missing_closer")],
)
def a_reply_whose_damage_has_one_reading_costs_no_second_call(sdk, start, mock, provider, broken, kind):
    client = sdk(start(plain(mock.url, provider, broken)))
    assert isinstance(client.parse("ask", "Shall we?", Decision), Decision)
    answer = client.say("ask", "Shall we?", schema=Decision.model_json_schema())
    Decision.model_validate_json(answer.text)
    assert f"{kind}=" in answer.headers["x-backstay-edits"]
    assert (len(mock.calls()), len(client.sent)) == (2, 2)


@pytest.mark.parametrize("provider", PROVIDERS)
def a_reply_that_could_be_two_values_is_an_error_and_no_guess(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "two-objects")))
    with pytest.raises(sdk.kind.errors.APIStatusError) as failure:
        client.parse("ask", "Shall we?", Decision)
    assert sdk.kind.code(failure.value) == "reply_not_json"


@pytest.mark.parametrize("provider", PROVIDERS)
def every_edit_stands_in_the_header_and_in_the_body_where_the_caller_asks_for_it(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "prose-around")))
    schema = Decision.model_json_schema()
    silent = client.say("ask", "Shall we?", schema=schema)
    asked = client.say("ask", "Shall we?", schema=schema, headers={"x-backstay-edits": "1"})
    assert "backstay" not in silent.extra
    edits = asked.extra["backstay"]["edits"]
    told = Counter(edit["kind"] for edit in edits)
    for answer in (silent, asked):
        Decision.model_validate_json(answer.text)
        assert answer.headers["x-backstay-outcome"] == "mended"
        counts = (count.split("=") for count in answer.headers["x-backstay-edits"].split(", "))
        assert {kind: int(count) for kind, count in counts} == told
    assert edits[0]["kind"] == "prose_before" and edits[0]["before"] and not edits[0]["after"]
    assert edits[0]["span"][0] == 0 and (edits[0]["line"], edits[0]["column"]) == (1, 1)


@pytest.mark.parametrize("provider", PROVIDERS)
def a_stream_tells_every_edit_in_an_event_that_the_sdk_reads(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "prose-around")))
    asked = {"schema": Decision.model_json_schema(), "extra_headers": {"x-backstay-edits": "1"}}
    answer = client.stream("ask", "Shall we?", **asked)
    Decision.model_validate_json(answer.text)
    edits = answer.extra["backstay"]["edits"]
    assert edits[0]["kind"] == "prose_before" and edits[0]["before"] and not edits[0]["after"]
    whole = client.helper("ask", "Shall we?", **asked)
    assert (whole.text, whole.finish) == (answer.text, answer.finish)


def a_route_may_tell_its_edits_in_every_body(sdk, start, mock):
    own, always = sdk.kind.provider, 'report_edits = "always"\n'
    told = {}
    for behaviour in ("fenced", "healthy"):
        client = sdk(start(plain(mock.url, own, behaviour, extra=always)))
        answer = client.say("ask", "Shall we?", schema=Decision.model_json_schema())
        told[behaviour] = [edit["kind"] for edit in answer.extra["backstay"]["edits"]]
    assert set(told["fenced"]) == {"fence"} and told["healthy"] == []
