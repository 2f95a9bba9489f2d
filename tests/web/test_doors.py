"""Who may look."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from structlog.testing import capture_logs

from cidrella.kube.errors import ConfigError, NoAnswerError
from cidrella.web import doors
from cidrella.web.assets import FOR_LOGIN
from cidrella.web.checkers import SecretFile
from cidrella.web.doors import COOKIE, SESSION, SESSIONS_MAX, SUSPECTS_MAX, ClosedDoor, GuardedDoor
from tests.web.samples import Answer, Asker, serve, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cidrella.web.board import Board
    from cidrella.web.doors import Door
    from cidrella.web.series import WebSeries

PASSWORD = "correct horse"
TOKEN = "a-token-in-a-file"
GUARDED = ["/", "/static/app.js", "/api/v1/state", "/api/v1/stream", "/api/v1/explain/a", "/metrics", "/nowhere"]


ROUNDABOUT = [
    "//api/v1/state",
    "/./api/v1/state",
    "/api/v1/state/",
    "/api/v1/state;x",
    "/api/v1/state%00",
    "/%61pi/v1/state",
    "/%2fapi/v1/state",
    "/healthz/../api/v1/state",
    "/healthz/%2e%2e/api/v1/state",
    "/login/../api/v1/state",
    "/login%2f..%2fapi%2fv1%2fstate",
    "/static/style.css/../../api/v1/state",
    "/static/style.css%2f..%2fmain.js",
    "/static/%2e%2e/metrics",
    "//healthz/../metrics",
    "http://localhost/api/v1/state",
    "http://localhost/healthz/../api/v1/state",
    "api/v1/state",
    "*",
]


class Secret:
    """A checker that can be told what to say."""

    def __init__(self, secret: str, *, bearer: bool = False) -> None:
        self.name = f"the one who knows {secret}"
        self.secret = secret
        self.bearer = bearer
        self.asked = 0
        self.away = False
        self.thinking: asyncio.Event | None = None

    async def accepts(self, credential: str) -> bool:
        self.asked += 1
        if self.thinking is not None:
            await self.thinking.wait()
        if self.away:
            raise NoAnswerError("connection refused")
        return credential == self.secret


def guarded(*checkers: Secret, **options: Any) -> Callable[[WebSeries], Door]:
    shown = checkers or (Secret(PASSWORD), Secret(TOKEN, bearer=True))
    return lambda series: GuardedDoor(shown, series, **{"slow": 0.0, **options})


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def elsewhere(ask: Asker) -> AsyncIterator[Asker]:
    """Who asks the same server from another address."""
    connector = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield Asker(ask.server, session, ask.series)


@asynccontextmanager
async def guessing(ask: Asker, secret: Secret) -> AsyncIterator[list[asyncio.Task[Answer]]]:
    """As many wrong tokens as are looked at; at the end, whoever showed them goes away."""
    before = secret.asked
    guesses = [asyncio.ensure_future(ask("/", headers=bearer(f"x{n}"))) for n in range(SUSPECTS_MAX)]
    try:
        await until(lambda: secret.asked >= before + SUSPECTS_MAX)
        yield guesses
    finally:
        for guess in guesses:
            guess.cancel()
        await asyncio.wait(guesses)


async def say(ask: Asker, said: bytes) -> bytes:
    """What is answered to that, as it stands on the wire."""
    where = urlsplit(ask.server.url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(said)
    answer = await reader.read()
    writer.close()
    return answer


async def log_in(ask: Asker, password: str = PASSWORD) -> Answer:
    return await ask("/login", "POST", data={"password": password})


def is_busy(answer: Answer) -> bool:
    """Whether a browser is told to try again, and let in no further."""
    return (answer.status, answer.headers["Location"]) == (303, "/login#busy") and "Set-Cookie" not in answer.headers


def cookie(answer: Answer) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={morsel(answer).value}"}


def morsel(answer: Answer) -> Any:
    return SimpleCookie(answer.headers["Set-Cookie"])[COOKIE]


class TestOpen:
    """Where only this machine can connect."""

    @pytest.mark.parametrize("host", ["localhost:80", "LOCALHOST", "localhost.", "127.0.0.1", "127.3.2.1:5", "[::1]:9"])
    def test_names_of_this_machine(self, host: str) -> None:
        """It is reached under the names that only this machine can have."""

        async def scenario(ask: Asker, _: Board) -> None:
            assert (await ask("/api/v1/state", headers={"Host": host})).status == 200

        serve(scenario)

    @pytest.mark.parametrize(
        "host",
        ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]", "10.0.0.1", "localhost.evil", "[::1"],
    )
    def test_other_names(self, host: str) -> None:
        """A page of somebody else's that has the browser ask us under its own name learns nothing."""

        async def scenario(ask: Asker, _: Board) -> None:
            for path in ("/", "/api/v1/state", "/api/v1/stream", "/static/style.css", "/nowhere"):
                assert (await ask(path, headers={"Host": host})).status == 403
            for path in ("/healthz", "/metrics"):
                assert (await ask(path, headers={"Host": host})).status == 200

        serve(scenario)


