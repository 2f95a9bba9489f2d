"""The page beside the controller, under exactly the rights of `deploy/`: what it shows, and to whom."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.real.rbac import DEPLOY, account_token
from tests.real.site import eventually

if TYPE_CHECKING:
    from tests.real.site import Replica, Site

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"


def ask(replica: Replica, path: str = "/api/v1/state", token: str = "", **headers: str) -> tuple[int, Any]:
    """What the page's API answers, and with which code."""
    connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=30)
    try:
        connection.request("GET", path, headers=headers | ({"Authorization": f"Bearer {token}"} if token else {}))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read() or b"null")
    finally:
        connection.close()


def log_in(replica: Replica, token: str) -> tuple[str, str]:
    """Where the login sends a browser, and the cookie that it gives it."""
    connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=30)
    try:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/login", urlencode({"password": token}), form)
        reply = connection.getresponse()
        return reply.headers["Location"], (reply.headers["Set-Cookie"] or "").partition(";")[0]
    finally:
        connection.close()


def test_it_shows_what_is_there(site: Site) -> None:
    """N4: pools, nodes with their blocks, one that waits and why, Services and events, on every replica."""
    site.create_pool("pool", ipv4="10.1.0.0/23")
    leader, standby = site.run(), site.run()
    for name in ("a", "b", "c"):
        site.create_node(name)
    for replica in (leader, standby):

        def complete(replica: Replica = replica) -> bool:
            state = ask(replica)[1]
            return (
                sorted(each["state"] for each in state["nodes"]) == ["served", "served", "waiting"]
                and any(each["holder"] == "default/kubernetes" for each in state["services"])
                and any(each["reason"] == "CIDRNotAvailable" for each in state["events"])
            )

        eventually(complete, 60, lambda replica=replica: str(ask(replica)))  # type: ignore[misc] # bound at once
        state = ask(replica)[1]
        assert state["cluster"]["remarks"] == []
        assert state["cluster"]["leading"] == (replica is leader)
        (waiting,) = (each for each in state["nodes"] if each["state"] == "waiting")
        assert waiting["reason"] == "every pool that applies is full: pool (no IPv4 /24 left)"
        assert waiting["help"].startswith("another pool")
        assert [each["state"] for each in state["pools"]] == ["full"]


def test_a_token_of_the_cluster(site: Site) -> None:
    """Who may list nodes may look; who may not, or is nobody, may not; without the right to ask, nobody may.

    A token is good at the login as well, one for somebody else is good nowhere, and a session ends with the right.
    """
    replica = site.run("--web-auth=kubernetes")
    mighty = account_token(site.cluster)
    assert ask(replica, token=mighty)[0] == 503
    (told,) = (line for line in replica.logged() if line["event"] == "whether a credential is right cannot be told")
    assert "tokenreviews" in told["error"]
    site.cluster.kubectl("apply", "-k", DEPLOY / "page-auth")
    try:
        eventually(lambda: ask(replica, token=mighty)[0] == 200)
        site.admin.create(ACCOUNTS, {"metadata": {"name": "looker"}})
        token = account_token(site.cluster, "looker")
        assert ask(replica, token=token)[0] == 401
        assert ask(replica, token="rubbish")[0] == 401
        assert ask(replica)[0] == 401
        assert log_in(replica, "rubbish") == ("/login#wrong", "")
        kubectl = site.cluster.kubectl
        kubectl("create", "clusterrole", "looker", "--verb=list", "--resource=nodes")
        kubectl("create", "clusterrolebinding", "looker", "--clusterrole=looker", "--serviceaccount=kube-system:looker")
        eventually(lambda: ask(replica, "/api/v1/nodes", token=token)[0] == 200)
        other = kubectl("create", "token", "looker", "-n", "kube-system", "--audience=other").stdout.strip()
        assert ask(replica, token=other)[0] == 401
        where, cookie = log_in(replica, token)
        assert (where, ask(replica, Cookie=cookie)[0]) == ("/", 200)
        kubectl("delete", "clusterrolebinding/looker", "clusterrole/looker")
        # What the API server said is believed for half a minute.
        eventually(lambda: ask(replica, Cookie=cookie)[0] == 401)
        assert replica.get("/healthz")[0] == 200
    finally:
        site.cluster.kubectl("delete", "--ignore-not-found", "-k", DEPLOY / "page-auth")
        looker = ("clusterrolebinding/looker", "clusterrole/looker", "serviceaccount/looker")
        site.cluster.kubectl("delete", "--ignore-not-found", "-n", "kube-system", *looker)


def test_without_the_right_to_list_services(site: Site) -> None:
    """An installation of an older version: the page says what it may not show, and shows the rest."""
    replica = site.run()
    role = site.admin.get(f"{ROLES}/cidrella")
    rules = [rule for rule in role["rules"] if rule["resources"] != ["services"]]
    assert len(rules) == len(role["rules"]) - 1
    try:
        site.admin.patch(f"{ROLES}/cidrella", {"rules": rules})
        site.create_node("a")
        eventually(lambda: any("services" in each for each in ask(replica)[1]["cluster"]["remarks"]), 60)
        assert [each["name"] for each in ask(replica)[1]["nodes"]] == ["a"]
    finally:
        site.admin.patch(f"{ROLES}/cidrella", {"rules": role["rules"]})
