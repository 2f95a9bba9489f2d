"""`cidrella up` put together, in this process: from the start to the end."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from cidrella.app import up
from cidrella.app.intake import take_inventory
from cidrella.app.inventory import InputError
from cidrella.app.up import Ready, UpError, run_up
from cidrella.app.up_settings import DEFAULT_ADDRESS, PAGE_ADDRESS, UpSettings
from cidrella.app.values import Address
from cidrella.core.prefix import Prefix
from cidrella.serviceip.desk import Desk
from tests.app.around import logs_recovered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cidrella.app.intake import Manifest

ANYWHERE = UpSettings(bind_address=Address("127.0.0.1", 0))


class Teller:
    """Whom it tells how it goes; ends it as soon as it is ready."""

    def __init__(self) -> None:
        self.told: list[Ready] = []
        self.done: list[tuple[str, int, int]] = []

    @contextmanager
    def progress(self, doing: str) -> Iterator[Callable[[int, int], None]]:
        yield lambda done, total: self.done.append((doing, done, total))

    def ready(self, ready: Ready) -> None:
        self.told.append(ready)
        assert ready.kubeconfig.exists()
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    with logs_recovered():
        yield


def manifests(path: Path, text: str) -> tuple[Manifest, ...]:
    path.write_text(text)
    found: list[Manifest] = []
    take_inventory([str(path)], each_object=found.append).require_sound()
    return tuple(found)


def logged(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What was logged, as JSON for want of a terminal."""
    return [json.loads(line) for line in capfd.readouterr().err.splitlines()]


def test_in_memory(capfd: pytest.CaptureFixture[str]) -> None:
    """It is ready, is told to stop, and ends well: quietly, and with nothing left behind."""
    teller = Teller()
    assert run_up(ANYWHERE, teller) == 0
    (ready,) = teller.told
    assert ready.url.startswith("https://127.0.0.1:")
    assert not ready.asks_for_token
    assert ready.page.startswith("http://127.0.0.1:")
    assert not ready.kubeconfig.exists()
    assert logged(capfd) == []


def test_default_ports_that_are_taken() -> None:
    """Where another process has the default ports, the API and the page are at other ports, and that is no error."""
    teller = Teller()
    with ExitStack() as stack:
        for address in (DEFAULT_ADDRESS, PAGE_ADDRESS):
            taken = stack.enter_context(socket.socket())
            with suppress(OSError):  # another process has it, which will do
                taken.bind(address)
                taken.listen()
        assert run_up(UpSettings(), teller) == 0
    (ready,) = teller.told
    assert ready.url.startswith("https://127.0.0.1:")
    assert not ready.url.endswith(f":{DEFAULT_ADDRESS.port}")
    assert not ready.page.endswith(f":{PAGE_ADDRESS.port}/")


