"""Starts mock provider and gateway as real processes, and ends them by their process id."""

import json
import os
import re
import select
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRIAGE = ROOT / "examples" / "triage"
BINARY = os.environ.get("BACKSTAY_BIN", str(ROOT / "target" / "ci" / "backstay"))

# A debug build on two busy cores starts in well under a second.
START_SECONDS = 15.0
STOP_SECONDS = 10.0
LISTENING = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")

# No proxy and no key of the machine may reach the programs under test.
CLEAN = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), "RUST_BACKTRACE": "1"}


class Process:
    """A program that says where it listens and runs until `stop`."""

    def __init__(self, words, log: Path, env=None):
        self.log = log
        self.errors = open(log, "wb")
        self.child = subprocess.Popen(
            [BINARY, *words], stdout=subprocess.PIPE, stderr=self.errors, env={**CLEAN, **(env or {})}
        )
        self.printed = b""
        try:
            self.url = self._wait_for_url()
        except BaseException:
            self.stop()
            raise

    def _wait_for_url(self) -> str:
        end = time.monotonic() + START_SECONDS
        out = self.child.stdout
        while time.monotonic() < end:
            ready, _, _ = select.select([out], [], [], 0.1)
            if ready:
                part = os.read(out.fileno(), 65536)
                self.printed += part
                found = LISTENING.search(self.printed.decode(errors="replace"))
                if found:
                    return found.group(1)
                if not part:
                    break
        raise AssertionError(
            f"{self.child.args} did not say where it listens\n"
            f"stdout: {self.printed.decode(errors='replace')}\nstderr: {self.log.read_text(errors='replace')}"
        )

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait(STOP_SECONDS)
        self.child.stdout.close()
        self.errors.close()


class Mock(Process):
    """The provider that misbehaves on request, with the ground truth of what it was asked."""

    def __init__(self, folder: Path, answers: Path = TRIAGE / "tickets.jsonl"):
        super().__init__(["mock", "--listen", "127.0.0.1:0", "--answers", str(answers)], folder / "mock.log")

    def reset(self):
        self._post("reset")

    def script(self, model: str, steps: list[str]):
        """Has a model of that name play one step a call; the last is played from then on."""
        self._post("script", {"model": model, "steps": steps})

    def _post(self, what: str, body=None):
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_mock/{what}", data=sent, method="POST")
        urllib.request.urlopen(request, timeout=5).close()

    def calls(self) -> list[dict]:
        """The model calls since the last reset, in the order they came."""
        with urllib.request.urlopen(self.url + "/_mock/log", timeout=5) as reply:
            log = json.load(reply)
        return log["calls"] if isinstance(log, dict) else log

    def calls_to(self, model: str) -> list[dict]:
        return [call for call in self.calls() if call["model"] == model]


class Gateway(Process):
    """The gateway with one configuration."""

    def __init__(self, folder: Path, config: str, env=None):
        (folder / "triage.schema.json").write_bytes((TRIAGE / "triage.schema.json").read_bytes())
        self.config = folder / "backstay.toml"
        self.config.write_text(config)
        super().__init__(
            ["serve", "-c", str(self.config), "--listen", "127.0.0.1:0"], folder / "gateway.log", env
        )
