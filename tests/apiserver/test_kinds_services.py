"""Services, as a real API server fills them in, checks and shows them; addresses and node ports come from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.kinds import created, kind, read, refused, row, told, updated, with_status

Json = dict[str, Any]

SERVICES = kind("services")
PORTS = [{"port": 80}]
NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
BALANCERS = "Forbidden: may only be used when `type` is 'LoadBalancer'"


def faults_of(**spec: Any) -> list[str]:
    """What is wrong with a new Service, which has a port."""
    return refused(SERVICES, spec={"ports": PORTS, **spec})


def service(**spec: Any) -> Json:
    """A Service that was given an address."""
    given = {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ipFamilies": ["IPv4"]}
    return created(SERVICES, spec={"ports": PORTS, **given, "ipFamilyPolicy": "SingleStack", **spec})


def change(old: Json, **spec: Any) -> tuple[Json, list[str]]:
    """The spec after these fields were set, or taken out where they are None, and what is wrong with it."""
    new, faults = updated(SERVICES, old, spec={**old["spec"], **spec})
    return new["spec"], faults


class TestDefaults:
    """What is filled in."""

    def test_plain(self) -> None:
        """A Service needs no more than a port."""
        assert read(SERVICES, spec={"ports": PORTS})["spec"] == {
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
        }

    @pytest.mark.parametrize(("target", "filled"), [(0, 80), ("", 80), ("http", "http"), (8080, 8080)])
    def test_target_port(self, target: Any, filled: Any) -> None:
        """The port of the Pods is that of the Service, unless it is told."""
        assert (
            read(SERVICES, spec={"ports": [{"port": 80, "targetPort": target}]})["spec"]["ports"][0]["targetPort"]
            == filled
        )

    def test_affinity(self) -> None:
        """Affinity lasts three hours, and has no bounds where there is none."""
        found = read(SERVICES, spec={"sessionAffinity": "ClientIP", "sessionAffinityConfig": {}})["spec"]
        assert found["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}
        config = {"clientIP": {"timeoutSeconds": 3}}
        assert "sessionAffinityConfig" not in read(SERVICES, spec={"sessionAffinityConfig": config})["spec"]

    @pytest.mark.parametrize(
        ("spec", "outside", "inside", "allocates"),
        [
            ({"type": "NodePort"}, "Cluster", "Cluster", None),
            ({"type": "LoadBalancer"}, "Cluster", "Cluster", True),
            ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, "Cluster", "Cluster", False),
            ({"externalIPs": ["1.2.3.4"]}, "Cluster", "Cluster", None),
            ({"type": "ExternalName"}, None, None, None),
        ],
    )
    def test_policies(self, spec: Json, outside: str | None, inside: str | None, allocates: bool | None) -> None:
        """What can be reached from outside has a policy for that, and a load balancer has node ports."""
        found = read(SERVICES, spec=spec)["spec"]
        assert found.get("externalTrafficPolicy") == outside
        assert found.get("internalTrafficPolicy") == inside
        assert found.get("allocateLoadBalancerNodePorts") is allocates

    def test_new(self) -> None:
        """A new Service has no status, one address in both its places, and no policy that its type has no use for."""
        found = created(SERVICES, spec={"ports": PORTS, "clusterIP": "10.96.0.9"}, status={"conditions": []})
        assert found["status"] == {"loadBalancer": {}}
        assert found["spec"]["clusterIPs"] == ["10.96.0.9"]
        named = created(
            SERVICES, spec={"type": "ExternalName", "externalName": "a.b", "internalTrafficPolicy": "Local"}
        )
        assert "internalTrafficPolicy" not in named["spec"]


class TestRules:
    """What is wrong with a Service."""

    @pytest.mark.parametrize(
        ("port", "faults"),
        [
            ({"port": 0}, ["port: Invalid value: 0: must be between 1 and 65535, inclusive"] * 2),
            ({"port": 70000, "targetPort": 1}, ["port: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
            ({"protocol": "X"}, ['protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"']),
            ({"targetPort": "8080"}, ['targetPort: Invalid value: "8080": must contain at least one letter (a-z)']),
            (
                {"targetPort": "a" * 16},
                [f'targetPort: Invalid value: "{"a" * 16}": must be no more than 15 characters'],
            ),
            ({"targetPort": "a--b"}, ['targetPort: Invalid value: "a--b": must not contain consecutive hyphens']),
            ({"targetPort": "-a"}, ['targetPort: Invalid value: "-a": must not begin or end with a hyphen']),
            (
                {"targetPort": "H_x"},
                [
                    'targetPort: Invalid value: "H_x": must contain only alpha-numeric characters (a-z, 0-9), '
                    "and hyphens (-)"
                ],
            ),
            ({"nodePort": 30000}, ["nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]),
        ],
    )
    def test_ports(self, port: Json, faults: list[str]) -> None:
        """Ports are numbers that there are, and names that can be."""
        found = faults_of(ports=[{"port": 80, **port}])
        if len(faults) == 2:  # the port of the Pods is the same
            assert found == [
                f"spec.ports[0].{faults[0]}",
                f"spec.ports[0].{faults[1].replace('port', 'targetPort', 1)}",
            ]
        else:
            assert found == [f"spec.ports[0].{each}" for each in faults]

    def test_several_ports(self) -> None:
        """Several ports have names, each its own, and each combination with a protocol is there once."""
        assert faults_of(ports=[{"port": 80}, {"port": 81}]) == [
            "spec.ports[0].name: Required value",
            "spec.ports[1].name: Required value",
        ]
        both = [{"port": 80, "name": "a", "nodePort": 30000}] * 2
        assert faults_of(type="NodePort", ports=both) == [
            'spec.ports[1].name: Duplicate value: "a"',
            "spec.ports[1].nodePort: Duplicate value: 30000",
            'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,'
            '"NodePort":0}',
        ]
        assert faults_of(ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b", "protocol": "UDP"}]) == []

    @pytest.mark.parametrize(
        ("spec", "needed"), [({}, True), ({"clusterIP": "None"}, False), ({"type": "ExternalName"}, False)]
    )
    def test_ports_are_needed(self, spec: Json, needed: bool) -> None:
        """A Service has ports, unless nobody asks it for an address."""
        found = faults_of(**spec, ports=[], externalName="a.b")
        assert found == (["spec.ports: Required value"] if needed else [])

    @pytest.mark.parametrize(
        ("spec", "faults"),
        [
            (
                {"type": "Foo"},
                [
                    'spec.type: Unsupported value: "Foo": '
                    'supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
                ],
            ),
            (
                {"sessionAffinity": "x"},
                ['spec.sessionAffinity: Unsupported value: "x": supported values: "ClientIP", "None"'],
            ),
            (
                {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 90000}}},
                [
                    "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 90000: "
                    "must be greater than 0 and less than 86400"
                ],
            ),
            (
                {"internalTrafficPolicy": "x"},
                ['spec.internalTrafficPolicy: Unsupported value: "x": supported values: "Cluster", "Local"'],
            ),
            (
                {"externalTrafficPolicy": "Local"},
                [
                    'spec.externalTrafficPolicy: Invalid value: "Local": '
                    "may only be set for externally-accessible services"
                ],
            ),
            (
                {"type": "NodePort", "externalTrafficPolicy": "x"},
                ['spec.externalTrafficPolicy: Unsupported value: "x": supported values: "Cluster", "Local"'],
            ),
            (
                {"trafficDistribution": "x"},
                [
                    'spec.trafficDistribution: Unsupported value: "x": '
                    'supported values: "PreferClose", "PreferSameZone", "PreferSameNode"'
                ],
            ),
            ({"externalIPs": ["x"]}, [f'spec.externalIPs[0]: Invalid value: "x": {NO_ADDRESS}']),
            (
                {"externalIPs": ["127.0.0.1"]},
                [
                    'spec.externalIPs[0]: Invalid value: "127.0.0.1": '
                    "may not be in the loopback range (127.0.0.0/8, ::1/128)"
                ],
            ),
            ({"loadBalancerClass": "a/b"}, [f"spec.loadBalancerClass: {BALANCERS}"]),
            ({"allocateLoadBalancerNodePorts": True}, [f"spec.allocateLoadBalancerNodePorts: {BALANCERS}"]),
            ({"loadBalancerSourceRanges": ["10.0.0.0/8"]}, [f"spec.LoadBalancerSourceRanges: {BALANCERS}"]),
            (
                {"healthCheckNodePort": 30000},
                [
                    "spec.healthCheckNodePort: Invalid value: 30000: "
                    "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
                ],
            ),
            (
                {"type": "NodePort", "clusterIP": "None"},
                ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
            ),
        ],
    )
    def test_fields(self, spec: Json, faults: list[str]) -> None:
        """Fields have values that there are, and go with the type."""
        assert faults_of(**spec) == faults

    def test_selector(self) -> None:
        """A selector is of labels."""
        found = faults_of(selector={"a b": "c d"})
        assert [each[:35] for each in found] == [
            'spec.selector: Invalid value: "a b"',
            'spec.selector: Invalid value: "c d"',
        ]

    def test_external_name(self) -> None:
        """An ExternalName stands for a name, and has no address."""
        assert faults_of(type="ExternalName") == ["spec.externalName: Required value"]
        assert faults_of(type="ExternalName", externalName="a.b.") == []
        assert faults_of(type="ExternalName", externalName="A_b")[0].startswith(
            'spec.externalName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of'
        )
        not_set = "Forbidden: may not be set for ExternalName services"
        spec = {"clusterIP": "10.96.0.5", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
        assert faults_of(type="ExternalName", externalName="a.b", **spec) == [
            f"spec.clusterIPs: {not_set}",
            f"spec.ipFamilies: {not_set}",
            f"spec.ipFamilyPolicy: {not_set}",
        ]

    @pytest.mark.parametrize(
        ("spec", "faults"),
        [
            ({"clusterIP": "x"}, [f'spec.clusterIPs[0]: Invalid value: "x": {NO_ADDRESS}']),
            (
                {"clusterIP": "10.96.0.07"},
                ['spec.clusterIPs[0]: Invalid value: "10.96.0.07": must not have leading 0s'],
            ),
            (
                {"clusterIP": "::ffff:10.96.0.7"},
                ['spec.clusterIPs[0]: Invalid value: "::ffff:10.96.0.7": must not be an IPv4-mapped IPv6 address'],
            ),
            (
                {"clusterIPs": ["10.96.0.8"]},
                ['spec.clusterIPs: Invalid value: ["10.96.0.8"]: must be empty when `clusterIP` is not specified'],
            ),
            (
                {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.8"]},
                ['spec.clusterIPs: Invalid value: ["10.96.0.8"]: first value must match `clusterIP`'],
            ),
            (
                {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "10.96.0.8"]},
                [
                    'spec.clusterIPs: Invalid value: ["10.96.0.7","10.96.0.8"]: '
                    "may specify no more than one IP for each IP family"
                ],
            ),
            (
                {"clusterIP": "None", "clusterIPs": ["None", "None"]},
                [
                    'spec.clusterIPs: Invalid value: ["None","None"]: \'None\' must be the first and only value',
                    f'spec.clusterIPs[1]: Invalid value: "None": {NO_ADDRESS}',
                ],
            ),
            (
                {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::1", "fd00::2"]},
                ['spec.clusterIPs: Invalid value: ["10.96.0.7","fd00::1","fd00::2"]: may only hold up to 2 values'],
            ),
            (
                {"clusterIP": "10.96.0.7", "ipFamilies": ["IPv6"]},
                [
                    'spec.clusterIPs[0]: Invalid value: "10.96.0.7": '
                    "expected an IPv6 value as indicated by `ipFamilies[0]`"
                ],
            ),
            ({"ipFamilies": ["IPv4", "IPv4"]}, ['spec.ipFamilies[1]: Duplicate value: "IPv4"']),
            (
                {"ipFamilies": ["x"], "ipFamilyPolicy": ""},
                [
                    'spec.ipFamilies[0]: Unsupported value: "x": supported values: "IPv4", "IPv6"',
                    'spec.ipFamilyPolicy: Unsupported value: "": '
                    'supported values: "PreferDualStack", "RequireDualStack", "SingleStack"',
                ],
            ),
        ],
    )
    def test_addresses(self, spec: Json, faults: list[str]) -> None:
        """Addresses are addresses, of one family each, and agree with what else is said of them."""
        assert faults_of(**spec) == faults


class TestUpdates:
    """What becomes of what was given."""

    def test_left_out(self) -> None:
        """Addresses that are left out stay."""
        for spec in ({"clusterIP": None}, {"clusterIPs": None}, {"clusterIP": None, "clusterIPs": None}):
            found, faults = change(service(), **spec)
            assert faults == []
            assert (found["clusterIP"], found["clusterIPs"]) == ("10.96.0.9", ["10.96.0.9"])

    def test_may_not_change(self) -> None:
        """Addresses stay for life; a client that knows one field only changed both."""
        told = 'spec.clusterIPs[0]: Invalid value: ["{}"]: may not change once set'
        assert change(service(), clusterIP="10.96.0.8")[1] == [told.format("10.96.0.8")]
        assert change(service(), clusterIP="None")[1] == [told.format("None")]

    def test_one_field_of_two(self) -> None:
        """A client that sets the older field alone has changed the newer one."""
        assert change(service(), clusterIP="None", clusterIPs=None)[1] == [
            'spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'
        ]
        named = created(SERVICES, spec={"type": "ExternalName", "externalName": "a.b"})
        assert change(named, type="ClusterIP", clusterIP="10.96.0.8", ports=PORTS)[0]["clusterIPs"] == ["10.96.0.8"]

    def test_headless(self) -> None:
        """The families of one that has no address may change."""
        old = service(clusterIP="None", clusterIPs=["None"], selector={"a": "b"})
        assert change(old, ipFamilies=["IPv6"])[1] == []

    def test_second_address(self) -> None:
        """A second one may come and go, and not change."""
        both = service(
            clusterIPs=["10.96.0.9", "fd00::9"], ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="RequireDualStack"
        )
        assert change(both, clusterIPs=["10.96.0.9", "fd00::8"])[1] == [
            'spec.clusterIPs[1]: Invalid value: ["10.96.0.9","fd00::8"]: may not change once set'
        ]
        single = {"clusterIPs": ["10.96.0.9"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
        assert change(both, **single)[1] == []
        other = {"clusterIP": "fd00::9", "clusterIPs": ["fd00::9"], "ipFamilies": ["IPv6"]}
        assert change(both, **other, ipFamilyPolicy="SingleStack")[1] == [
            'spec.clusterIPs[0]: Invalid value: ["fd00::9"]: may not change once set',
            'spec.ipFamilies[0]: Invalid value: ["fd00::9"]: may not change once set',
        ]

    def test_to_external_name(self) -> None:
        """A Service that becomes an ExternalName loses what it was given, unless the client says otherwise."""
        found, faults = change(service(), type="ExternalName", externalName="a.b")
        assert faults == []
        ports = [{"port": 80, "protocol": "TCP", "targetPort": 80}]
        assert found == {"ports": ports, "type": "ExternalName", "sessionAffinity": "None", "externalName": "a.b"}
        _, faults = change(service(), type="ExternalName", externalName="a.b", clusterIP="10.96.0.8")
        assert faults == ["spec.clusterIPs: Forbidden: may not be set for ExternalName services"]

    def test_node_ports(self) -> None:
        """Node ports go by the names of ports while there are any, and go with the type."""
        ports = [{"port": 80, "name": "a", "nodePort": 30600}, {"port": 81, "name": "b", "nodePort": 30601}]
        old = service(type="NodePort", ports=ports)
        found, _ = change(old, ports=[{"port": 80, "name": "b"}, {"port": 81, "name": "c"}])
        assert [each.get("nodePort") for each in found["ports"]] == [30601, None]
        found, _ = change(old, ports=[{"port": 80, "name": "b"}, {"port": 81, "name": "c", "nodePort": 30601}])
        assert [each.get("nodePort") for each in found["ports"]] == [None, 30601]
        found, faults = change(old, type="ClusterIP")
        assert faults == []
        assert not any("nodePort" in each for each in found["ports"])
        assert "externalTrafficPolicy" not in found

    def test_load_balancers(self) -> None:
        """What only load balancers have goes with them; their class and health port stay."""
        old = service(
            type="LoadBalancer", loadBalancerClass="a/b", externalTrafficPolicy="Local", healthCheckNodePort=30500
        )
        found, faults = change(old, type="ClusterIP")
        assert faults == []
        gone = {"loadBalancerClass", "externalTrafficPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts"}
        assert not gone & found.keys()
        found, faults = change(old, healthCheckNodePort=None)
        assert (found["healthCheckNodePort"], faults) == (30500, [])
        found, faults = change(old, externalTrafficPolicy="Cluster")
        assert ("healthCheckNodePort" in found, faults) == (False, [])
        assert change(old, loadBalancerClass="a/c", healthCheckNodePort=30501)[1] == [
            'spec.loadBalancerClass: Invalid value: "a/c": may not change once set',
            "spec.healthCheckNodePort: Forbidden: field is immutable",
        ]


class TestStatus:
    """The status, which is that of a load balancer."""

    def test_ingress(self) -> None:
        """Addresses are of the mode that is usual, and are checked."""
        old = service(type="LoadBalancer")
        ingress = [{"ip": "1.2.3.4"}, {"hostname": "a.b"}]
        new, faults = with_status(SERVICES, old, status={"loadBalancer": {"ingress": ingress}})
        assert faults == []
        assert new["status"]["loadBalancer"]["ingress"] == [{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a.b"}]
        wrong = [{"ip": "x"}, {"ip": "1.2.3.4", "ipMode": "z"}]
        assert with_status(SERVICES, old, status={"loadBalancer": {"ingress": wrong}})[1] == [
            f'status.loadBalancer.ingress[0].ip: Invalid value: "x": {NO_ADDRESS}',
            'status.loadBalancer.ingress[1].ipMode: Unsupported value: "z": supported values: "Proxy", "VIP"',
        ]

    def test_mode(self) -> None:
        """The mode goes with an address, and is the usual one only for what was sent as a load balancer."""
        old = service(type="LoadBalancer")
        ingress = [{"hostname": "a.b", "ipMode": "VIP"}, {"hostname": "1.2.3.4"}]
        assert with_status(SERVICES, old, status={"loadBalancer": {"ingress": ingress}})[1] == [
            "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set",
            'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
        ]
        sent = {**old["spec"], "type": "ClusterIP"}
        assert with_status(SERVICES, old, spec=sent, status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})[1] == [
            "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set"
        ]

    def test_goes_with_the_type(self) -> None:
        """Only load balancers have one."""
        old = service(type="LoadBalancer")
        old["status"] = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ipMode": "VIP"}]}}
        new, _ = updated(SERVICES, old, spec={**old["spec"], "type": "ClusterIP"})
        assert new["status"] == {"loadBalancer": {}}
        assert old["status"]["loadBalancer"] != {}
        ingress = {"loadBalancer": {"ingress": [{"hostname": "a.b"}]}}
        assert with_status(SERVICES, service(), status=ingress)[1] == [
            "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"
        ]

    def test_keeps_the_spec(self) -> None:
        """A write to it changes nothing of the spec, and that is not checked again."""
        old = service()
        new, faults = with_status(SERVICES, old, spec={"ports": [{"port": 0}]}, status={})
        assert (new["spec"], faults) == (old["spec"], [])


class TestWarnings:
    """What is told though it is taken."""

    @pytest.mark.parametrize(
        ("spec", "warning"),
        [
            (
                {"externalIPs": ["1.2.3.4"]},
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            ),
            ({"externalName": "a.b"}, 'spec.externalName is ignored when spec.type is not "ExternalName"'),
            (
                {"trafficDistribution": "PreferClose"},
                'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
            ),
            (
                {"clusterIP": "None", "sessionAffinity": "ClientIP"},
                "spec.SessionAffinity is ignored for headless services",
            ),
            (
                {"clusterIP": "FD00::7"},
                'spec.clusterIPs[0]: IPv6 address "FD00::7" should be in RFC 5952 canonical format ("fd00::7")',
            ),
        ],
    )
    def test_warnings(self, spec: Json, warning: str) -> None:
        """What does nothing, or is out of use or of form."""
        assert SERVICES.strategy.warnings(created(SERVICES, spec={"ports": PORTS, **spec})) == [warning]

    def test_none(self) -> None:
        """Most Services are well."""
        assert SERVICES.strategy.warnings(service()) == []


class TestColumns:
    """What `kubectl get services` shows."""

    @pytest.mark.parametrize(
        ("spec", "cells"),
        [
            ({}, ["ClusterIP", "10.96.0.9", "<none>", "80/TCP", "<unknown>", "<none>"]),
            (
                {"selector": {"b": "c", "a": "b"}, "externalIPs": ["1.2.3.4", "1.2.3.5"]},
                ["ClusterIP", "10.96.0.9", "1.2.3.4,1.2.3.5", "80/TCP", "<unknown>", "a=b,b=c"],
            ),
            (
                {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}, {"port": 81, "protocol": "UDP"}]},
                ["NodePort", "10.96.0.9", "<none>", "80:30001/TCP,81/UDP", "<unknown>", "<none>"],
            ),
            ({"type": "LoadBalancer"}, ["LoadBalancer", "10.96.0.9", "<pending>", "80/TCP", "<unknown>", "<none>"]),
        ],
    )
    def test_types(self, spec: Json, cells: list[str]) -> None:
        """Addresses, ports and selector."""
        given = {"ports": PORTS, "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}
        obj = read(SERVICES, spec={**given, **spec})
        assert row(SERVICES, obj) == cells

    def test_names_and_load_balancers(self) -> None:
        """What is reached from outside, by the name that it stands for or by the load balancer."""
        named = created(SERVICES, spec={"type": "ExternalName", "externalName": "a.b"})
        assert row(SERVICES, named) == ["ExternalName", "<none>", "a.b", "<none>", "<unknown>", "<none>"]
        balanced = service(type="LoadBalancer")
        balanced["status"] = {"loadBalancer": {"ingress": [{"hostname": "a.b"}, {"ip": "1.2.3.4"}]}}
        assert row(SERVICES, balanced)[2] == "1.2.3.4,a.b"

    def test_field_selectors(self) -> None:
        """Services are selected by address and type."""
        assert SERVICES.fields["spec.clusterIP"](service()) == "10.96.0.9"
        assert SERVICES.fields["spec.type"](service()) == "ClusterIP"

    def test_finalizers(self) -> None:
        """Finalizers have a domain, as those of other built-in kinds."""
        obj = service()
        obj["metadata"]["finalizers"] = ["zz"]
        fault = 'metadata.finalizers[0]: Invalid value: "zz": name is neither a standard finalizer name nor is it fully'
        assert told(SERVICES.strategy.validate_create(obj)) == [f"{fault} qualified"]
