"""Every command works on the cluster that one rule chooses, and names it where nothing else does."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from cidrella import cli
from cidrella.app.up_place import KUBECONFIG, occupied
from tests.cli.fake_api import SERVICES, FakeApi, serving
from tests.cli.run import in_its_own_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.run import Cidrella

READS = (
    ["pools"],
    ["nodes"],
    ["explain", "a"],
    ["services"],
    ["plan", "--from-cluster"],
)


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """A cluster that ~/.kube/config leads to."""
    for name in ("KUBECONFIG", "XDG_STATE_HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(tmp_path) as running:
        (tmp_path / ".kube").mkdir()
        shutil.move(running.kubeconfig, tmp_path / ".kube" / "config")
        running.collections["/api/v1/services"] = []
        running.collections[SERVICES].append({"metadata": {"name": "s"}, "spec": {"cidrs": ["10.96.0.0/16"]}})
        running.objects["/version"] = {"gitVersion": "v1.36.3"}
        running.pool("all")
        running.node("a", "10.0.0.0/24")
        yield running


@pytest.mark.parametrize("command", READS, ids=lambda command: command[0])
def test_output_for_programs_stays_clean(cidrella: Cidrella, api: FakeApi, tmp_path: Path, command: list[str]) -> None:
    """The name is one line on standard error; JSON and YAML are whole. With a flag that names it there is no line."""
    config = tmp_path / ".kube" / "config"
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        result = cidrella(*command, "-o", form)
        assert result.code == 0
        assert read(result.out)
        assert re.fullmatch(rf"cluster: staging \(http://127\.0\.0\.1:[0-9]+\), from {config}\n", result.err)
        for flags in (["--kubeconfig", config], ["--context", "staging"]):
            assert cidrella(*command, "-o", form, *flags).err == ""
    assert api.asked


@pytest.mark.parametrize("command", [["map"], ["release", "--finalizers", "--dry-run"]], ids=lambda each: each[0])
@pytest.mark.usefixtures("api")
def test_commands_without_such_output(cidrella: Cidrella, command: list[str]) -> None:
    """They name it, too."""
    result = cidrella(*command)
    assert (result.code, result.err.count("\n"), result.err[:17]) == (0, 1, "cluster: staging ")
    assert "staging" not in result.out


def test_cluster_is_named_before_it_is_asked(cidrella: Cidrella, api: FakeApi) -> None:
    """Also where it then refuses: the line is about what was tried."""
    api.instead["/api/v1/nodes"] = (500, b"{}")
    result = cidrella("nodes")
    assert result.code == 2
    assert result.err.startswith("cluster: staging ")
    assert result.err.count("\n") == 2


def test_files_name_no_cluster(cidrella: Cidrella, api: FakeApi, tmp_path: Path) -> None:
    """Where objects come from files there is none."""
    path = tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all([api.collections["/apis/networking.x-k8s.io/v1/clustercidrs"][0]]))
    assert "cluster:" not in cidrella("pools", path).err
    assert api.asked == []


@pytest.mark.parametrize("server", ["run", "webhook"])
def test_servers_do_not_take_a_running_up(tmp_path: Path, server: str) -> None:
    """Beside `cidrella up` runs a controller already: a second one needs to be told where, and ends without."""
    with occupied("", {"HOME": str(tmp_path)}) as place:
        place.write(KUBECONFIG, b"of no use")
        unset = "unset KUBECONFIG XDG_STATE_HOME KUBERNETES_SERVICE_HOST"
        result = in_its_own_process(f"{unset}; HOME={tmp_path} cidrella {server}")
    assert result.code == 2
    assert "no kubeconfig" in result.err


def test_commands_open_clusters_in_one_way() -> None:
    """Only `cli.source` and servers' `app.process` find a cluster: no command has a rule of its own."""
    modules = Path(cli.__file__).parent.glob("*.py")
    found = {each.name for each in modules if re.search("load_access|choose_cluster", each.read_text())}
    assert found == {"source.py"}
