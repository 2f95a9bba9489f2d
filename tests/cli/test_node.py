"""`cidrella node` and `cidrella pool`: playing with what `cidrella up` runs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.app import playing
from cidrella.app.up_place import KUBECONFIG, default_directory, occupied
from cidrella.model.objects import NODES_PATH, POOLS_PATH
from tests.app.embedded import EmbeddedApi, embedded
from tests.cli.fake_api import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.run import Cidrella


@pytest.fixture
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment leads anywhere."""
    for name in ("KUBECONFIG", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedApi]:
    """An embedded API with a controller, for all."""
    with embedded(tmp_path_factory.mktemp("controlled"), controller=True) as running:
        yield running


@pytest.fixture
def api(controlled: EmbeddedApi, monkeypatch: pytest.MonkeyPatch, _alone: None) -> EmbeddedApi:
    """The one with a controller, empty, that $KUBECONFIG leads to."""
    controlled.clean()
    monkeypatch.setenv("KUBECONFIG", str(controlled.kubeconfig))
    return controlled


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _alone: None) -> Iterator[EmbeddedApi]:
    """One without a controller."""
    monkeypatch.setattr(playing, "_MOMENT", 0.1)
    with embedded(tmp_path) as running:
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        yield running


def node(api: EmbeddedApi, name: str) -> dict[str, Any]:
    return next(each for each in api.items(NODES_PATH) if each["metadata"]["name"] == name)


class TestNodes:
    """Nodes come and go as kubelets register them."""

    def test_blocks_and_waiting(self, cidrella: Cidrella, api: EmbeddedApi) -> None:
        """N4: each node is shown with its block, or with why it waits, in the words of `explain`."""
        assert cidrella("pool", "add", "small", "10.10.0.0/23").out == "small is there: 10.10.0.0/23 by /24\n"
        assert cidrella("node", "add", "a", "b").out == "a has 10.10.0.0/24 from small\nb has 10.10.1.0/24 from small\n"
        waits = cidrella("node", "add", "c")
        assert waits.code == 0
        assert waits.out == "c waits: every pool that applies is full: small (no IPv4 /24 left)\n"
        assert waits.out.split(": ", 1)[1] in cidrella("explain", "c").out
        assert cidrella("node", "remove", "a").out == "a is gone, and 10.10.0.0/24 with it\n"
        assert node(api, "c")["status"]["conditions"][-1]["type"] == "Ready"

    def test_labels(self, cidrella: Cidrella, api: EmbeddedApi) -> None:
        """S1: labels choose the pool, as they do in a cluster."""
        cidrella("pool", "add", "racks", "10.1.0.0/20", "fd00::/56", "--mask-size=22", "-l", "rack=1,row=a")
        shown = cidrella("node", "add", "x", "--labels", "rack=1,row=a").out
        assert shown == "x has 10.1.0.0/22, fd00::/64 from racks\n"
        assert cidrella("node", "add", "y", "--labels=rack=1").out == "y waits: no pool applies to it\n"
        (pool,) = api.items(POOLS_PATH)
        assert (pool["spec"]["perNodeHostBits"], pool["spec"]["perNodeHostBitsIPv6"]) == (10, 64)

    def test_numbers_go_on(self, cidrella: Cidrella, api: EmbeddedApi) -> None:
        """So many at a time, and again as many: no name is given twice."""
        for expected in (["node-1", "node-2"], ["node-3", "node-4"]):
            shown = cidrella("node", "add", "--count=2").out
            assert [line.split()[0] for line in shown.splitlines()] == expected
        assert cidrella("node", "add", "edge", "--count=1").out.startswith("edge-1 waits")
        assert cidrella("node", "remove", "--all").out.count(" is gone\n") == 5
        assert api.items(NODES_PATH) == []

    def test_one_that_is_there(self, cidrella: Cidrella, api: EmbeddedApi) -> None:
        """Nothing is added where one of the names is taken, and what is not there cannot be removed."""
        cidrella("node", "add", "a")
        again = cidrella("node", "add", "b", "a")
        assert (again.code, again.out) == (2, "")
        assert again.err == "there is a node a already; remove it first, or choose another name\n"
        gone = cidrella("node", "remove", "a", "b")
        assert (gone.code, gone.out, gone.err) == (2, "a is gone\n", "there is no node b\n")
        assert api.items(NODES_PATH) == []

    def test_waiting_for_a_block(self, cidrella: Cidrella, api: EmbeddedApi) -> None:
        """`--wait` says why it waits, and ends when it has what it waits for."""

        def make_room() -> None:
            while not api.items(NODES_PATH):
                time.sleep(0.02)
            time.sleep(0.3)
            spec = {"perNodeHostBits": 8, "ipv4": "10.9.0.0/24"}
            kind = {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": "late"}}
            api.do(lambda client: client.create(POOLS_PATH, {**kind, "spec": spec}, dict))

        helper = threading.Thread(target=make_room)
        helper.start()
        result = cidrella("node", "add", "a", "--wait")
        helper.join()
        assert (result.code, result.out) == (0, "a has 10.9.0.0/24 from late\n")
        assert result.err == "a waits: no pool applies to it\n"

    @pytest.mark.usefixtures("idle")
    def test_without_a_controller(self, cidrella: Cidrella) -> None:
        """What it would get is told, and that nobody gives it."""
        cidrella("pool", "add", "all", "10.0.0.0/16")
        assert cidrella("node", "add", "a").out == "a waits: it would get 10.0.0.0/24; does a controller run?\n"

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["add"], "name the nodes to add"),
            (["add", "A"], "'A' is no valid name"),
            (["add", "a", "a"], "given twice"),
            (["add", "a", "b", "--count=2"], "--count is for one NAME"),
            (["add", "a", "--labels=x"], "--labels: 'x' is no label"),
            (["add", "--count=10001"], "less than or equal to 10000"),
            (["remove"], "name the nodes to remove, or say --all"),
            (["remove", "a", "--all"], "name the nodes to remove, or say --all"),
        ],
    )
    @pytest.mark.usefixtures("_alone")
    def test_wrong_arguments(self, cidrella: Cidrella, arguments: list[str], expected: str) -> None:
        """Exit code 2, before anything is looked for."""
        result = cidrella("node", *arguments)
        assert result.code == 2
        assert expected in result.err


