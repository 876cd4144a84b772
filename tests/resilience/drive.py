"""The scenarios of tests/resilience/run, and what must hold in each."""

import argparse
import asyncio
import collections
import json
import pathlib
import random
import sys
import time

from fleet import Fleet, ask, load, question

TWO_TIERS = """
[server]
call_log = "off"

[providers.primary]
dialect = "openai_chat"
base_url = "@PRIMARY@"
auth = "none"

[providers.mirror]
dialect = "openai_chat"
base_url = "@MIRROR@"
auth = "none"

[models.first]
provider = "primary"
model = "first"
pinned = true

[models.second]
provider = "mirror"
model = "second"
pinned = true

[routes.main]
tiers = ["first", "second"]
deadline = "5s"
timeouts = { connect = "1s", first_token = "1500ms", gap = "1500ms", total = "2500ms" }
max_output_tokens = 300
"""


class Verdict:
    """What must hold, and what was seen."""

    def __init__(self, scenario):
        self.scenario, self.rows = scenario, []

    def holds(self, what: str, seen, ok: bool):
        self.rows.append({"what": what, "seen": seen, "holds": bool(ok)})

    def print(self):
        for row in self.rows:
            print(f"  {'ok ' if row['holds'] else 'NOT'}  {row['what']}: {row['seen']}")


async def outage(fleet: Fleet, verdict: Verdict, scale: float, fault="status-503"):
    rate, before, down, after = 200, 10.0, 60.0 * scale, 110.0
    client = await fleet.gateway(TWO_TIERS)
    await fleet.primary.play("first", "healthy")
    await fleet.mirror.play("second", "healthy")
    seen, began = [], time.monotonic()

    async def weather():
        await asyncio.sleep(before)
        await fleet.primary.take_log()
        await fleet.primary.play("first", fault)
        marks["down"] = time.monotonic() - began
        while time.monotonic() - began < before + down:
            await asyncio.sleep(5.0)
            seen.append((time.monotonic() - began, len(await fleet.primary.take_log())))
        await fleet.primary.play("first", "healthy")
        marks["up"] = time.monotonic() - began

    marks = {}
    task = asyncio.ensure_future(weather())
    calls = await load(client, rate, before + down + after, question("main"), progress(before + down + after))
    await task
    failed = collections.Counter(c.code if c.status != 200 else "late" for c in calls if c.status != 200 or c.took > 5.05)
    share = 1 - failed.total() / len(calls)
    told = f"{share:.4%} of {len(calls)}; not: {dict(failed) or 'none'}"
    verdict.holds("answered inside the deadline, of all calls (at least 99.9 %)", told, share >= 0.999)
    settled = [count / (5.0 * rate) for at, count in seen if at > marks["down"] + 10]
    worst = max(settled, default=0.0)
    verdict.holds("load the primary saw in the outage, of the offered (at most 1.1)", f"{worst:.3f}", settled and worst <= 1.1)
    back = [c for c in calls if c.at > marks["up"] and c.tier == "1" and c.status == 200]
    first = back[0].at - marks["up"] if back else float("inf")
    allowed = max(36.0, 0.6 * down)
    verdict.holds(f"the first canary back (within {allowed:.0f} s)", f"{first:.1f} s", first <= allowed)
    full = full_share(calls, marks["up"], rate)
    since = full - marks["up"] - first
    verdict.holds("full share after that (within 60 s)", f"{since:.1f} s", since <= 60.0)
    later = [c for c in calls if c.at > full]
    away = sum(c.tier != "1" for c in later)
    verdict.holds("calls that left the primary again (none: no second collapse)", f"{away} of {len(later)}", later and away == 0)
    slow = sorted(c.took for c in calls if marks["down"] + 10 < c.at < marks["up"])
    verdict.holds("p99 of a call in the outage (under 1 s)", f"{slow[int(len(slow) * 0.99)]:.3f} s", slow[int(len(slow) * 0.99)] < 1.0)


def full_share(calls, up, rate):
    """The first moment from which five seconds on end went to the first tier, all of them."""
    run = 0
    for call in calls:
        if call.at < up:
            continue
        run = run + 1 if call.tier == "1" else 0
        if run >= 5 * rate:
            return call.at - 5.0
    return float("inf")


async def silence(fleet, verdict, scale):
    await outage(fleet, verdict, scale, "silence")


