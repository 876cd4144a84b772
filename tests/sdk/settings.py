"""Writes the gateway's configuration for one test: providers at the mock, targets, one or more routes."""

import json

# As in examples/triage/backstay.toml, with waits that suit a test.
RULES = """rules = [
    { name = "evidence is a quote", check = "input.contains(reply.evidence)" },
    { name = "urgent needs a person", check = "reply.priority != 1 || reply.needs_human" },
]
"""
REPLY = {
    "category": "other",
    "priority": 3,
    "summary": "Not sorted: no model gave a valid answer in time",
    "evidence": "(none: no model has read this ticket)",
    "needs_human": True,
}
MAX_ATTEMPTS = 5
REASKS = 2


def quoted(text: str) -> str:
    return json.dumps(text)


def providers(mock_url: str) -> str:
    """The mock twice, once in each dialect."""
    return (
        f'[providers.openai]\ndialect = "openai_chat"\nbase_url = "{mock_url}/v1"\napi_keys = [{{ env = "MOCK_KEY" }}]\n'
        f'[providers.anthropic]\ndialect = "anthropic"\nbase_url = "{mock_url}/v1"\napi_keys = [{{ env = "MOCK_KEY" }}]\n'
    )


def target(name: str, provider: str, model: str) -> str:
    return f'[models.{name}]\nprovider = "{provider}"\nmodel = {quoted(model)}\ncontext_tokens = 128000\n'


def inline(value) -> str:
    """A JSON object of plain values as a TOML inline table."""
    return "{ " + ", ".join(f"{key} = {json.dumps(item)}" for key, item in value.items()) + " }"


def triage_route(tiers: list[str], last_resort: bool, deadline="10s", attempts=MAX_ATTEMPTS) -> str:
    text = (
        f"[routes.triage]\ntiers = {json.dumps(tiers)}\ndeadline = \"{deadline}\"\n"
        'timeouts = { connect = "2s", first_token = "1s", gap = "1s", total = "5s" }\n'
        f"max_attempts = {attempts}\nreasks = {REASKS}\n"
        "max_output_tokens = 300\nmax_output_tokens_ceiling = 600\n"
        'prompt_version = "triage-v3"\nschema = "triage.schema.json"\n' + RULES
    )
    if last_resort:
        text += f"last_resort = {{ reply = {inline(REPLY)} }}\n"
    return text


TIMEOUTS = '{ connect = "2s", first_token = "2s", gap = "2s", total = "8s" }'
PATIENT = '{ connect = "2s", first_token = "20s", gap = "20s", total = "25s" }'


def plain_route(name: str, tiers: list[str], deadline="10s", extra="", timeouts=TIMEOUTS) -> str:
    return (
        f"[routes.{quoted(name)}]\ntiers = {json.dumps(tiers)}\ndeadline = \"{deadline}\"\n"
        f"timeouts = {timeouts}\n" + extra
    )


def triage(mock_url: str, first: tuple[str, str], second=None, last_resort=False, **route) -> str:
    """A gateway with the route `triage`. `first` and `second` are (provider, behaviour of the mock)."""
    text = providers(mock_url) + target("first", *first)
    tiers = ["first"]
    if second:
        text += target("second", *second)
        tiers.append("second")
    return text + triage_route(tiers, last_resort, **route)


def plain(mock_url: str, provider: str, behaviour: str, **route) -> str:
    """A gateway with the route `ask` to one target and no schema."""
    return providers(mock_url) + target("only", provider, behaviour) + plain_route("ask", ["only"], **route)