class TestPools:
    """Pools come and go without kubectl."""

    def test_one_in_use_stays(self, cidrella: Cidrella, api: EmbeddedApi) -> None:
        """P2, S6: it gives nothing more, and is gone with its last node; one that nobody uses is gone at once."""
        cidrella("pool", "add", "first", "10.10.0.0/22")
        cidrella("node", "add", "a", "b")
        shown = cidrella("pool", "remove", "first")
        assert shown.out == "first is Terminating: 2 nodes use it; it stays until the last of them is gone\n"
        assert cidrella("node", "add", "c").out.startswith("c waits: ")
        assert "2 nodes use it" in cidrella("pool", "remove", "first").out
        cidrella("node", "remove", "a")
        assert "1 node uses it" in cidrella("pool", "remove", "first").out
        cidrella("node", "remove", "b")
        deadline = time.monotonic() + 5
        while api.items(POOLS_PATH) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert cidrella("pool", "remove", "first").err == "there is no pool first\n"
        cidrella("node", "remove", "c")
        cidrella("pool", "add", "second", "10.20.0.0/22")
        assert cidrella("pool", "remove", "second").out == "second is gone\n"

    def test_one_that_takes_its_time(
        self, cidrella: Cidrella, idle: EmbeddedApi, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P1: one that nobody uses is waited for, for a moment; if it stays all the same, that is said."""
        cidrella("pool", "add", "slow", "10.10.0.0/22")
        path = f"{POOLS_PATH}/slow"

        def hold(finalizers: list[str]) -> None:
            idle.do(lambda client: client.patch(path, {"metadata": {"finalizers": finalizers}}, dict))

        hold(["example.com/held"])
        told = "slow is Terminating, although no node uses it; does a controller run?\n"
        assert cidrella("pool", "remove", "slow").out == told
        monkeypatch.setattr(playing, "_MOMENT", 10.0)
        later = threading.Timer(0.4, hold, [[]])
        later.start()
        assert cidrella("pool", "remove", "slow").out == "slow is gone\n"
        later.join()

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["add", "a", "10.0.0.1/16"], "'10.0.0.1/16' has host bits set"),
            (["add", "a", "10.0.0.0/16", "10.1.0.0/16"], "one range, or one of each family"),
            (["add", "A", "10.0.0.0/16"], "metadata.name"),
            (["add", "a", "10.0.0.0/25"], "spec.perNodeHostBits"),
            (["add", "a", "10.0.0.0/16", "-l", "x"], "--selector: 'x' is no label"),
            (["add", "a"], "Missing argument"),
            (["remove"], "Missing argument"),
        ],
    )
    @pytest.mark.usefixtures("_alone")
    def test_wrong_arguments(self, cidrella: Cidrella, arguments: list[str], expected: str) -> None:
        """C1, C2: exit code 2, before anything is looked for."""
        result = cidrella("pool", *arguments)
        assert result.code == 2
        assert expected in result.err


class TestWhere:
    """Only an embedded API is for play."""

    @pytest.mark.usefixtures("_alone")
    def test_a_cluster_is_refused(self, cidrella: Cidrella, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever $KUBECONFIG leads to is left alone if it says that it is something else."""
        with serving(tmp_path) as cluster:
            cluster.objects["/version"] = {"gitVersion": "v1.36.3"}
            monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
            for arguments in (["node", "add", "a"], ["pool", "add", "a", "10.0.0.0/16"], ["pool", "remove", "a"]):
                result = cidrella(*arguments)
                assert (result.code, result.out) == (2, "")
                assert "is a cluster (v1.36.3), not an embedded API" in result.err
            result = cidrella("node", "remove", "--all")
            assert "is a cluster" in result.err
            assert set(cluster.asked) == {"GET /version"}

    @pytest.mark.usefixtures("_alone")
    def test_none_runs(self, cidrella: Cidrella) -> None:
        """Where there is none, that is said, with where it was looked for."""
        result = cidrella("node", "add", "a")
        assert result.code == 2
        assert result.err.startswith("no kubeconfig (")
        assert result.err.endswith(", and no cidrella up runs here without --data-dir\n")

    @pytest.mark.usefixtures("_alone")
    def test_nobody_at_home(self, cidrella: Cidrella, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without a home directory there is nowhere to look."""
        monkeypatch.delenv("HOME")
        assert "no home directory" in cidrella("node", "add", "a").err

    @pytest.mark.usefixtures("_alone")
    def test_one_that_was_killed(self, cidrella: Cidrella, api: EmbeddedApi, monkeypatch: pytest.MonkeyPatch) -> None:
        """The kubeconfig at the fixed place is found while one runs; if it does not answer, that is said."""
        monkeypatch.delenv("KUBECONFIG")
        with occupied("") as place:
            place.write(KUBECONFIG, api.kubeconfig.read_bytes())
            assert cidrella("node", "add", "a").out == "a waits: no pool applies to it\n"
            place.write(KUBECONFIG, api.kubeconfig.read_bytes().replace(api.url.encode(), b"http://127.0.0.1:1"))
            result = cidrella("node", "add", "b")
            assert result.code == 2
            assert "does not answer" in result.err
        default_directory().joinpath(KUBECONFIG).write_bytes(api.kubeconfig.read_bytes())
        assert "no cidrella up runs here" in cidrella("node", "add", "b").err
        assert len(api.items(NODES_PATH)) == 1