async def flapping(fleet, verdict, scale):
    client = await fleet.gateway(TWO_TIERS)
    await fleet.primary.play("first", "healthy")
    await fleet.mirror.play("second", "healthy")
    began, marks = time.monotonic(), {}

    async def weather():
        await asyncio.sleep(10)
        await fleet.primary.play("first", "status-503")
        await asyncio.sleep(60)
        await fleet.primary.play("first", "healthy")
        marks["up"] = time.monotonic() - began

    task = asyncio.ensure_future(weather())
    calls = await load(client, 0.25, 130, question("main"), progress(130))
    await task
    failed = [c for c in calls if c.status != 200]
    verdict.holds("calls without an answer (none)", f"{len(failed)} of {len(calls)}", not failed)
    back = [c.at - marks["up"] for c in calls if c.at > marks["up"] and c.tier == "1"]
    first = back[0] if back else float("inf")
    verdict.holds("the primary answers again (within 30 s)", f"{first:.1f} s", first <= 30.0)


async def cancels(fleet, verdict, scale):
    minutes = 30 * scale
    config = TWO_TIERS.replace('pinned = true', 'pinned = true\nmax_concurrency = 40')
    client = await fleet.gateway(config)
    steps = ["healthy", "healthy+n=40+gap=10ms", "slow-first+wait=300ms", "status-503", "silence", "stream-cut", "reset"]
    end, told, kept = time.monotonic() + minutes * 60, [0, 0], set()
    dice = random.Random(7)
    print("  seed 7")

    async def one():
        step = dice.choice(steps)
        await fleet.primary.play("first", step)
        body = {**question("main"), "stream": dice.random() < 0.5}
        task = asyncio.ensure_future(client.call("POST", "/v1/chat/completions", body))
        # From a hundredth of a millisecond to 0.6 s, half of them under 2.5 ms: as long as a healthy answer takes.
        done, _ = await asyncio.wait({task}, timeout=dice.random() ** 8 * 0.6)
        told[0 if done else 1] += 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    while time.monotonic() < end:
        while len(kept) >= 30:
            _, kept = await asyncio.wait(kept, return_when=asyncio.FIRST_COMPLETED)
        kept.add(asyncio.ensure_future(one()))
        await asyncio.sleep(0.01)
    await asyncio.wait(kept)
    await asyncio.sleep(3.0)
    _, _, metrics = await client.call("GET", "/metrics")
    lines = metrics.decode().splitlines()
    held = [l for l in lines if l.startswith(("backstay_calls_in_flight", "backstay_queue_waiting")) and not l.endswith(" 0")]
    verdict.holds("what is still taken when all is quiet (nothing)", "; ".join(held) or "nothing", not held)
    await fleet.primary.play("first", "healthy")
    # Every place of the target has to be there: forty at once, and none waits for another.
    body = question("main")
    await fleet.mirror.play("second", "healthy")
    calls = await asyncio.gather(*(ask(client, time.monotonic(), body) for _ in range(40)))
    answered = sum(c.status == 200 for c in calls)
    verdict.holds("forty calls at once after that (all answered)", f"{answered} of 40", answered == 40)
    verdict.holds("calls that ended, and that were given up (a tenth each)", f"{told[0]} and {told[1]}", min(told) * 10 > sum(told))


BACKFILL = """
[server]
call_log = "off"

[queue]
count = 20000

[providers.primary]
dialect = "openai_chat"
base_url = "@PRIMARY@"
auth = "none"

[models.first]
provider = "primary"
model = "first"
pinned = true
{limits}

[routes.main]
tiers = ["first"]
deadline = "1800s"
timeouts = {{ connect = "1s", first_token = "30s", gap = "30s", total = "60s" }}
max_output_tokens = 300
"""


