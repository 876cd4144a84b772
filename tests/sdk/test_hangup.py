"""A caller who hangs up stops the call at the provider as well."""

import time

import pytest

from clients import PROVIDERS
from settings import PATIENT, plain

# The promise is 100 ms. The rest is for two busy cores and for asking the mock.
PROMISE = 0.1
SLACK = 0.15


def end_of_the_call(mock, since: float) -> tuple[str, float]:
    """Waits, at most two seconds, until the mock's one call has ended; how, and after what time."""
    while True:
        end = mock.calls()[0]["end"]
        waited = time.monotonic() - since
        if end != "pending" or waited > 2.0:
            return end, waited
        time.sleep(0.005)


@pytest.mark.parametrize("provider", PROVIDERS)
def a_caller_who_leaves_a_stream_ends_it_at_the_provider(sdk, start, mock, provider):
    client = sdk(start(plain(mock.url, provider, "healthy+n=400+gap=20ms", deadline="30s")))
    stream = client.open_stream("ask", "Tell me a long story.")
    pieces = client.deltas(stream)
    for _ in range(3):
        next(pieces)
    left = time.monotonic()
    stream.close()
    end, waited = end_of_the_call(mock, left)
    assert end == "client_gone" and waited < PROMISE + SLACK, (end, waited)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("quiet", ["silence", "hang-body", "stream-stall+n=12"])
def a_caller_who_gives_up_waiting_ends_the_call_at_the_provider(sdk, start, mock, provider, quiet):
    config = plain(mock.url, provider, quiet, deadline="30s", timeouts=PATIENT)
    client = sdk(start(config), timeout=0.5, max_retries=0)
    with pytest.raises(sdk.kind.errors.APITimeoutError):
        client.say("ask", "Hello")
    end, waited = end_of_the_call(mock, time.monotonic())
    assert end == "client_gone" and waited < PROMISE + SLACK, (end, waited)
