"""Settings of `cidrella webhook`: its own rows, and what becomes of them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from cidrella.app.settings import CommonSettings, Settings, table
from cidrella.app.sources import SettingError, read_settings
from cidrella.app.values import Address
from cidrella.app.webhook_settings import WebhookSettings


def read(*arguments: str, **environment: str) -> WebhookSettings:
    return read_settings(WebhookSettings, arguments, environment).settings


def refusal(*arguments: str) -> str:
    """The one line with which settings are refused."""
    with pytest.raises(SettingError) as error:
        read_settings(WebhookSettings, arguments, {})
    assert "\n" not in str(error.value)
    return str(error.value)


def test_both_commands_on_one_host() -> None:
    """F5: neither the ports nor the Leases of the two are the same."""
    run, webhook = Settings(), WebhookSettings()
    ports = {run.bind_address.port, webhook.bind_address.port, webhook.webhook_bind_address.port}
    assert len(ports) == 3
    assert webhook.bind_address.host == "127.0.0.1"
    assert webhook.webhook_bind_address == Address("", 9443)
    assert run.election is not None
    assert webhook.election is not None
    assert (run.election.name, webhook.election.name) == ("cidrella", "cidrella-services")


def test_what_is_shared_means_the_same() -> None:
    """F2: a setting that both commands have by declaring it once is of one kind, in one group."""
    own = {"feature-gates", "service-cluster-ip-range", "leader-elect"}
    for each in fields(CommonSettings):
        name = each.name.replace("_", "-")
        one, other = table(Settings)[name], table(WebhookSettings)[name]
        assert (one.kind, one.group) == (other.kind, other.group)
        assert one.help == other.help or name in own


def test_the_band() -> None:
    """B11: the gate turns the bands off."""
    assert read().services.banded
    assert not read("--feature-gates=ServiceIPStaticSubrange=false").services.banded


def test_ranges() -> None:
    """B9: those of the flag, in its order; what was read otherwise than written is a warning."""
    given = read_settings(WebhookSettings, ["--service-cluster-ip-range=fd00::/112,10.96.0.1/16"], {})
    assert [str(each) for each in given.settings.services.ranges] == ["fd00::/112", "10.96.0.0/16"]
    assert given.warnings == ("--service-cluster-ip-range: 10.96.0.1/16 is read as 10.96.0.0/16",)


def test_names_of_the_certificate() -> None:
    """B9: names and addresses, however they are spaced."""
    assert read("--webhook-dns-names=a.b.svc, 127.0.0.1,::1").dns_names == ("a.b.svc", "127.0.0.1", "::1")


def test_certificates_from_files() -> None:
    """B9: what is for self-made ones does not matter then."""
    files = ["--tls-cert-file=/tls/tls.crt", "--tls-private-key-file=/tls/tls.key"]
    assert read(*files, "--webhook-dns-names=", "--tls-secret-name=").from_files
    assert not read().from_files


def test_no_configuration_to_write_to() -> None:
    """B9: an empty name is none, and that is allowed."""
    assert read("--webhook-configuration-name=").webhook_configuration_name == ""


def test_the_environment_of_a_pod() -> None:
    """B9: what Kubernetes sets for a Service of the webhook's name is no setting, and no slip."""
    service = {
        "CIDRELLA_WEBHOOK_SERVICE_HOST": "10.96.0.7",
        "CIDRELLA_WEBHOOK_SERVICE_PORT": "443",
        "CIDRELLA_WEBHOOK_SERVICE_PORT_WEBHOOK": "443",
        "CIDRELLA_WEBHOOK_PORT": "tcp://10.96.0.7:443",
        "CIDRELLA_WEBHOOK_PORT_443_TCP": "tcp://10.96.0.7:443",
        "CIDRELLA_WEBHOOK_PORT_443_TCP_PROTO": "tcp",
        "CIDRELLA_WEBHOOK_PORT_443_TCP_PORT": "443",
        "CIDRELLA_WEBHOOK_PORT_443_TCP_ADDR": "10.96.0.7",
    }
    given = read_settings(WebhookSettings, [], service)
    assert (given.settings, given.warnings) == (WebhookSettings(), ())


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--tls-cert-file=/x"], "--tls-cert-file and --tls-private-key-file go together; give both or neither"),
        (["--tls-private-key-file=/x"], "--tls-cert-file and --tls-private-key-file go together"),
        (["--webhook-dns-names="], "--webhook-dns-names names nothing that a certificate could be for"),
        (["--webhook-dns-names=a_b"], "--webhook-dns-names: 'a_b' is neither a DNS name nor an IP address"),
        (["--tls-secret-name=A"], "--tls-secret-name: 'A' is no valid name"),
        (["--tls-secret-namespace="], "--tls-secret-namespace: '' is no valid name"),
        (["--webhook-configuration-name=a/b"], "--webhook-configuration-name: 'a/b' is no valid name"),
        (["--bind-address=:9443"], "--bind-address and --webhook-bind-address are both :9443; change one"),
        (["--webhook-bind-address=9443"], "--webhook-bind-address='9443' is no address to listen on"),
        (["--repair-interval=0s"], "--repair-interval='0s' is out of bounds"),
        (["--service-cluster-ip-range=10.0.0.0/8"], "--service-cluster-ip-range: 10.0.0.0/8 is larger than a /12"),
        (["--service-cluster-ip-range=10.0.0.0/31"], "--service-cluster-ip-range: 10.0.0.0/31 has no usable address"),
        (["--service-cluster-ip-range=10.0.0.0/16,10.1.0.0/16"], "has two ranges of one family"),
        (["--feature-gates=Bands=true"], "--feature-gates: 'Bands' is not known"),
        (["--cluster-cidr=10.0.0.0/16"], "unknown flag --cluster-cidr"),
        (["--no-wait-for-cloud-provider"], "unknown flag --no-wait-for-cloud-provider"),
        (["--port=1"], "unknown flag --port; see cidrella webhook --help"),
        (["--leader-elect-lease-duration=1s"], "--leader-elect-lease-duration, --leader-elect-renew-deadline and"),
    ],
)
def test_wrong_settings(flags: list[str], expected: str) -> None:
    """B2, B9: what cannot be is told in one line that names the flag."""
    assert expected in refusal(*flags)


def test_rounds_that_come_too_soon() -> None:
    """B8: they are warned of; what is no interval at all is refused."""
    assert not read_settings(WebhookSettings, ["--repair-interval=10s"], {}).warnings
    (warning,) = read_settings(WebhookSettings, ["--repair-interval=9s"], {}).warnings
    assert warning.startswith("--repair-interval is 9 s: what nobody has is freed after three rounds")
    assert "longer than 0s" in refusal("--repair-interval=0s")
    assert "is no duration" in refusal("--repair-interval=-1s")