async def backfill(fleet, verdict, scale):
    # 600 requests and 90,000 tokens a minute, time sixty times as fast.
    speed = 60
    requests, tokens = 600 * speed, 90_000 * speed
    limits = f"[models.first.rates]\nrequests_per_minute = {requests}\ntokens_per_minute = {tokens}\nshare = 0.98\nburst = 0"
    client = await fleet.gateway(BACKFILL.format(limits=limits))
    await fleet.primary.limit("first", requests=requests, tokens=tokens)
    # What the provider counts on arrival is what the call uses: nothing comes back.
    await fleet.primary.play("first", "healthy+completion_tokens=300")
    # 750 tokens of prompt and 300 of output: 1,050 a call, 85.7 calls a minute of the real account.
    batch = question("main", words=560, cap=300)
    count, began = int(10_000 * scale), time.monotonic()
    people, stop = [], asyncio.Event()

    async def person():
        while not stop.is_set():
            people.append(await ask(client, began, batch, [("x-backstay-priority", "interactive")], 1800))
            await asyncio.sleep(0.5)

    talking = [asyncio.ensure_future(person()) for _ in range(4)]
    tasks = [asyncio.ensure_future(ask(client, began, batch, [("x-backstay-priority", "batch")], 1800)) for _ in range(count)]
    calls = await asyncio.gather(*tasks)
    took = time.monotonic() - began
    stop.set()
    await asyncio.gather(*talking)
    log = await fleet.primary.log()
    used = sum(entry["status"] == 200 for entry in log)
    size = len(json.dumps(batch)) // 4 + 300
    possible = took / 60 * min(requests, tokens / size)
    refused = sum(entry["status"] == 429 for entry in log)
    answered = sum(c.status == 200 for c in calls)
    failed = dict(collections.Counter(c.code for c in calls if c.status != 200))
    verdict.holds("calls answered (all)", f"{answered} of {count} in {took:.1f} s; not: {failed or 'none'}", answered == count)
    verdict.holds("of the rate that is possible (at least 97 %)", f"{used / possible:.2%}", used / possible >= 0.97)
    verdict.holds("answered 429 by the provider (under 0.5 %)", f"{refused} of {len(log)}", refused < 0.005 * max(1, len(log)))
    waits = sorted(c.took for c in people)
    p95 = waits[int(len(waits) * 0.95)] if waits else float("inf")
    verdict.holds(f"p95 of {len(waits)} interactive calls (under 1 s)", f"{p95:.3f} s", p95 < 1.0)


async def hosts(fleet, verdict, scale):
    names = [f"m{index}" for index in range(50)]
    config = '[server]\ncall_log = "off"\n[providers.primary]\ndialect = "openai_chat"\nbase_url = "@PRIMARY@"\nauth = "none"\n'
    for name in names:
        config += f'[models.{name}]\nprovider = "primary"\nmodel = "{name}"\npinned = true\n'
        config += f'[routes.r-{name}]\ntiers = ["{name}"]\ndeadline = "5s"\nmax_output_tokens = 300\n'
    client = await fleet.gateway(config)
    # The first is down for good; each other fails every second request once.
    await fleet.primary.play("m0", "status-500")
    for name in names[1:]:
        await fleet.primary.play(name, *(["status-500", "healthy"] * 40))
    failed, sent = [], 0
    for turn in range(max(2, int(8 * scale))):
        for name in names[1:]:
            call = await ask(client, time.monotonic(), question(f"r-{name}"))
            sent += 1
            if call.status != 200:
                failed.append((name, call.code))
        await ask(client, time.monotonic(), question("r-m0"))
    verdict.holds("calls that got their retry, one at a time (all)", f"{sent - len(failed)} of {sent} {failed[:3]}", not failed)
    _, _, metrics = await client.call("GET", "/metrics")
    opened = {l for l in metrics.decode().splitlines() if l.startswith("backstay_breaker_open{") and not l.endswith(" 0")}
    leaked = [l for l in opened if 'target="m0"' not in l]
    verdict.holds("breakers opened for another target's failures (none)", leaked or "none", not leaked)


SCENARIOS = {f.__name__: f for f in (outage, silence, flapping, cancels, backfill, hosts)}


def progress(seconds: float):
    """A bar on a terminal, else nothing."""
    if not sys.stderr.isatty():
        return None

    def told(second):
        done = min(40, int(40 * second / seconds))
        print(f"\r  [{'#' * done}{'.' * (40 - done)}] {second:4d} of {seconds:.0f} s", end="", file=sys.stderr)

    return told


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="*", choices=[*SCENARIOS, []], help="all without one")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    options = parser.parse_args()
    verdicts = []
    for name in options.scenario or SCENARIOS:
        verdict = Verdict(name)
        print(name, flush=True)
        async with Fleet(options.binary, options.folder / name) as fleet:
            await SCENARIOS[name](fleet, verdict, options.scale)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        verdict.print()
        verdicts.append({"scenario": name, "rows": verdict.rows})
    (options.folder / "result.json").write_text(json.dumps(verdicts, indent=1))
    return 0 if all(row["holds"] for verdict in verdicts for row in verdict["rows"]) else 1


sys.exit(asyncio.run(main()))
