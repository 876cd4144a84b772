"""Fixtures: one mock for the whole run, one gateway for every test that asks, both ended at the end."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import clients  # noqa: E402
import node  # noqa: E402
import plant  # noqa: E402
from ways import PYTHON  # noqa: E402


@pytest.fixture(scope="session")
def the_mock(tmp_path_factory):
    mock = plant.Mock(tmp_path_factory.mktemp("mock"))
    yield mock
    mock.stop()


@pytest.fixture
def mock(the_mock):
    the_mock.reset()
    return the_mock


@pytest.fixture
def start(tmp_path):
    """Starts gateways by their configuration; each test has its own, so no breaker remembers another's."""
    running = []

    def begin(config: str, env=None) -> plant.Gateway:
        folder = tmp_path / str(len(running))
        folder.mkdir()
        running.append(plant.Gateway(folder, config, {"MOCK_KEY": "mock", **(env or {})}))
        return running[-1]

    yield begin
    for gateway in running:
        gateway.stop()


@pytest.fixture(params=clients.BOTH, ids=lambda sdk: f"{sdk.name}-sdk")
def sdk(request):
    """Makes clients of one SDK: `sdk(gateway)`. Everything but the base URL is the SDK's default."""
    made = []

    def make(gateway, **settings):
        made.append(request.param(gateway.url, **settings))
        return made[-1]

    make.kind = request.param
    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session", params=["python", "node"])
def ways(request, tmp_path_factory):
    """All ways of a language's SDKs to read a stream."""
    if request.param == "python":
        yield PYTHON
        return
    if not node.FOLDER:
        pytest.skip("the Node SDKs are not installed")
    running = node.Node(tmp_path_factory.mktemp("node") / "node.log")
    yield node.ways(running)
    running.stop()


@pytest.fixture(scope="session")
def tickets():
    lines = (plant.TRIAGE / "tickets.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line]
