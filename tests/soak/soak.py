"""Holds many streams open through the gateway, and watches its memory and how they end."""

import argparse
import asyncio
import collections
import json
import os
import pathlib
import random
import re
import resource
import secrets
import statistics
import sys
import time

from caller import Reply, call, request
from fleet import Client, Process
from vitals import Sockets, open_files, resident, slope

EVERY = 2.0  # seconds between samples
GROWTH = 0.03  # of the memory at full load, over the second half
NOISE = 2048  # KiB: less growth than this is none
SPARE_FILES = 8  # files a gateway may open after its start: the call log's, a pipe

# Of a hundred streams. Content is CHUNKS pieces; tools are what the mock makes of the request.
CHUNKS = {"long": 200, "short": 40, "tools": 12, "cut": 100}
KINDS = {"long": 45, "short": 35, "tools": 12, "cut": 8}
MODES = {"passthrough": 25, "gate": 40, "windowed": 20, "buffered": 15}
HANG_UPS = 0.2

CONFIG = """
[server]
admin_key = { env = "SOAK_ADMIN_KEY" }
max_connections = 20000

[providers.mock]
dialect = "openai_chat"
base_url = "http://127.0.0.1:@PORT@/v1"
auth = "none"
"""
# What would keep streams away is off: a target whose every answer is cut would rest, and on a busy
# machine late first tokens would be taken for a strained provider, which is then asked less.
TARGET = """
[models.{name}]
provider = "mock"
model = "{model}"
pinned = true
breaker = {{ mode = "metrics_only" }}
places = {{ floor = 10000 }}

[routes.{name}]
tiers = ["{name}"]
deadline = "10m"
"""


def models(gap: int) -> dict:
    text = {name: f"healthy+n={CHUNKS[name]}+gap={gap}ms" for name in ("long", "short")}
    at = CHUNKS["cut"] // 2
    return text | {"tools": f"tool-call+gap={gap}ms", "cut": f"stream-cut+n={CHUNKS['cut']}+at={at}+gap={gap}ms"}


def patience(gap: int) -> float:
    """Seconds after which a stream that has not ended counts as hung: thrice the longest, and a minute."""
    return 60.0 + 3 * max(CHUNKS.values()) * gap / 1000


class Tally:
    """How streams ended. A false success is a clean end of an answer that is not the provider's whole one."""

    def __init__(self):
        self.ended, self.active, self.hung, self.false_successes = collections.Counter(), 0, 0, 0
        self.troubles = collections.Counter()

    def note(self, kind: str, reply: Reply | None, told: str):
        if reply is None:
            self.ended["hung up"] += 1
        elif reply.whole and (kind == "cut" or reply.said != told):
            self.ended["false success"] += 1
            self.false_successes += 1
        elif reply.whole:
            self.ended["finished"] += 1
        elif kind == "cut":
            self.ended["cut, and told so"] += 1
        else:
            self.ended["failed"] += 1
            self.troubles[f"{kind}: {reply.trouble}"] += 1


