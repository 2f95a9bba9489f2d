"""Settings: the table, and what flags, variables and a config file make of it."""

from __future__ import annotations

from dataclasses import fields
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from cidrella.app.setting import Group
from cidrella.app.settings import CommonSettings, Settings, table
from cidrella.app.sources import HelpWanted, SettingError, read_settings
from cidrella.app.values import Address
from cidrella.app.webhook_settings import WebhookSettings
from cidrella.kube.campaign import ElectionSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read(*arguments: str, **environment: str) -> Settings:
    return read_settings(Settings, arguments, environment).settings


def refusal(*arguments: str, **environment: str) -> str:
    """The one line with which settings are refused."""
    with pytest.raises(SettingError) as error:
        read_settings(Settings, arguments, environment)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", [Settings, WebhookSettings])
def test_every_setting_has_a_default_that_goes_together_with_the_others(kind: type[CommonSettings]) -> None:
    """Nothing needs to be given, and what the help shows as a default is the default."""
    assert read_settings(kind, [], {}).settings == kind()
    rows = table(kind).values()
    shown = {row.field: row.kind.parse(row.default) for row in rows}
    assert kind(**shown) == kind()
    assert shown.keys() == {each.name for each in fields(kind)}
    assert all(row.help.endswith((".", "'leader-elect: false'.")) for row in rows)
    groups = [group for group, _ in groupby(row.group for row in rows)]
    assert groups == [each for each in Group if each in groups]


def test_names() -> None:
    """A setting has one name: the flag's, the variable's and the file's are made from it."""
    row = table()["leader-elect-retry-period"]
    assert (row.flag, row.variable) == ("--leader-elect-retry-period", "CIDRELLA_LEADER_ELECT_RETRY_PERIOD")


def test_a_manifest_of_today() -> None:
    """The flags that concern node IPAM are read as kube-controller-manager's manifests have them."""
    settings = read(
        "--allocate-node-cidrs=true",
        "--cluster-cidr=10.244.0.0/16,fd00:10:244::/56",
        "--kubeconfig=/etc/kubernetes/controller-manager.conf",
        "--leader-elect=true",
        "--leader-elect-lease-duration=1m30s",
        "--leader-elect-renew-deadline",
        "60s",
        "--leader-elect-retry-period=500ms",
        "--leader-elect-resource-lock=leases",
        "--node-cidr-mask-size-ipv4=24",
        "--node_cidr_mask_size_ipv6=64",
        "--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112",
        "--v=2",
    )
    assert settings.election == ElectionSettings(lease_duration=90, renew_deadline=60, retry_period=0.5)
    assert [each.length for each in settings.ipam.ranges] == [24, 64]
    assert len(settings.ipam.service_ranges) == 2
    assert (settings.kubeconfig, settings.log_level) == ("/etc/kubernetes/controller-manager.conf", "info")


