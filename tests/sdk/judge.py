"""Judges a triage by hand, so that the gateway's own validator is not its own judge."""

from settings import REPLY

CATEGORIES = {"billing", "shipping", "technical", "other"}


def is_a_triage(reply, ticket: str):
    """Holds `reply` against the schema and the two rules. The static last resort is no quote and says so."""
    assert set(reply) == {"category", "priority", "summary", "evidence", "needs_human"}, reply
    assert reply["category"] in CATEGORIES
    assert type(reply["priority"]) is int and 1 <= reply["priority"] <= 4
    assert type(reply["summary"]) is str and len(reply["summary"]) <= 200
    assert type(reply["evidence"]) is str and reply["evidence"]
    assert type(reply["needs_human"]) is bool
    if reply != REPLY:
        assert reply["evidence"] in ticket, "evidence is a quote"
        assert reply["priority"] != 1 or reply["needs_human"], "urgent needs a person"
