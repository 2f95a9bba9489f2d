"""Whom clients of the embedded API believe, and whom it lets in."""

from __future__ import annotations

import base64
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import yaml
from cryptography import x509

from cidrella.app.up_place import occupied
from cidrella.app.up_settings import UpSettings
from cidrella.app.up_trust import CONTROLLER, SERVER, reachable, settle_trust
from cidrella.app.values import Address
from cidrella.kube.errors import ConfigError
from cidrella.kube.issuing import CA_LIFE, SERVING_LIFE, issue

if TYPE_CHECKING:
    from pathlib import Path

    from cidrella.app.up_trust import Trust

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ELSEWHERE = UpSettings(bind_address=Address("192.0.2.7", 8443))
EVERYWHERE = UpSettings(bind_address=Address("", 8443))


def settled(settings: UpSettings, directory: Path, now: datetime = NOW) -> Trust:
    with occupied(str(directory)) as place:
        return settle_trust(settings, place, now)


def names(trust: Trust) -> list[str]:
    certificate = x509.load_pem_x509_certificate(trust.pair.certificate)
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(each.value) for each in found]


class TestCertificates:
    """It is always TLS."""

    def test_kept_while_they_last(self, tmp_path: Path) -> None:
        """What was made is found again the next time, so that a kubeconfig stays good; nobody else can read it."""
        first = settled(UpSettings(), tmp_path)
        assert settled(UpSettings(), tmp_path, NOW + timedelta(days=30)) == first
        assert names(first) == ["localhost", "127.0.0.1", "::1"]
        for name in ("ca.crt", "ca.key", "tls.crt", "tls.key"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        first.context()

    def test_made_anew_when_they_run_out(self, tmp_path: Path) -> None:
        """By the same CA, and after its time by a new one."""
        first = settled(UpSettings(), tmp_path)
        second = settled(UpSettings(), tmp_path, NOW + SERVING_LIFE)
        assert (second.ca, second.pair != first.pair) == (first.ca, True)
        third = settled(UpSettings(), tmp_path, NOW + CA_LIFE)
        assert third.ca != first.ca
        assert settled(UpSettings(), tmp_path, NOW + CA_LIFE) == third

    def test_made_anew_where_they_make_no_sense(self, tmp_path: Path) -> None:
        """Files that somebody has spoilt are no reason not to begin."""
        first = settled(UpSettings(), tmp_path)
        (tmp_path / "tls.key").write_text("rubbish")
        second = settled(UpSettings(), tmp_path)
        assert second.pair != first.pair
        second.context()  # raises for a certificate and a key that are not of each other

    def test_in_memory_nothing_is_kept(self, tmp_path: Path) -> None:
        """Without a directory of its own it leaves no key behind."""
        with occupied("", {"HOME": str(tmp_path)}) as place:
            settle_trust(UpSettings(), place, NOW)
            settle_trust(ELSEWHERE, place, NOW)
            assert [each.name for each in place.directory.iterdir()] == ["up.lock"]

    def test_for_other_machines(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where others can connect, the certificate is for what they connect to."""
        monkeypatch.setattr("socket.gethostname", lambda: "box.example")
        assert names(settled(ELSEWHERE, tmp_path / "a"))[3:] == ["192.0.2.7"]
        assert names(settled(EVERYWHERE, tmp_path / "b"))[3:] == ["box.example"]

    def test_from_files(self, tmp_path: Path) -> None:
        """What was given is shown, clients believe it, and nothing is made."""
        made = issue(["localhost"], NOW).pair
        (tmp_path / "c").write_bytes(made.certificate)
        (tmp_path / "k").write_bytes(made.key)
        settings = UpSettings(tls_cert_file=str(tmp_path / "c"), tls_private_key_file=str(tmp_path / "k"))
        trust = settled(settings, tmp_path / "data")
        assert (trust.pair, trust.ca) == (made, made.certificate)
        assert not (tmp_path / "data" / "ca.crt").exists()

    def test_files_that_are_not_there(self, tmp_path: Path) -> None:
        """One line that names the file."""
        settings = UpSettings(tls_cert_file="/nowhere/c", tls_private_key_file="/nowhere/k")
        with pytest.raises(ConfigError, match="/nowhere/c: No such file"):
            settled(settings, tmp_path)


class TestTokens:
    """Who connects from this machine needs none, unless one was asked for; all others do."""

    def test_on_this_machine(self, tmp_path: Path) -> None:
        """Nobody is asked for a token; the kubeconfig has one all the same, for kubectl asks for a name otherwise."""
        trust = settled(UpSettings(), tmp_path)
        assert trust.users == {}
        (user,) = yaml.safe_load(trust.kubeconfig("https://127.0.0.1:1"))["users"]
        assert user["user"]["token"]

    @pytest.mark.parametrize("settings", [ELSEWHERE, EVERYWHERE], ids=["elsewhere", "everywhere"])
    def test_elsewhere_there_is_always_one(self, tmp_path: Path, settings: UpSettings) -> None:
        """It is made, kept, and in the kubeconfig."""
        first, second = settled(settings, tmp_path), settled(settings, tmp_path)
        (token, user), *own = first.users.items()
        assert user.name == "admin"
        assert len(token) > 40
        assert next(iter(second.users)) == token
        assert {each for _, each in own} == {SERVER, CONTROLLER}
        assert token in first.kubeconfig("https://127.0.0.1:1").decode()

    def test_a_file_of_tokens(self, tmp_path: Path) -> None:
        """As kube-apiserver has it; the first one is for the kubeconfig, and this process has its own."""
        file = tmp_path / "tokens"
        file.write_text('one,ann,1,"a,b"\n\n two , bob,2\nthree,cy\n')
        trust = settled(UpSettings(token_auth_file=str(file)), tmp_path / "data")
        given = {token: tuple(user) for token, user in trust.users.items() if user not in (SERVER, CONTROLLER)}
        assert given == {"one": ("ann", "1", ("a", "b")), "two": ("bob", "2", ()), "three": ("cy", "", ())}
        assert len(trust.users) == 5
        assert yaml.safe_load(trust.kubeconfig("https://x"))["users"][0]["user"] == {"token": "one"}

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        """It is made, with one in it that nobody else can read."""
        file = tmp_path / "tokens"
        first = settled(UpSettings(token_auth_file=str(file)), tmp_path / "data")
        assert file.read_text() == f"{next(iter(first.users))},admin,admin\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    @pytest.mark.parametrize("text", ["", "\n", ",ann,1", "token", "to ken,ann,1", "t\u00f6ken,ann,1"])
    def test_files_that_are_wrong(self, tmp_path: Path, text: str) -> None:
        """To let everybody in by mistake is not for us."""
        (tmp_path / "tokens").write_text(text)
        with pytest.raises(ConfigError, match="tokens"):
            settled(UpSettings(token_auth_file=str(tmp_path / "tokens")), tmp_path / "data")

    def test_a_file_that_is_no_text(self, tmp_path: Path) -> None:
        """Nor is that a reason to let everybody in."""
        (tmp_path / "tokens").write_bytes(b"\xff,ann,1")
        with pytest.raises(ConfigError, match="is not text"):
            settled(UpSettings(token_auth_file=str(tmp_path / "tokens")), tmp_path / "data")


def test_kubeconfig(tmp_path: Path) -> None:
    """All that a client needs is in the one file, the CA too."""
    trust = settled(UpSettings(), tmp_path)
    config = yaml.safe_load(trust.kubeconfig("https://127.0.0.1:10292"))
    (cluster,) = config["clusters"]
    assert cluster["cluster"]["server"] == "https://127.0.0.1:10292"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == trust.ca
    assert (config["current-context"], config["contexts"][0]["name"]) == ("cidrella", "cidrella")


def test_where_clients_on_this_machine_connect_to() -> None:
    """What listens everywhere is reached on loopback; what listens elsewhere, there."""
    urls = ["https://0.0.0.0:1", "https://[::]:2", "https://192.0.2.1:3", "https://[fd00::1]:4"]
    assert list(map(reachable, urls)) == ["https://127.0.0.1:1", "https://[::1]:2", *urls[2:]]