class Soak:
    def __init__(self, order, port: int, told: dict):
        self.order, self.port, self.told, self.patience = order, port, told, patience(order.gap)
        self.tally, self.dice, self.stopping = Tally(), random.Random(order.seed), False

    async def slot(self, wait: float):
        """One stream after another, until the end is near."""
        await asyncio.sleep(wait)
        while not self.stopping:
            kind, mode = self._pick(KINDS), self._pick(MODES)
            length = CHUNKS[kind] * self.order.gap / 1000
            hang_up = self.dice.uniform(0.0, length) if self.dice.random() < HANG_UPS else None
            began = time.monotonic()
            self.tally.active += 1
            try:
                raw = request(kind, mode, kind == "tools")
                reply = await call(self.port, raw, self.patience, hang_up, self.dice.random() < 0.5)
                self.tally.note(kind, reply, self.told[kind])
            except TimeoutError:
                self.tally.hung += 1
            except OSError as broken:
                self.tally.ended["failed"] += 1
                self.tally.troubles[type(broken).__name__] += 1
            finally:
                self.tally.active -= 1
            if time.monotonic() - began < 0.5:  # a refusal must not become a hammer
                await asyncio.sleep(0.5)

    def _pick(self, shares: dict) -> str:
        return self.dice.choices(list(shares), list(shares.values()))[0]

    async def run(self, pid: int) -> list:
        """Samples of the time at full load: (seconds, KiB, streams, files, load average)."""
        order = self.order
        ramp = max(1.0, order.streams / 100)
        slots = [asyncio.ensure_future(self.slot(ramp * at / order.streams)) for at in range(order.streams)]
        # The first streams of all slots are over before memory is compared.
        settle = ramp + CHUNKS["long"] * order.gap / 1000
        began, samples = time.monotonic(), []
        end = settle + order.minutes * 60
        while (now := time.monotonic() - began) < end:
            samples.append((now, resident(pid), self.tally.active, open_files(pid), os.getloadavg()[0]))
            self._progress(now, end, samples[-1])
            await asyncio.sleep(EVERY)
        self.stopping = True
        print("\nending", file=sys.stderr)
        _, late = await asyncio.wait(slots, timeout=self.patience + 10)
        for task in late:
            task.cancel()
        self.tally.hung += len(late)
        with (order.folder / "samples.csv").open("w") as table:
            table.write("seconds,kib,streams,files,load\n")
            table.writelines(f"{at:.1f},{kib},{streams},{files},{load}\n" for at, kib, streams, files, load in samples)
        return [sample for sample in samples if sample[0] >= settle]

    def _progress(self, now, end, sample):
        _, kib, streams, files, _ = sample
        said = f"{now:5.0f} of {end:.0f} s  {streams} streams  {kib / 1024:.1f} MiB  {files} files  "
        said += ", ".join(f"{count} {word}" for word, count in sorted(self.tally.ended.items()))
        print(f"\r{said:<110}", end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


async def left_over(gateway: Client, mock: Client, key: str) -> dict:
    """What is still taken, at most ten seconds after the last stream ended."""
    end = time.monotonic() + 10
    while True:
        _, _, metrics = await gateway.call("GET", "/metrics")
        _, _, targets = await gateway.call("GET", "/admin/targets", headers=[("authorization", f"Bearer {key}")])
        _, _, log = await mock.call("GET", "/_mock/log")
        gauges = dict(re.findall(r"^(backstay_calls_in_flight|backstay_seats_taken) (\S+)$", metrics.decode(), re.M))
        found = {
            "calls": int(float(gauges["backstay_calls_in_flight"])),
            "seats": int(float(gauges["backstay_seats_taken"])),
            "places": sum(target["in_flight"] for target in json.loads(targets)["targets"]),
            "at the provider": sum(entry["end"] == "pending" for entry in json.loads(log)),
        }
        if not any(found.values()) or time.monotonic() > end:
            return found
        await asyncio.sleep(0.5)


def findings(order, tally, idle, steady, left, sockets, files) -> list:
    """Rows: what, what was seen, its limit, whether it holds (`None`: it has no limit)."""
    mebibytes = lambda kib: f"{kib / 1024:.1f} MiB"
    full = statistics.median(kib for _, kib, *_ in steady)
    streams = statistics.median(active for _, _, active, *_ in steady)
    half = steady[len(steady) // 2 :]
    growth = slope([(at, kib) for at, kib, *_ in half]) * (half[-1][0] - half[0][0])
    bound = max(GROWTH * full, NOISE)
    ended = ", ".join(f"{count} {word}" for word, count in sorted(tally.ended.items()))
    troubles = ", ".join(f"{count} {word}" for word, count in tally.troubles.most_common(5))
    lost = files - sockets.providers - idle["files"]
    return [
        ("streams at once, median", f"{streams:.0f} of {order.streams}", "0.95 of them", streams >= 0.95 * order.streams),
        ("memory, idle", mebibytes(idle["kib"]), "", None),
        ("memory at this many, median", mebibytes(full), "", None),
        ("memory a stream", f"{(full - idle['kib']) / max(streams, 1):.1f} KiB", "", None),
        (f"growth over the last {half[-1][0] - half[0][0]:.0f} s, by the line through them", mebibytes(growth), mebibytes(bound), growth <= bound),
        ("how streams ended", ended, "", None),
        ("failed", troubles or "none", "none", not tally.ended["failed"]),
        ("clean ends that were none", tally.false_successes, "none", not tally.false_successes),
        ("without an end", tally.hung, "none", not tally.hung),
        ("still taken afterwards", ", ".join(f"{what} {count}" for what, count in left.items()), "0", not any(left.values())),
        ("sockets of callers, half closed ones", f"{sockets.callers}, {sockets.half_closed}", "0", sockets.callers + sockets.half_closed == 0),
        ("files over those at the start, without connections kept to the provider", f"{lost} ({sockets.providers} kept)", SPARE_FILES, lost <= SPARE_FILES),
    ]


async def told_by(port: int, gap: int) -> dict:
    """What the provider itself says, by kind; the same request gives the same text, whoever asks."""
    print("asking the provider itself", file=sys.stderr)
    asked = models(gap)
    replies = await asyncio.gather(*(call(port, request(model, None, kind == "tools"), patience(gap)) for kind, model in asked.items()))
    return {kind: reply.said for kind, reply in zip(asked, replies)}


async def soak(order) -> list:
    key = secrets.token_hex(16)
    os.environ["SOAK_ADMIN_KEY"] = key
    provider = await Process.start(order.folder, "provider", order.binary, "mock", "--listen", "127.0.0.1:0")
    serve = None
    try:
        config = CONFIG.replace("@PORT@", str(provider.port))
        for name, model in models(order.gap).items():
            config += TARGET.format(name=name, model=model)
        path = order.folder / "backstay.toml"
        path.write_text(config)
        serve = await Process.start(order.folder, "gateway", order.binary, "serve", "-c", str(path), "--listen", "127.0.0.1:0")
        await asyncio.sleep(1.0)
        pid = serve.child.pid
        idle = {"kib": resident(pid), "files": open_files(pid)}
        work = Soak(order, serve.port, await told_by(provider.port, order.gap))
        steady = await work.run(pid)
        gateway, mock = Client(serve.port), Client(provider.port)
        left = await left_over(gateway, mock, key)
        gateway.close()
        mock.close()
        await asyncio.sleep(1.0)
        return findings(order, work.tally, idle, steady, left, Sockets(pid, serve.port), open_files(pid))
    finally:
        if serve:
            await serve.stop()
        await provider.stop()


def parsed():
    asked = argparse.ArgumentParser(prog="tests/soak/run")
    asked.add_argument("--binary", required=True)
    asked.add_argument("--folder", type=pathlib.Path, required=True)
    asked.add_argument("--streams", type=int, default=1000, help="at once, 1 to 10000")
    asked.add_argument("--minutes", type=float, default=10.0, help="at full load, 0.5 to 1440")
    asked.add_argument("--gap", type=int, default=100, help="milliseconds between chunks, 10 to 5000")
    asked.add_argument("--seed", type=int, default=1, help="of kinds, modes and moments")
    order = asked.parse_args()
    for name, least, most in (("streams", 1, 10000), ("minutes", 0.5, 1440), ("gap", 10, 5000)):
        if not least <= getattr(order, name) <= most:
            asked.error(f"--{name} is {least} to {most}")
    return order


def main() -> int:
    order = parsed()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the gateway inherits it: two sockets a stream
    load = " ".join(f"{value:.0f}" for value in os.getloadavg())
    try:
        rows = asyncio.run(soak(order))
    except KeyboardInterrupt:
        return 130
    print(f"{order.streams} streams for {order.minutes:g} minutes, chunks {order.gap} ms apart, seed {order.seed};", end=" ")
    print(f"{os.cpu_count()} cores, load average before {load}\n")
    print("| what | seen | limit | |\n|---|---|---|---|")
    for what, seen, limit, holds in rows:
        print(f"| {what} | {seen} | {limit} | {'' if holds is None else 'holds' if holds else 'does not hold'} |")
    return 0 if all(holds is not False for *_, holds in rows) else 1


sys.exit(main())
