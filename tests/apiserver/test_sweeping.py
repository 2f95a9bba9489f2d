"""Events go by themselves, some time after they were last written."""

from __future__ import annotations

from cidrella.apiserver.serving.sweeping import Sweeping
from tests.apiserver.asking import MERGE, NODES, api, node

EVENTS = "/api/v1/namespaces/default/events"


def test_lifetime() -> None:
    """Counted from when one was last written, or from when the server began; nothing else goes."""
    with api() as ask:
        for name in "ab":
            ask.make(EVENTS, {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}})
        ask.make(NODES, node("n"))
        sweeping = Sweeping(ask.holdings)
        sweeping.sweep(0)
        ask("PATCH", f"{EVENTS}/b", {"message": "again"}, media=MERGE).granted()
        sweeping.sweep(1800)
        sweeping.sweep(3599)
        assert ask("GET", EVENTS).names == ["a", "b"]
        sweeping.sweep(3600)
        assert ask("GET", EVENTS).names == ["b"]
        sweeping.sweep(5400)
        assert ask("GET", EVENTS).names == []
        assert ask("GET", NODES).names == ["n"]
