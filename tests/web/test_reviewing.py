"""Tokens of the cluster, as the API server judges them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from cidrella.kube.errors import NoAnswerError
from cidrella.web import reviewing
from cidrella.web.reviewing import ACCESS_REVIEWS, BELIEVED, DOUBTED, TOKEN_REVIEWS, Reviewer

if TYPE_CHECKING:
    from cidrella.kube.client import Client

ANN = {"username": "ann", "uid": "7", "groups": ["ops"], "extra": {"scopes": ["all"]}}


class Api:
    """An API server that knows some tokens, and some who may list nodes."""

    def __init__(self) -> None:
        self.tokens: dict[str, dict[str, Any]] = {"anns": ANN, "bobs": {"username": "bob"}}
        self.may = {"ann"}
        self.asked: list[tuple[str, Any]] = []
        self.away = False

    async def create(self, path: str, obj: dict[str, Any], kind: type[msgspec.Struct]) -> msgspec.Struct:
        if self.away:
            raise NoAnswerError("connection refused")
        self.asked.append((path, obj))
        if path == TOKEN_REVIEWS:
            user = self.tokens.get(obj["spec"]["token"])
            status: dict[str, Any] = {"authenticated": True, "user": user} if user else {"error": "no such token"}
        else:
            status = {"allowed": obj["spec"]["user"] in self.may}
        return msgspec.convert({"status": status}, kind)


def accepts(reviewer: Reviewer, token: str) -> bool:
    return asyncio.run(reviewer.accepts(token))


def reviewer(api: Api, now: list[float] | None = None) -> Reviewer:
    return Reviewer(cast("Client", api), clock=lambda: (now or [0.0])[0])


def test_whose_it_is_and_what_that_one_may() -> None:
    """Who may list nodes may look; who may not, and whoever is nobody, may not."""
    api = Api()
    judge = reviewer(api)
    assert [accepts(judge, token) for token in ("anns", "bobs", "nobodys", "")] == [True, False, False, False]
    assert api.asked[0] == (
        TOKEN_REVIEWS,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "anns"}},
    )
    path, review = api.asked[1]
    assert (path, review["apiVersion"], review["kind"]) == (
        ACCESS_REVIEWS,
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
    )
    assert review["spec"] == {
        "user": "ann",
        "uid": "7",
        "groups": ["ops"],
        "extra": {"scopes": ["all"]},
        "resourceAttributes": {"verb": "list", "resource": "nodes"},
    }


@pytest.mark.parametrize("token", ["", "\udcff\udcfe"])
def test_what_is_no_token(token: str) -> None:
    """Nobody is asked about nothing, nor about bytes that are no text."""
    api = Api()
    assert not accepts(reviewer(api), token)
    assert api.asked == []


def test_a_user_without_a_name() -> None:
    """One who is nobody is not asked about: nobody in particular may be allowed much."""
    api = Api()
    api.tokens["odd"] = {"username": ""}
    api.may.add("")
    assert not accepts(reviewer(api), "odd")


@pytest.mark.parametrize(("token", "seconds"), [("anns", BELIEVED), ("bobs", DOUBTED)])
def test_what_was_said_is_believed_for_a_moment(token: str, seconds: float) -> None:
    """The API server is not asked for each request; but what it says counts again soon."""
    api, now = Api(), [0.0]
    judge = reviewer(api, now)
    before = accepts(judge, token)
    so_many = len(api.asked)
    api.may = {"bob"}
    now[0] = seconds - 0.1
    assert accepts(judge, token) is before
    assert len(api.asked) == so_many
    now[0] = seconds
    assert accepts(judge, token) is not before


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends many tokens fills no memory."""
    monkeypatch.setattr(reviewing, "_KNOWN_MAX", 3)
    judge = reviewer(Api())
    for number in range(10):
        accepts(judge, str(number))
    assert len(judge._known) == 3


def test_an_api_server_that_is_away() -> None:
    """Nobody can tell, and that is not remembered."""
    api = Api()
    api.away = True
    judge = reviewer(api)
    with pytest.raises(NoAnswerError):
        accepts(judge, "anns")
    api.away = False
    assert accepts(judge, "anns")
