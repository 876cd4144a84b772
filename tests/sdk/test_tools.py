"""Tool calls survive the way through the gateway, between any two dialects, whole and streamed."""

import pytest

from asked import TOOLS
from clients import PROVIDERS
from settings import plain

QUESTION = "Pay 500 cents back for order 1182."
REQUIRED = {tool["name"]: set(tool["parameters"]["required"]) for tool in TOOLS}


def are_good_calls(answer, how_many: int):
    assert answer.finish == "tools"
    assert len(answer.tools) == how_many
    assert len({call[0] for call in answer.tools}) == how_many and all(call[0] for call in answer.tools)
    for _, name, arguments in answer.tools:
        assert REQUIRED[name] <= set(arguments), (name, arguments)


PLAYS = [("tool-call", 1), ("parallel-tools", 2)]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("play", "how_many"), PLAYS)
def a_tool_call_arrives_whole(sdk, start, mock, provider, play, how_many):
    client = sdk(start(plain(mock.url, provider, play)))
    are_good_calls(client.say("ask", QUESTION, tools=TOOLS), how_many)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("play", "how_many"), PLAYS)
def a_streamed_tool_call_gives_what_a_plain_one_gives(sdk, start, mock, provider, play, how_many):
    client = sdk(start(plain(mock.url, provider, play)))
    whole = client.say("ask", QUESTION, tools=TOOLS)
    for streamed in (client.stream("ask", QUESTION, tools=TOOLS), client.helper("ask", QUESTION, tools=TOOLS)):
        are_good_calls(streamed, how_many)
        assert [call[1:] for call in streamed.tools] == [call[1:] for call in whole.tools]


@pytest.mark.parametrize("provider", PROVIDERS)
def the_results_of_tools_go_back_to_the_provider(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "parallel-tools+times=1")))
    asked = client.say("ask", QUESTION, tools=TOOLS)
    are_good_calls(asked, 2)
    answer = client.after_tools("ask", QUESTION, asked, ["found", "paid"], TOOLS)
    assert answer.finish == "stop" and answer.text
    assert mock.calls()[1]["messages"] >= 3