def test_closed() -> None:
    """Where others can connect and nothing is there to know them by: health and metrics as ever, and what to do."""

    async def scenario(ask: Asker, _: Board) -> None:
        assert (await ask("/healthz")).status == 200
        assert (await ask("/readyz")).status == 503
        assert (await ask("/metrics")).status == 200
        for path in ("/", "/static/style.css", "/api/v1/state", "/api/v1/stream", "/login"):
            answer = await ask(path)
            assert answer.status == 403
            assert "--web-token-file" in answer.json["error"]

    serve(scenario, door=lambda _: ClosedDoor())


class TestAsking:
    """Where one has to show something."""

    @pytest.mark.parametrize("path", GUARDED)
    @pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic eDp5"}, {"Cookie": f"{COOKIE}=guess"}])
    def test_nothing_without_it(self, path: str, headers: dict[str, str]) -> None:
        """Nothing is told, not even what there is; a browser is sent to the login."""

        async def scenario(ask: Asker, _: Board) -> None:
            answer = await ask(path, headers=headers)
            if path == "/":
                assert (answer.status, answer.headers["Location"]) == (303, "/login")
            else:
                assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert ask.series.refused._value.get() == 0

        serve(scenario, door=guarded())

    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
    def test_whatever_way_it_is_written(self, method: str) -> None:
        """No spelling of a path, and no method, comes around the door: it answers, or there is no such request."""

        async def scenario(ask: Asker, _: Board) -> None:
            for target in (*GUARDED, *ROUNDABOUT):
                for version in ("1.0", "1.1"):
                    said = f"{method} {target} HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                    answer = await say(ask, said.encode())
                    status = int(answer.split()[1])
                    assert status in {303, 400, 401}, (target, version)
                    assert status != 303 or b"Location: /login\r\n" in answer

        serve(scenario, door=guarded())

    def test_what_is_for_everybody(self) -> None:
        """O2: health, readiness, and the login with what it is made of."""

        async def scenario(ask: Asker, _: Board) -> None:
            assert (await ask("/healthz")).status == 200
            assert (await ask("/readyz")).status == 503
            for name in FOR_LOGIN:
                assert (await ask(f"/static/{name}")).status in {200, 404}
            assert (await ask("/login")).status in {200, 404}

        serve(scenario, door=guarded())

    def test_a_token_with_each_request(self) -> None:
        """Whoever shows it is answered, and gets no cookie."""

        async def scenario(ask: Asker, _: Board) -> None:
            for path in ("/api/v1/state", "/metrics"):
                answer = await ask(path, headers=bearer())
                assert answer.status == 200
                assert "Set-Cookie" not in answer.headers
                assert "Cidrella-Session" not in answer.headers

        serve(scenario, door=guarded())

    def test_a_password_is_no_token(self) -> None:
        """It is for the login alone."""

        async def scenario(ask: Asker, _: Board) -> None:
            assert (await ask("/api/v1/state", headers=bearer(PASSWORD))).status == 401

        serve(scenario, door=guarded())

    @pytest.mark.parametrize("credential", [PASSWORD, TOKEN])
    def test_login(self, credential: str) -> None:
        """A session's cookie is for this server's own pages, and for no script."""

        async def scenario(ask: Asker, _: Board) -> None:
            answer = await log_in(ask, credential)
            assert (answer.status, answer.headers["Location"]) == (303, "/")
            found = morsel(answer)
            assert (found["httponly"], found["samesite"], found["path"], found["secure"]) == (True, "Lax", "/", "")
            assert credential not in answer.headers["Set-Cookie"]
            shown = await ask("/api/v1/state", headers=cookie(answer))
            assert (shown.status, shown.headers["Cidrella-Session"]) == (200, "yes")

        serve(scenario, door=guarded())

    def test_behind_tls(self) -> None:
        """Where the browser speaks TLS, the cookie is for TLS only."""

        async def scenario(ask: Asker, _: Board) -> None:
            form = {"password": PASSWORD}
            answer = await ask("/login", "POST", data=form, headers={"X-Forwarded-Proto": "https"})
            assert morsel(answer)["secure"] is True

        serve(scenario, door=guarded())

    def test_logout(self) -> None:
        """What was a session is none any more, whoever kept the cookie; a GET ends nothing."""

        async def scenario(ask: Asker, _: Board) -> None:
            answer = await log_in(ask)
            assert (await ask("/logout", headers=cookie(answer))).status == 405
            gone = await ask("/logout", "POST", headers=cookie(answer))
            assert (gone.status, morsel(gone).value) == (303, "")
            assert (await ask("/api/v1/state", headers=cookie(answer))).status == 401

        serve(scenario, door=guarded())

    def test_a_form_of_another_page(self) -> None:
        """Somebody else's page logs nobody in or out, though the browser sends what it says: it sends no cookie."""

        async def scenario(ask: Asker, _: Board) -> None:
            answer = await log_in(ask)
            for site in ("cross-site", "same-site"):
                for path in ("/login", "/logout"):
                    headers = {"Sec-Fetch-Site": site, **cookie(answer)}
                    refused = await ask(path, "POST", data={"password": PASSWORD}, headers=headers)
                    assert (refused.status, "Set-Cookie" in refused.headers) == (403, False)
            # From a browser that does not say where the form is from.
            assert "Set-Cookie" not in (await ask("/logout", "POST")).headers
            assert (await ask("/api/v1/state", headers=cookie(answer))).status == 200
            own = await ask("/logout", "POST", headers={"Sec-Fetch-Site": "same-origin", **cookie(answer)})
            assert (own.status, morsel(own).value) == (303, "")

        serve(scenario, door=guarded())

    def test_a_login_ends_the_session_before_it(self) -> None:
        """One browser has one session, whichever it was given before: nobody's old cookie lives on."""

        async def scenario(ask: Asker, _: Board) -> None:
            first = await log_in(ask)
            second = await ask("/login", "POST", data={"password": PASSWORD}, headers=cookie(first))
            assert cookie(second) != cookie(first)
            assert (await ask("/api/v1/state", headers=cookie(first))).status == 401
            assert (await ask("/api/v1/state", headers=cookie(second))).status == 200

        serve(scenario, door=guarded())

    def test_a_session_ends(self) -> None:
        """It lasts for hours, not for ever."""
        now = 0.0

        async def scenario(ask: Asker, _: Board) -> None:
            nonlocal now
            answer = await log_in(ask)
            now = SESSION - 1
            assert (await ask("/api/v1/state", headers=cookie(answer))).status == 200
            now = SESSION
            assert "Cidrella-Session" not in (await ask("/login", headers=cookie(answer))).headers
            assert (await ask("/api/v1/state", headers=cookie(answer))).status == 401

        serve(scenario, door=guarded(clock=lambda: now))

    def test_a_session_ends_with_what_it_was_begun_with(self) -> None:
        """A password that was changed lets nobody in who knew the old one; that is no guess, and not counted."""
        secret = Secret(PASSWORD)

        async def scenario(ask: Asker, _: Board) -> None:
            answer = await log_in(ask)
            secret.secret = "another"
            assert (await ask("/api/v1/state", headers=cookie(answer))).status == 401
            assert ask.series.refused._value.get() == 0

        serve(scenario, door=guarded(secret))

    def test_sessions_are_bounded(self) -> None:
        """The oldest go."""

        async def scenario(ask: Asker, _: Board) -> None:
            first = await log_in(ask)
            for _each in range(SESSIONS_MAX - 1):
                last = await log_in(ask)
            assert (await ask("/api/v1/state", headers=cookie(first))).status == 200
            await log_in(ask)
            assert (await ask("/api/v1/state", headers=cookie(first))).status == 401
            assert (await ask("/api/v1/state", headers=cookie(last))).status == 200

        serve(scenario, door=guarded())