@pytest.mark.parametrize(
    ("arguments", "leads"),
    [
        ([], True),
        (["--leader-elect"], True),
        (["--leader-elect=true"], True),
        (["--leader-elect=T"], True),
        (["--leader-elect=1"], True),
        (["--leader-elect=false"], False),
        (["--leader-elect=F"], False),
        (["--leader_elect=0"], False),
        (["--leader-elect=false", "--leader-elect"], True),
        (["--leader-elect", "--leader-elect=false"], False),
    ],
)
def test_booleans(arguments: list[str], leads: bool) -> None:
    """A Boolean is written as Go's flags have it, alone it is true, and the last one counts."""
    assert read(*arguments).leader_elect is leads
    assert (read(*arguments).election is None) is not leads


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        ([], 60.0),
        (["--wait-for-cloud-provider=false"], 0.0),
        (["--no-wait-for-cloud-provider"], 0.0),
        (["--no-wait-for-cloud-provider=false"], 60.0),
        (["--no-wait-for-cloud-provider", "--wait-for-cloud-provider"], 60.0),
        (["--wait-for-cloud-provider-timeout=1m30s"], 90.0),
        (["--wait-for-cloud-provider-timeout=24h"], 86_400.0),
        (["--wait-for-cloud-provider-timeout=0"], 0.0),
        (["--wait-for-cloud-provider-timeout=0s"], 0.0),
        (["--wait-for-cloud-provider-timeout=5s", "--wait-for-cloud-provider=false"], 0.0),
    ],
)
def test_waiting_for_the_cloud_provider(arguments: list[str], seconds: float) -> None:
    """N10: one flag turns waiting off, in either way of saying it, another sets the time."""
    assert read(*arguments).ipam.cloud_provider_wait == seconds


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        (["-v", "4"], "debug"),
        (["-v=9"], "debug"),
        (["-v4"], "debug"),
        (["--v=3"], "info"),
        (["--v", "0"], "info"),
        (["--log-level=error"], "error"),
        (["--log-level=error", "-v4"], "debug"),
    ],
)
def test_verbosity(arguments: list[str], level: str) -> None:
    """kube-controller-manager's -v is understood as a level."""
    assert read(*arguments).log_level == level


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:0", Address("::1", 0)),
        (":10290", Address("", 10290)),
        ("localhost:65535", Address("localhost", 65535)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    """Where the probes listen is a host and a port, with IPv6 in brackets."""
    assert read("--bind-address", text).bind_address == address
    assert str(address) == text


BAD: dict[str, tuple[list[str], str]] = {
    "an unknown flag": (["--controllers=*"], "unknown flag --controllers; see cidrella run --help"),
    "another one": (["--use-service-account-credentials"], "unknown flag --use-service-account-credentials; see"),
    "a flag misspelt": (["--cluster-cidrs=10.0.0.0/8"], "unknown flag --cluster-cidrs; did you mean --cluster-cidr?"),
    "one dash": (["-cluster-cidr=10.0.0.0/8"], "unknown flag -cluster-cidr; did you mean --cluster-cidr?"),
    "capitals": (["--clusterCIDR=10.0.0.0/8"], "did you mean --cluster-cidr?"),
    "a Boolean apart": (
        ["--leader-elect", "false"],
        "unexpected argument 'false'; write --leader-elect=false if it belongs to the flag before it",
    ),
    "a stray word": (["up"], "unexpected argument 'up'; there are only flags"),
    "a stray word after a flag": (["--leader-elect=true", "false"], "unexpected argument 'false'; there are only"),
    "two dashes": (["--", "--leader-elect"], "unexpected argument '--'"),
    "no Boolean": (["--leader-elect=maybe"], "--leader-elect='maybe' is neither true nor false"),
    "an empty Boolean": (["--leader-elect="], "--leader-elect='' is neither true nor false"),
    "no value": (["--cluster-cidr"], "--cluster-cidr needs a value; write --cluster-cidr=VALUE"),
    "no number": (["--node-cidr-mask-size=ten"], "--node-cidr-mask-size='ten' is no whole number"),
    "too much of a number": (["--node-cidr-mask-size=" + "9" * 5000], "is no whole number"),
    "a number of other digits": (["--node-cidr-mask-size=٢٤"], "is no whole number"),
    "no unit": (["--api-timeout=15"], "--api-timeout='15' is no duration; write it as 15s, 1m30s or 500ms"),
    "no duration": (["--api-timeout=1m30"], "is no duration"),
    "a negative duration": (["--api-timeout=-1s"], "is no duration"),
    "no time at all": (["--api-timeout=0s"], "is out of bounds"),
    "no time without a unit": (["--api-timeout=0"], "longer than 0s"),
    "less than no wait": (["--wait-for-cloud-provider-timeout=-1s"], "is no duration"),
    "no unit of a wait": (["--wait-for-cloud-provider-timeout=00"], "is no duration"),
    "too long a wait": (["--wait-for-cloud-provider-timeout=24h1s"], "is at most 24h"),
    "all the time": (["--api-timeout=99999999999h"], "is out of bounds"),
    "a lock of old": (["--leader-elect-resource-lock=endpoints"], "is not known; choose leases"),
    "no level": (["--log-level=loud"], "--log-level='loud' is not known; choose debug or info or warning or error"),
    "no verbosity": (["-v=loud"], "-v='loud' is no whole number"),
    "no port": (["--bind-address=127.0.0.1"], "--bind-address='127.0.0.1' is no address to listen on"),
    "too high a port": (["--bind-address=127.0.0.1:65536"], "is no address to listen on"),
    "IPv6 without brackets": (["--bind-address=::1:80"], "with an IPv6 address in brackets"),
    "a line break": (["--bind-address=a\nb:80"], r"--bind-address='a\nb:80'"),
    "times that do not go together": (
        ["--leader-elect-lease-duration=10s"],
        "--leader-elect-lease-duration, --leader-elect-renew-deadline and --leader-elect-retry-period do not go "
        "together: the lease duration (10 s) must be more than the renew deadline (10 s)",
    ),
    "a Lease that cannot be named so": (["--leader-elect-resource-name=My_Lease"], "--leader-elect-resource-name: 'My"),
    "a heartbeat Lease that cannot be named so": (
        ["--leader-elect=false", "--leader-elect-resource-name=My_Lease"],
        "--leader-elect-resource-name: 'My",
    ),
    "no namespace": (["--leader-elect-resource-namespace="], "--leader-elect-resource-namespace: ''"),
    "a token for no page": (["--web=false", "--web-token-file=t"], "--web-token-file says who may see the page"),
    "a password for no page": (["--web=false", "--web-password-file=p"], "--web-password-file says who may see"),
    "a check for no page": (["--web=false", "--web-auth=kubernetes"], "--web-auth=kubernetes says who may see"),
    "a check that is not known": (["--web-auth=basic"], "--web-auth='basic' is not known; choose none or kubernetes"),
    "a certificate without a key": (
        ["--tls-cert-file=tls.crt"],
        "--tls-cert-file and --tls-private-key-file go together",
    ),
    "metrics at no address": (["--metrics-bind-address=here"], "--metrics-bind-address='here' is no address"),
    "metrics where the rest is": (
        ["--metrics-bind-address=127.0.0.1:10290"],
        "--bind-address and --metrics-bind-address are both 127.0.0.1:10290; leave out one",
    ),
}


@pytest.mark.parametrize("title", BAD)
def test_bad_flags(title: str) -> None:
    """What is wrong on the command line is told in one line that names the flag."""
    arguments, expected = BAD[title]
    assert expected in refusal(*arguments)


def test_contradictions_are_told_wherever_they_come_from() -> None:
    """F2, F7: settings that contradict each other are refused, whichever way each of them came in."""
    message = refusal("--node-cidr-mask-size=24", CIDRELLA_CLUSTER_CIDR="10.0.0.0/16,fd00::/48")
    assert message.startswith("--node-cidr-mask-size cannot be used with two ranges")
    assert "RangeAllocator" in refusal(CIDRELLA_CIDR_ALLOCATOR_TYPE="Cloud")


def test_the_page_and_metrics() -> None:
    """The page is there unless somebody says otherwise; metrics have an address of their own if one is given."""
    plain = read_settings(Settings, [], {}).settings
    assert (plain.web, plain.web_auth, plain.metrics_bind_address) == (True, "none", None)
    told = read_settings(Settings, ["--web=false", "--metrics-bind-address=:9100"], {}).settings
    assert (told.web, told.metrics_bind_address) == (False, Address("", 9100))
    anywhere = ["--bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0"]
    assert read_settings(Settings, anywhere, {}).settings.metrics_bind_address == Address("127.0.0.1", 0)


def test_without_an_election_its_times_do_not_matter() -> None:
    """Times that do not go together hurt nobody who holds no election."""
    assert read("--leader-elect=false", "--leader-elect-lease-duration=1s").election is None


def test_heartbeat_lease_without_an_election() -> None:
    """F6: the name, namespace and times of the election apply without one; times that do not go together do not."""
    assert read("--leader-elect=true").heartbeat is None
    assert read("--leader-elect=false").heartbeat == ElectionSettings(name="cidrella-alone")
    flags = ["--leader-elect-resource-name=a", "--leader-elect-resource-namespace=b"]
    own = read("--leader-elect=false", "--leader-elect-lease-duration=1m", *flags).heartbeat
    assert own == ElectionSettings(name="a-alone", namespace="b", lease_duration=60.0)
    wrong = read("--leader-elect=false", "--leader-elect-lease-duration=1s", *flags).heartbeat
    assert wrong == ElectionSettings(name="a-alone", namespace="b")


@pytest.mark.parametrize("arguments", [["-h"], ["--help"], ["--leader-elect=false", "--help", "--nonsense"]])
def test_help(arguments: list[str]) -> None:
    """Help is a wish like any other, and comes before what is wrong after it."""
    with pytest.raises(HelpWanted):
        read(*arguments)


def test_what_counts_most(tmp_path: Path) -> None:
    """Flags count before variables, variables before the file, the file before defaults."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "cluster-cidr: 10.1.0.0/16\nnode-cidr-mask-size: 25\nleader-elect: false\napi-timeout: 30s\ncontext:\n"
        "bind-address: '[::1]:80'\n"
    )
    environment = {
        "CIDRELLA_CLUSTER_CIDR": "10.2.0.0/16",
        "CIDRELLA_LEADER_ELECT": "true",
        "CIDRELLA_CONFIG": str(file),
    }
    settings = read("--cluster-cidr=10.3.0.0/16", **environment)
    assert (settings.cluster_cidr, settings.leader_elect, settings.node_cidr_mask_size) == ("10.3.0.0/16", True, 25)
    assert (settings.api_timeout, settings.context, settings.log_level) == (30.0, "", "info")
    assert settings.bind_address == Address("::1", 80)
    assert read(**environment).cluster_cidr == "10.2.0.0/16"
    assert read("--config", str(file)).cluster_cidr == "10.1.0.0/16"
    assert not read("--config", str(file)).leader_elect


def test_the_flag_names_the_file_before_the_variable(tmp_path: Path) -> None:
    """--config counts before CIDRELLA_CONFIG, as flags do."""
    (tmp_path / "one").write_text("context: one")
    assert read(f"--config={tmp_path / 'one'}", CIDRELLA_CONFIG="/nowhere").context == "one"


def test_an_empty_flag_takes_back_what_a_variable_says() -> None:
    """An empty text is a value to a flag, while an empty variable is as none."""
    assert read("--cluster-cidr=", CIDRELLA_CLUSTER_CIDR="10.0.0.0/16").cluster_cidr == ""
    assert read(CIDRELLA_LEADER_ELECT="").leader_elect


def test_bad_variables() -> None:
    """A variable that cannot be read is named as it is written."""
    assert refusal(CIDRELLA_LEADER_ELECT="maybe") == "CIDRELLA_LEADER_ELECT='maybe' is neither true nor false"


def test_variables_that_are_almost_a_setting() -> None:
    """A variable that is a setting but for a slip is a warning; those that Kubernetes sets for a Service are not."""
    service = {
        "CIDRELLA_SERVICE_HOST": "10.96.0.7",
        "CIDRELLA_PORT": "tcp://10.96.0.7:80",
        "CIDRELLA_SERVICE_PORT": "80",
    }
    assert read_settings(Settings, [], service).warnings == ()
    (warning,) = read_settings(Settings, [], {"CIDRELLA_CLUSTER_CIDRS": "10.0.0.0/16"}).warnings
    assert warning.endswith("did you mean CIDRELLA_CLUSTER_CIDR?")


def test_warnings_of_the_flags_come_along() -> None:
    """F2: that a range was masked is not lost on the way."""
    assert read_settings(Settings, ["--cluster-cidr=10.0.0.1/16"], {}).warnings == (
        "--cluster-cidr: 10.0.0.1/16 is read as 10.0.0.0/16",
    )


BAD_FILES: Mapping[str, tuple[bytes, str]] = {
    "an unknown key": (b"leader-elect: true\ncontrollers: a\n", "FILE:2: 'controllers' is no setting"),
    "a key misspelt": (b"cluster-cdir: a\n", "FILE:1: 'cluster-cdir' is no setting; did you mean cluster-cidr?"),
    "camelCase": (b"leaderElect: true\n", "FILE:1: 'leaderElect' is no setting; did you mean leader-elect?"),
    "a key that is a number": (b"5: true\n", "FILE:1: '5' is no setting"),
    "another file": (b"config: other.yaml\n", "FILE:1: 'config' is no setting"),
    "text for a Boolean": (b"leader-elect: 'false'\n", "FILE:1: leader-elect: 'false' must be true or false"),
    "text for a number": (
        b"node-cidr-mask-size: '24'\n",
        "node-cidr-mask-size: '24' must be a whole number, such as 24",
    ),
    "a Boolean for a number": (b"node-cidr-mask-size: true\n", "True must be a whole number"),
    "a number for a duration": (b"api-timeout: 15\n", "FILE:1: api-timeout: 15 must be text, such as 15s"),
    "a list": (b"cluster-cidr: [10.0.0.0/16]\n", "must be text, such as 10.0.0.0/16"),
    "no duration": (b"api-timeout: 15 s\n", "FILE:1: api-timeout: '15 s' is no duration"),
    "no mapping": (b"- leader-elect\n", "FILE:1: must be a mapping of settings to values"),
    "a word": (b"leader-elect\n", "FILE:1: must be a mapping"),
    "two documents": (b"leader-elect: true\n---\nleader-elect: true\n", "FILE holds 2 documents; settings are one"),
    "a key given twice": (b"context: a\ncontext: b\n", "FILE:2: the key 'context' is given twice"),
    "an open bracket": (b"context: [\n", "FILE:2: while parsing"),
    "garbage": (bytes(range(256)), "FILE:1: is no YAML"),
    "endless": (b"#" * 1_000_001, "is larger than 1,000,000 bytes"),
}


@pytest.mark.parametrize("title", BAD_FILES)
def test_bad_files(title: str, tmp_path: Path) -> None:
    """What is wrong in a config file is told in one line with its place."""
    data, expected = BAD_FILES[title]
    file = tmp_path / "config.yaml"
    file.write_bytes(data)
    assert expected.replace("FILE", str(file)) in refusal("--config", str(file))


@pytest.mark.parametrize("data", ["", "# nothing\n", "---\n", "{}", "context: null"])
def test_files_that_say_nothing(data: str, tmp_path: Path) -> None:
    """A file without settings is none the worse for it."""
    file = tmp_path / "config.yaml"
    file.write_text(data)
    assert read("--config", str(file)) == Settings(config=str(file))


@pytest.mark.parametrize(
    ("name", "fault"), [("/nowhere.yaml", "No such file"), ("/", "Is a directory"), ("\0", "null")]
)
def test_files_that_cannot_be_read(name: str, fault: str) -> None:
    """A config file that is not there stops the program."""
    assert fault in refusal("--config", name)