class Visitor(Teller):
    """Looks at the page, and is followed by the end."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[Any] = []

    def ready(self, ready: Ready) -> None:
        self.told.append(ready)

        def look() -> None:
            try:
                with urlopen(f"{ready.page}api/v1/state", timeout=60) as answer:
                    self.states.append(json.load(answer))
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        Thread(target=look).start()


def test_the_page() -> None:
    """It shows the nodes that are there, with the pools that they have their blocks from."""
    visitor = Visitor()
    assert run_up(replace(ANYWHERE, nodes=3), visitor) == 0
    (state,) = visitor.states
    assert len(state["nodes"]) == 3
    assert {each["kind"] for each in state["pools"]} == {"ClusterCIDR"}
    assert state["cluster"]["leading"]


def test_without_a_controller() -> None:
    """There is nothing to show."""
    teller = Teller()
    assert run_up(replace(ANYWHERE, controller=False), teller) == 0
    assert teller.told[0].page == ""


def test_a_directory(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What was made is there again, and brought up to date; a range of Services stays as it was, with a word."""
    pool = "apiVersion: networking.x-k8s.io/v1\nkind: ClusterCIDR\nmetadata: {name: a}\n"
    objects = manifests(tmp_path / "pool.yaml", f"{pool}spec: {{perNodeHostBits: 8, ipv4: 10.0.0.0/16}}\n")
    settings = replace(ANYWHERE, data_dir=str(tmp_path / "data"), audit_log=str(tmp_path / "audit.log"))
    teller = Teller()
    assert run_up(replace(settings, manifests=objects), teller) == 0
    assert teller.done == [("applying", 1, 1)]
    assert (tmp_path / "data" / "kubeconfig").exists()
    made = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert "clustercidrs" in [each["objectRef"]["resource"] for each in made if each["verb"] == "create"]
    ready = next(each for each in made if each["verb"] == "patch" and each["objectRef"]["resource"] == "servicecidrs")
    (condition,) = ready["requestObject"]["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("", "Kubernetes default Service CIDR is ready")
    (tmp_path / "audit.log").unlink()
    assert run_up(replace(settings, service_ranges=(Prefix.parse("10.97.0.0/16"),)), Teller()) == 0
    line, *others = logged(capfd)
    assert others == []
    assert (line["level"], line["stays"], line["asked"]) == ("warning", ["10.96.0.0/16"], ["10.97.0.0/16"])
    again = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    definitions = [each for each in again if each.get("objectRef", {}).get("resource") == "customresourcedefinitions"]
    assert {each["verb"] for each in definitions} == {"get", "update"}


def test_who_asks_is_told_apart(tmp_path: Path) -> None:
    """With tokens, what the parts of this process do is not taken for what people do."""
    settings = replace(
        ANYWHERE, nodes=1, token_auth_file=str(tmp_path / "tokens"), audit_log=str(tmp_path / "audit.log")
    )
    teller = Teller()
    assert run_up(settings, teller) == 0
    assert teller.told[0].asks_for_token
    assert teller.done[-1] == ("adding nodes", 1, 1)
    users = {json.loads(line)["user"]["username"] for line in (tmp_path / "audit.log").read_text().splitlines()}
    assert users == {"system:apiserver", "system:serviceaccount:kube-system:cidrella"}


def test_objects_that_the_api_refuses(tmp_path: Path) -> None:
    """They come back as faults of the input, and nothing was ready."""
    objects = manifests(tmp_path / "other.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n")
    teller = Teller()
    with pytest.raises(InputError) as caught:
        run_up(replace(ANYWHERE, manifests=objects), teller)
    (fault,) = caught.value.faults
    assert (fault.line, fault.subject, fault.field) == (1, "Deployment a", "apiVersion")
    assert teller.told == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"audit_log": "/nowhere/audit.log"}, "--audit-log: /nowhere/audit.log cannot be written: No such file"),
        ({"data_dir": "/dev/null/here"}, "choose another --data-dir"),
        ({"token_auth_file": "/dev/null"}, "/dev/null has no token in it"),
        ({"tls_cert_file": "/dev/null", "tls_private_key_file": "/dev/null"}, "certificate and key are of no use"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any], expected: str) -> None:
    """Each is one line."""
    with pytest.raises(UpError, match=expected):
        run_up(replace(ANYWHERE, **settings), Teller())


def test_a_directory_that_holds_something_else(tmp_path: Path) -> None:
    """What is no store of ours is not touched."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cidrella.db").write_text("not a database, but something of somebody's")
    with pytest.raises(UpError, match=r"cidrella\.db"):
        run_up(replace(ANYWHERE, data_dir=str(tmp_path / "data")), Teller())
    assert (tmp_path / "data" / "cidrella.db").read_text() == "not a database, but something of somebody's"


def test_a_part_that_fails(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """It fails as a whole, with exit code 1 and one line about what it was."""

    async def fail(_: Desk) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Desk, "run", fail)
    assert run_up(ANYWHERE, Teller()) == 1
    (line,) = logged(capfd)
    assert (line["event"], line["error"]) == ("cidrella up failed", "out of luck")


def test_services_that_have_to_wait(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Where they cannot have addresses, that is said, and holds up nothing else."""
    monkeypatch.setattr(up, "_PATIENCE", 0.05)
    monkeypatch.setattr(Desk, "readiness", lambda _: ["never"])
    teller = Teller()
    assert run_up(ANYWHERE, teller) == 0
    assert len(teller.told) == 1
    assert logged(capfd)[0]["event"].startswith("Services cannot have addresses yet")