class TestWrong:
    """What is wrong takes its time, and is counted."""

    def test_it_is_slow_and_counted(self) -> None:
        """Neither a header nor the login is a fast way to guess."""

        async def scenario(ask: Asker, _: Board) -> None:
            loop = asyncio.get_running_loop()
            guesses = ask("/", headers=bearer("x")), log_in(ask, "x")
            for count, guess in enumerate(guesses, 1):
                began = loop.time()
                answer = await guess
                assert loop.time() - began >= 0.2
                assert (answer.status, answer.headers.get("Location")) in {(401, None), (303, "/login#wrong")}
                assert "Set-Cookie" not in answer.headers
                assert ask.series.refused._value.get() == count
            assert (await ask("/metrics", headers=bearer())).status == 200

        serve(scenario, door=guarded(slow=0.2))

    def test_so_many_at_a_time(self) -> None:
        """While as many as may are wrong, nothing else is looked at, but a session, and who is known elsewhere."""
        secret = Secret(TOKEN, bearer=True)

        async def scenario(ask: Asker, _: Board) -> None:
            session = await log_in(ask, TOKEN)
            async with elsewhere(ask) as other:
                assert (await other("/api/v1/state", headers=bearer())).status == 200
                async with guessing(ask, secret):
                    answer = await ask("/api/v1/state", headers=bearer("more"))
                    assert (answer.status, answer.headers["Retry-After"]) == (429, "5")
                    assert is_busy(await log_in(ask, "more"))
                    assert secret.asked == SUSPECTS_MAX + 2
                    assert (await other("/api/v1/state", headers=bearer())).status == 200
                    assert (await ask("/api/v1/state", headers=cookie(session))).status == 200
                await asyncio.sleep(0.05)
                # Who went away still serves the time.
                assert (await ask("/api/v1/state", headers=bearer("more"))).status == 429

        serve(scenario, door=guarded(secret, slow=60.0))

    def test_nobody_learns_more_than_they_may_try(self) -> None:
        """While nothing is looked at, what is right is answered as what is wrong: there is no faster way to guess."""
        secret = Secret(TOKEN, bearer=True)

        async def scenario(ask: Asker, _: Board) -> None:
            async with elsewhere(ask) as other:
                for each in (ask, other):
                    assert (await each("/api/v1/state", headers=bearer())).status == 200
                    assert (await log_in(each, TOKEN)).status == 303
                async with guessing(ask, secret):
                    # The address that guesses, and one that somebody who is known shares with one who guesses.
                    assert (await other("/api/v1/state", headers=bearer("guess"))).status == 429
                    for each in (ask, other):
                        assert (await each("/api/v1/state", headers=bearer())).status == 429
                        assert is_busy(await log_in(each, TOKEN))

        serve(scenario, door=guarded(secret, slow=60.0))

    def test_sessions_are_no_guesses(self) -> None:
        """However many are asked about at a time, and however long that takes, others can log in."""
        secret = Secret(TOKEN, bearer=True)

        async def scenario(ask: Asker, _: Board) -> None:
            session = await log_in(ask, TOKEN)
            secret.thinking = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                shown = [
                    group.create_task(ask("/api/v1/state", headers=cookie(session))) for _ in range(SUSPECTS_MAX + 1)
                ]
                await until(lambda: secret.asked >= SUSPECTS_MAX + 2)
                one_more = group.create_task(ask("/api/v1/state", headers=bearer("x")))
                await until(lambda: secret.asked >= SUSPECTS_MAX + 3)
                secret.thinking.set()
            assert {task.result().status for task in shown} == {200}
            assert one_more.result().status == 401

        serve(scenario, door=guarded(secret))

    def test_those_who_are_being_asked_about_count(self) -> None:
        """A check that takes long is no way to guess faster."""
        secret = Secret(TOKEN, bearer=True)

        async def scenario(ask: Asker, _: Board) -> None:
            secret.thinking = asyncio.Event()
            async with guessing(ask, secret) as guesses:
                assert (await ask("/", headers=bearer())).status == 429
                secret.thinking.set()
                assert {answer.status for answer in await asyncio.gather(*guesses)} == {401}
            assert (await ask("/metrics", headers=bearer())).status == 200

        serve(scenario, door=guarded(secret))

    def test_when_nobody_can_tell(self) -> None:
        """An API server that is away lets nobody in, and that is no guess; why is in the log, and not for everybody."""
        secret = Secret(TOKEN, bearer=True)

        async def scenario(ask: Asker, _: Board) -> None:
            session = await log_in(ask, TOKEN)
            secret.away = True
            with capture_logs() as logs:
                for answer in (
                    await ask("/api/v1/state", headers=bearer()),
                    await ask("/api/v1/state", headers=cookie(session)),
                    await ask("/", headers=cookie(session)),
                ):
                    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
                    assert "connection refused" not in answer.text
                assert is_busy(await log_in(ask, TOKEN))
            assert [(each["log_level"], each["error"]) for each in logs] == [("warning", "connection refused")]
            assert ask.series.refused._value.get() == 0
            secret.away = False
            with capture_logs() as logs:
                assert (await ask("/api/v1/state", headers=cookie(session))).status == 200
            assert [(each["log_level"], each["faults"]) for each in logs] == [("info", {"NoAnswerError": 4})]

        serve(scenario, door=guarded(secret))

    def test_when_one_of_several_cannot_tell(self) -> None:
        """The others still can: whoever has the password gets in while the API server is away."""
        away = Secret("x", bearer=True)
        away.away = True

        async def scenario(ask: Asker, _: Board) -> None:
            assert (await log_in(ask, PASSWORD)).headers["Location"] == "/"
            assert (await ask("/api/v1/state", headers=bearer())).status == 200
            assert is_busy(await log_in(ask, "wrong"))

        serve(scenario, door=guarded(away, Secret(PASSWORD), Secret(TOKEN, bearer=True)))

    def test_not_being_able_to_tell_is_slow(self) -> None:
        """Whoever sends tokens does not have us ask the API server at any rate."""
        secret = Secret(TOKEN, bearer=True)
        secret.away = True

        async def scenario(ask: Asker, _: Board) -> None:
            async with guessing(ask, secret):
                assert (await ask("/", headers=bearer("more"))).status == 429
                assert secret.asked == SUSPECTS_MAX

        serve(scenario, door=guarded(secret, slow=60.0))

    @pytest.mark.parametrize("body", [b"", b"password=", b"password=%ff%ed%a0%80", b"\xff", b"{}", b"a&b=%"])
    @pytest.mark.parametrize("charset", ["utf-8", "no-such-charset"])
    def test_forms_that_are_none(self, body: bytes, charset: str) -> None:
        """Rubbish is wrong like anything else."""

        async def scenario(ask: Asker, _: Board) -> None:
            headers = {"Content-Type": f"application/x-www-form-urlencoded; charset={charset}"}
            answer = await ask("/login", "POST", data=body, headers=headers)
            assert (answer.status, answer.headers["Location"]) == (303, "/login#wrong")

        serve(scenario, door=guarded())

    def test_forms_with_a_part_of_an_unknown_encoding(self) -> None:
        """A part whose encoding is unknown is wrong like anything else, and no error of the server."""

        async def scenario(ask: Asker, _: Board) -> None:
            part = b'Content-Disposition: form-data; name="password"\r\nContent-Transfer-Encoding: nonsense\r\n\r\nx'
            headers = {"Content-Type": "multipart/form-data; boundary=b"}
            answer = await ask("/login", "POST", data=b"--b\r\n" + part + b"\r\n--b--\r\n", headers=headers)
            assert (answer.status, answer.headers["Location"]) == (303, "/login#wrong")

        serve(scenario, door=guarded())

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_forms_with_a_content_coding(self, coding: str) -> None:
        """The form is refused unread: no checker is asked."""
        secret = Secret(PASSWORD)

        async def scenario(ask: Asker, _: Board) -> None:
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Content-Encoding": coding}
            answer = await ask("/login", "POST", data=f"password={PASSWORD}".encode(), headers=headers)
            assert answer.status == 415

        serve(scenario, door=guarded(secret))
        assert secret.asked == 0

    def test_white_space_around_what_is_typed(self) -> None:
        """It comes along when somebody copies a token, and is no part of it."""

        async def scenario(ask: Asker, _: Board) -> None:
            assert (await log_in(ask, f" {TOKEN}\n")).headers["Location"] == "/"

        serve(scenario, door=guarded())

    def test_somebody_who_goes_before_the_form_has_come(self, caplog: pytest.LogCaptureFixture) -> None:
        """That is no guess, and nothing for the log."""

        async def scenario(ask: Asker, _: Board) -> None:
            where = urlsplit(ask.server.url)
            _reader, writer = await asyncio.open_connection(where.hostname, where.port)
            head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            writer.write(f"{head}Content-Length: 100\r\n\r\npassword=".encode())
            await until(lambda: bool(ask.server._connections.open))
            writer.close()
            await writer.wait_closed()
            await until(lambda: not ask.server._connections.open)
            assert (await ask("/healthz")).status == 200
            assert ask.series.refused._value.get() == 0

        serve(scenario, door=guarded())
        assert not caplog.records

    def test_a_form_that_does_not_come(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever sends half of one does not hold a connection for ever."""
        monkeypatch.setattr(doors, "FORM", 0.05)

        async def scenario(ask: Asker, _: Board) -> None:
            where = urlsplit(ask.server.url)
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            writer.write(f"{head}Content-Length: 100\r\n\r\npassword=".encode())
            assert b" 408 " in await asyncio.wait_for(reader.readline(), 60)
            writer.close()
            await writer.wait_closed()

        serve(scenario, door=guarded())

    def test_a_form_that_is_too_large(self) -> None:
        """Nobody's memory is filled before they have shown who they are."""

        async def scenario(ask: Asker, _: Board) -> None:
            assert (await log_in(ask, "x" * 100_000)).status == 413

        serve(scenario, door=guarded())


class TestSecretFile:
    """A secret in a file."""

    def test_it_is_what_is_in_it(self, tmp_path: Path) -> None:
        """White space around it is not part of it."""
        file = tmp_path / "secret"
        file.write_text("  pässword\n")
        secret = SecretFile(file, bearer=False)
        for text, right in (
            ("pässword", True),
            ("password", False),
            ("", False),
            ("  pässword\n", False),
            ("\ud800", False),
        ):
            assert asyncio.run(secret.accepts(text)) is right

    def test_it_is_read_again(self, tmp_path: Path) -> None:
        """A new one is what counts, at once; one that was emptied lets nobody in, and what is gone cannot be told."""
        file = tmp_path / "secret"
        file.write_text("old")
        secret = SecretFile(file, bearer=True)
        file.write_text("newer")
        assert [asyncio.run(secret.accepts(text)) for text in ("old", "newer")] == [False, True]
        file.write_text("\n")
        assert [asyncio.run(secret.accepts(text)) for text in ("newer", "")] == [False, False]
        file.unlink()
        with pytest.raises(ConfigError):
            asyncio.run(secret.accepts("newer"))

    def test_the_output_of_a_command(self) -> None:
        """What a shell hands over as a pipe is read once, and stays."""
        ours, theirs = os.pipe()
        os.write(theirs, b"sesame\n")
        os.close(theirs)
        try:
            secret = SecretFile(Path(f"/dev/fd/{ours}"), bearer=True)
        finally:
            os.close(ours)
        assert [asyncio.run(secret.accepts(text)) for text in ("sesame", "sesame", "", "x")] == [
            True,
            True,
            False,
            False,
        ]

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        """They stand for nothing else: not for a question mark, either."""
        (tmp_path / "secret").write_text("what?")
        secret = SecretFile(tmp_path / "secret", bearer=True)
        assert [asyncio.run(secret.accepts(text)) for text in ("what?", "what\udcff", "what\ud800")] == [
            True,
            False,
            False,
        ]

    def test_one_that_nobody_could_type(self, tmp_path: Path) -> None:
        """It is told at the start."""
        (tmp_path / "secret").write_bytes(b"p\xe4ss")
        with pytest.raises(ConfigError, match="UTF-8"):
            SecretFile(tmp_path / "secret", bearer=False)

    @pytest.mark.parametrize("content", [None, "", " \n"])
    def test_one_that_is_of_no_use(self, tmp_path: Path, content: str | None) -> None:
        """It is told at the start, by the name of the file."""
        file = tmp_path / "secret"
        if content is not None:
            file.write_text(content)
        with pytest.raises(ConfigError, match="secret: "):
            SecretFile(file, bearer=True)
