"""The streaming helpers of the SDKs in every mode: a whole answer, or an error of the SDK; nothing between."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from clients import PROVIDERS
from settings import TIMEOUTS, plain_route, providers, target
from ways import Ask, Outcome

MODES = ["passthrough", "gate", "windowed", "buffered"]

# So many streams at a time; each of the threads and processes here has a share of two cores.
AT_ONCE = 24

WHOLE_TEXT = "healthy+n=12+size=400+prompt_tokens=31+completion_tokens=77"
PLAYS = {"text": WHOLE_TEXT, "tools": "parallel-tools", "shape": "healthy+size=400"}

# Waits that a stall is noticed by, and that a busy machine still keeps.
BRISK = '{ connect = "2s", first_token = "1500ms", gap = "700ms", total = "8s" }'

# Every call of a test counts alike, however many have failed before it.
CALM = '[breaker]\nmode = "metrics_only"\n'


def ask_all(jobs: list[tuple]) -> list[Outcome]:
    """Asks each (way, ask), many at once."""

    async def all_of_them():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(AT_ONCE))
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(way, ask):
            async with turn:
                return await way.ask(ask)

        return await asyncio.gather(*(one(way, ask) for way, ask in jobs))

    return asyncio.run(all_of_them())


def route(name: str, tiers: list[str], mode: str | None, timeouts=TIMEOUTS, **more) -> str:
    extra = f'stream = "{mode}"\n' if mode else ""
    return plain_route(name, tiers, extra=extra, timeouts=timeouts, **more)


def pairs(ways):
    """Each way in each mode, with the providers in turn, so that every dialect meets every other."""
    for at, way in enumerate(ways):
        for nth, mode in enumerate(MODES):
            yield way, mode, PROVIDERS[(at + nth) % 2]


def wrongs_of_a_whole(outcome: Outcome, what="text") -> list[str]:
    if outcome.answer is None:
        return [f"no answer: {outcome.error} {outcome.said!r}"]
    answer, wrongs = outcome.answer, []
    if answer.finish != ("tools" if what == "tools" else "stop") and what != "shape":
        wrongs.append(f"finish {answer.finish!r}")
    if what == "text" and not answer.text.endswith("."):
        wrongs.append(f"the text does not end: {answer.text[-40:]!r}")
    if what == "tools" and len({call[0] for call in answer.tools}) != 2:
        wrongs.append(f"tools {answer.tools}")
    if what == "shape" and set(outcome.value or {}) != {"mood", "score", "reason"}:
        wrongs.append(f"value {outcome.value}")
    if not answer.input_tokens or not answer.output_tokens:
        wrongs.append(f"usage {answer.input_tokens}, {answer.output_tokens}")
    return wrongs


def wrongs_of_an_error(way, outcome: Outcome) -> list[str]:
    if outcome.answer is not None:
        return [f"a success: {outcome.answer.finish!r} with {len(outcome.answer.text)} bytes"]
    if not outcome.own:
        return [f"{outcome.error} is not of the SDK: {outcome.said!r}"]
    if not outcome.code and not way.drops_codes:
        return [f"{outcome.error} has no code: {outcome.said!r}"]
    return []


@pytest.mark.parametrize("what", PLAYS)
def every_way_gives_the_same_whole_answer_in_every_mode(ways, start, mock, what):
    config = providers(mock.url)
    for provider in PROVIDERS:
        config += target(provider, provider, PLAYS[what]) + route(provider, [provider], None)
        for mode in MODES:
            config += route(f"{provider}-{mode}", [provider], mode)
    url = start(config).url
    jobs = []
    for way, mode, provider in pairs(ways):
        if what != "tools":
            jobs.append((way, Ask(url, f"{provider}-{mode}", what)))
        if what != "shape" or mode == "buffered":  # a header may not loosen what has to be checked
            jobs.append((way, Ask(url, provider, what, mode)))
    outcomes, wrongs, seen = ask_all(jobs), [], set()
    for (way, ask), outcome in zip(jobs, outcomes):
        found = wrongs_of_a_whole(outcome, what)
        if what == "text" and not found:
            seen.add(outcome.answer.text)
            usage = (outcome.answer.input_tokens, outcome.answer.output_tokens)
            found += [f"usage {usage}"] if usage != (31, 77) else []
            found += ["in one piece"] if outcome.pieces < 2 and "passthrough" in (ask.mode, ask.model) else []
        wrongs += [f"{way.name} {ask.model} {ask.mode}: {wrong}" for wrong in found]
    assert not wrongs, "\n".join(wrongs)
    assert what != "text" or len(seen) == 1, seen
    assert len(mock.calls()) == len(jobs), "a stream that is whole is asked for once"


# Faults of a first target, and the modes that rescue them where a second one is well: not what has left already.
# The texts are shorter than a window.
BEFORE, AFTER = {"gate", "windowed", "buffered"}, {"windowed", "buffered"}
FAULTS = [
    ("stream-cut+at=0", BEFORE),
    ("stream-cut+at=6", AFTER),
    ("stream-stall+at=0", BEFORE),
    ("stream-stall+at=6", AFTER),
    ("error-event+at=0", BEFORE),
    ("error-event+at=6", AFTER),
    ("loop+gap=2ms", AFTER),
]


@pytest.mark.parametrize(("fault", "rescuers"), FAULTS, ids=[fault for fault, _ in FAULTS])
def a_fault_is_rescued_or_an_error_of_the_sdk_in_every_mode(ways, start, mock, fault, rescuers):
    config = CALM + providers(mock.url)
    for provider in PROVIDERS:
        config += target(provider, provider, fault if fault.startswith("loop") else f"{fault}+n=12+size=400")
        config += target(f"{provider}-well", provider, WHOLE_TEXT)
        for mode in MODES:
            config += route(f"alone-{provider}-{mode}", [provider], mode, BRISK)
            config += route(f"backed-{provider}-{mode}", [provider, f"{provider}-well"], mode, BRISK)
    url = start(config).url
    jobs = []
    for way, mode, provider in pairs(ways):
        jobs.append((way, Ask(url, f"backed-{provider}-{mode}")))
        if mode in rescuers:
            jobs.append((way, Ask(url, f"alone-{provider}-{mode}")))
    wrongs = []
    for (way, ask), outcome in zip(jobs, ask_all(jobs)):
        place, _, mode = ask.model.split("-")
        # A target that says it is overloaded may have fewer places at once: who finds none goes to the second one.
        passed_by = fault.startswith("error-event") and outcome.answer is not None
        rescued = place == "backed" and (mode in rescuers or passed_by)
        found = wrongs_of_a_whole(outcome) if rescued else wrongs_of_an_error(way, outcome)
        if not rescued and rescuers is AFTER and mode not in AFTER and not outcome.pieces:
            found.append("nothing came before the fault")
        wrongs += [f"{way.name} {ask.model}: {wrong}" for wrong in found]
    assert not wrongs, "\n".join(wrongs)


@pytest.mark.parametrize("how", ["restart", "continue"])
@pytest.mark.parametrize("fault", ["stream-cut", "stream-stall"])
def a_stream_that_goes_on_elsewhere_is_one_whole_answer_for_every_way(ways, start, mock, fault, how):
    config, asked = CALM + providers(mock.url), []
    for number, (way, mode, provider) in enumerate(pairs(ways)):
        if mode in AFTER:
            continue
        # Both targets of a route have a model of one name, which says the same words each time.
        name = f"tale-{number}"
        mock.script(name, [f"{fault}+at=6+n=12+size=400", WHOLE_TEXT])
        config += target(f"{name}-first", provider, name)
        config += target(f"{name}-second", provider, name) + 'prefill = "assistant"\n'
        extra = f'stream = "{mode}"\nafter_release = "{how}"\n'
        config += plain_route(name, [f"{name}-first", f"{name}-second"], extra=extra, timeouts=BRISK)
        asked.append((way, name))
    url = start(config).url
    rescued = ask_all([(way, Ask(url, name)) for way, name in asked])
    untouched = ask_all([(way, Ask(url, name)) for way, name in asked])
    wrongs = []
    for (way, name), one, other in zip(asked, rescued, untouched):
        found = wrongs_of_a_whole(one) + wrongs_of_a_whole(other)
        if not found and one.answer.text != other.answer.text:
            found.append(f"another text: {one.answer.text!r}")
        wrongs += [f"{way.name} {name}: {wrong}" for wrong in found]
    assert not wrongs, "\n".join(wrongs)
    assert len(mock.calls()) == 3 * len(asked)


def a_stream_without_its_last_word_is_whole_in_every_mode(ways, start, mock):
    config = providers(mock.url)
    for provider in PROVIDERS:
        config += target(provider, provider, WHOLE_TEXT.replace("healthy", "no-done"))
        config += route(provider, [provider], None)
    url = start(config).url
    jobs = [(way, Ask(url, provider, mode=mode)) for way, mode, provider in pairs(ways)]
    wrongs = [
        f"{way.name} {ask.mode}: {wrong}"
        for (way, ask), outcome in zip(jobs, ask_all(jobs))
        for wrong in wrongs_of_a_whole(outcome)
    ]
    assert not wrongs, "\n".join(wrongs)


def a_header_that_would_show_what_is_to_be_checked_is_an_error_of_the_sdk(ways, start, mock):
    config = providers(mock.url) + target("only", "openai", "healthy") + route("ask", ["only"], None)
    url = start(config).url
    jobs = [(way, Ask(url, "ask", "shape", mode)) for way in ways if not way.shapes_by_tool for mode in MODES[:3]]
    wrongs = []
    for (way, ask), outcome in zip(jobs, ask_all(jobs)):
        found = wrongs_of_an_error(way, outcome) or ([] if outcome.code == "invalid_request" else [outcome.code])
        wrongs += [f"{way.name} {ask.mode}: {wrong}" for wrong in found]
    assert not wrongs, "\n".join(wrongs)
    assert not mock.calls()


def comments_keep_a_held_stream_alive_and_disturb_no_way(ways, start, mock):
    # Nothing is shown for 1.8 s, and the clients wait for 0.9 s.
    config = providers(mock.url)
    for provider in PROVIDERS:
        config += target(provider, provider, WHOLE_TEXT + "+gap=150ms") + route(provider, [provider], "buffered")
    url = start(config).url
    jobs = [(way, Ask(url, provider, silence=0.9)) for way in ways for provider in PROVIDERS]
    began = time.monotonic()
    outcomes = ask_all(jobs)
    assert time.monotonic() - began > 1.6, "the answer is held until it is whole"
    wrongs = [
        f"{way.name} {ask.model}: {wrong}"
        for (way, ask), outcome in zip(jobs, outcomes)
        for wrong in wrongs_of_a_whole(outcome)
    ]
    assert not wrongs, "\n".join(wrongs)


# The promise is 100 ms; the rest is for many clients on two busy cores.
FREED_WITHIN = 1.0


@pytest.mark.parametrize("mode", MODES)
def whoever_leaves_a_stream_ends_it_at_the_provider(ways, start, mock, mode):
    config = providers(mock.url) + target("only", "openai", "healthy+n=400+gap=20ms+size=8000")
    config += plain_route("ask", ["only"], extra=f'stream = "{mode}"\nwindow = {{ tokens = 20 }}\n', deadline="30s")
    url = start(config).url
    if mode == "buffered":
        jobs = [(way, Ask(url, "ask", leave_within=2.0)) for way in ways if way.can_abort]
    else:
        jobs = [(way, Ask(url, "ask", leave_after=3)) for way in ways]
    for (way, _), outcome in zip(jobs, ask_all(jobs)):
        assert outcome.answer is None and outcome.error is None, (way.name, outcome)
        assert (outcome.pieces == 0) == (mode == "buffered"), (way.name, outcome.pieces)
    left = time.monotonic()
    while any(call["end"] == "pending" for call in mock.calls()):
        assert time.monotonic() - left < FREED_WITHIN, [call["end"] for call in mock.calls()]
        time.sleep(0.02)
    assert [call["end"] for call in mock.calls()] == ["client_gone"] * len(jobs)
