"""Which cluster a command works on, and whether its name is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cidrella.app.cluster_choice import choose_cluster
from cidrella.app.inventory import ClusterError
from cidrella.app.up_place import KUBECONFIG, default_directory, occupied
from tests.cli.fake_api import kubeconfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.app.cluster_choice import ChosenCluster

UP = "https://127.0.0.1:10292"
CLUSTER = "https://10.0.0.1:6443"


class Machine:
    """A home directory, and what a shell there has in its environment."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ = {"HOME": str(directory)}
        self.account = directory / "account"

    @property
    def config(self) -> Path:
        return self.directory / ".kube" / "config"

    def write(self, path: Path, server: str = CLUSTER) -> str:
        """Write a kubeconfig."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kubeconfig(server)))
        return str(path)

    def be_a_pod(self) -> None:
        """Have an account."""
        self.account.mkdir()
        (self.account / "token").write_text("t")
        self.environ |= {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    def choose(self, path: str = "", context: str = "") -> ChosenCluster:
        """Choose, as a command there does."""
        return choose_cluster(path, context, environ=self.environ, account=self.account)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def running(machine: Machine) -> Iterator[str]:
    """The kubeconfig of a `cidrella up` that runs there."""
    with occupied("", machine.environ) as place:
        yield machine.write(place.kubeconfig, UP)


def test_current_context_is_named(machine: Machine) -> None:
    """The context, the server and the file, since nothing names the cluster."""
    path = machine.write(machine.config)
    chosen = machine.choose()
    assert (chosen.access.server, chosen.note) == (CLUSTER, f"cluster: staging ({CLUSTER}), from {path}")


def test_kubeconfig_comes_before_a_running_up(machine: Machine, running: str) -> None:
    """Whether `cidrella up` runs changes nothing where kubectl has a cluster; how to choose it is told."""
    machine.write(machine.config)
    chosen = machine.choose()
    assert chosen.access.server == CLUSTER
    assert chosen.note.endswith(f"/.kube/config; for the running cidrella up: export KUBECONFIG={running}")


def test_running_up_where_there_is_no_other_cluster(machine: Machine, running: str) -> None:
    """It is found, and named."""
    chosen = machine.choose()
    assert (chosen.access.server, chosen.note) == (UP, f"cluster: staging ({UP}), from {running} (cidrella up)")


def test_pod(machine: Machine, running: str) -> None:
    """In a Pod it is the Pod's cluster, and that is told."""
    machine.be_a_pod()
    chosen = machine.choose()
    assert chosen.access.server == "https://10.96.0.1"
    assert chosen.note.startswith("cluster: in-cluster (https://10.96.0.1), from this Pod's ServiceAccount; for the ")
    assert running in chosen.note


@pytest.mark.parametrize("how", ["option", "context", "environment"])
def test_named_cluster_is_not_told(machine: Machine, running: str, how: str) -> None:
    """An option or the variable names it: nothing has to be said, whatever else there is."""
    machine.write(machine.config)
    other = machine.write(machine.directory / "other", "https://other:6443")
    if how == "environment":
        machine.environ["KUBECONFIG"] = other
    chosen = machine.choose(other if how == "option" else "", "staging" if how == "context" else "")
    assert chosen.note == ""
    assert chosen.access.server == (CLUSTER if how == "context" else "https://other:6443")
    assert chosen.access.origin != running


def test_variable_without_a_path_names_nothing(machine: Machine) -> None:
    """A list of no files is as good as none."""
    machine.environ["KUBECONFIG"] = ":"
    machine.write(machine.config)
    assert machine.choose().note.startswith("cluster: staging ")


@pytest.mark.parametrize("left", [True, False], ids=["killed", "ended"])
def test_up_that_has_ended(machine: Machine, left: bool) -> None:
    """Its kubeconfig may have stayed behind; it does not count, since no process holds the lock."""
    with occupied("", machine.environ):
        pass
    if left:
        machine.write(default_directory(machine.environ) / KUBECONFIG, UP)
    with pytest.raises(ClusterError, match=r"no kubeconfig .*, and no cidrella up runs here without --data-dir$"):
        machine.choose()
    machine.write(machine.config)
    assert machine.choose().note.endswith("/.kube/config")


def test_named_kubeconfig_of_an_up_that_has_ended(machine: Machine) -> None:
    """$KUBECONFIG still leads to it: that is an error, and no other cluster is taken in its place."""
    machine.write(machine.config)
    machine.environ["KUBECONFIG"] = str(default_directory(machine.environ) / KUBECONFIG)
    with pytest.raises(ClusterError, match=r"up/kubeconfig\), .*, and no cidrella up runs here"):
        machine.choose()


def test_up_with_a_data_dir_is_not_found(machine: Machine) -> None:
    """It has to be named, as there may be several."""
    with occupied(str(machine.directory / "data")) as place:
        path = machine.write(place.kubeconfig, UP)
        with pytest.raises(ClusterError, match="no cidrella up runs here without --data-dir"):
            machine.choose()
        assert machine.choose(path).access.server == UP


@pytest.mark.parametrize("how", ["context", "environment"])
def test_named_but_missing(machine: Machine, running: str, how: str) -> None:
    """What is named and is not there is an error, and the running one is not taken in its place."""
    if how == "environment":
        machine.environ["KUBECONFIG"] = "/nowhere"
    with pytest.raises(ClusterError, match=f"no kubeconfig .*; for the running cidrella up: .*={running}$"):
        machine.choose(context="x" if how == "context" else "")


def test_kubeconfig_that_is_of_no_use(machine: Machine, running: str) -> None:
    """A ~/.kube/config without a current context is an error: the running one is offered, and not taken."""
    machine.config.parent.mkdir()
    machine.config.write_text("apiVersion: v1\n")
    with pytest.raises(ClusterError, match=f"there is no current-context.*; for the running .*={running}$"):
        machine.choose()
    with pytest.raises(ClusterError, match=r"no context 'x', but: none$"):
        machine.choose(context="x")


def test_running_up_whose_kubeconfig_cannot_be_read(machine: Machine, running: str) -> None:
    """It is told, as with any other kubeconfig."""
    Path(running).write_text("{")
    with pytest.raises(ClusterError, match="not YAML"):
        machine.choose()
