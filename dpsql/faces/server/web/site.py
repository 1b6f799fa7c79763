"""What both consoles share: who is asking, the pages of the login, and forms that bring their token back.

*Claim.* A page shows what its session's login may know, and only a form of that session changes anything. *Why.* A page
begins with `visit`, which finds the session by its cookie or sends to the login; every question goes through an `Asker`
of that session; a POST brings back the session's own token. *When it would be false.* If a handler took a name from
its request. *Tested by* tests/faces/server/web/test_console.py.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.pages_loader import load_page
from dpsql.faces.server.databases import Databases, NoDatabase
from dpsql.faces.server.front.client_link import Gone
from dpsql.faces.server.front.listen import ConnectionLimits
from dpsql.faces.server.front.login import Door
from dpsql.faces.server.statements import Login, Refused
from dpsql.faces.server.web.api.problems import problem
from dpsql.faces.server.web.entrance import Busy, Entrance
from dpsql.faces.server.web.guard import OF_PROGRAMS
from dpsql.faces.server.web.oidc import SECONDS, Unreachable, Vouching
from dpsql.faces.server.web.pages import login, reference
from dpsql.faces.server.web.pages import page_frame as layout
from dpsql.faces.server.web.pages.page_frame import PageFrame
from dpsql.faces.server.web.session_asking import Asker
from dpsql.faces.server.web.sessions import Sessions, WebSession

_BACK: Final = "/login/back"
_TRY: Final = "-try"
_UNREACHABLE: Final = "The identity provider does not answer. Try again, or sign in with your password."
_CACHED: Final = {"cache-control": "max-age=3600"}


@dataclass(frozen=True, slots=True)
class House:
    """What is behind the doors."""

    door: Door
    databases: Databases
    limits: ConnectionLimits

    def policy(self, session: WebSession) -> Policy:
        """Of the database that a session is in."""
        return self.databases.of(session.login).policy

    def asker(self, session: WebSession) -> Asker:
        """Who asks for a session."""
        return Asker(session, self.databases, self.door.recording, self.policy(session).defaults.epsilon is not None)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of somebody who has logged in. form: fields of a POST, whose token was right."""

    request: Request
    session: WebSession
    asker: Asker
    frame: PageFrame
    form: Mapping[str, str]


Page = Callable[[Visit], Awaitable[bytes | Response]]


class Site:
    """The console of one role."""

    def __init__(self, house: House, role: str) -> None:
        self.house, self.role = house, role
        self.secure = house.door.tls is not None
        self.sessions = Sessions(house.door.recording, house.limits.of_one_user)
        self.entrance = Entrance(house.door, house.databases, role, self.sessions, house.limits)
        self._cookie = f"{'__Host-' if self.secure else ''}dpsql-{role}"  # two listeners of one host share cookies
        provider = house.door.users.provider
        self._vouching = None if provider is None else Vouching(provider, _BACK)
        self._files = {
            name: (resources.files("dpsql.faces.server.web") / "files" / name).read_bytes()
            for name in ("style.css", "icon.svg")
        }

    def app(self) -> Starlette:
        """What is served."""
        own = [
            Route("/login", self._login, methods=["GET", "POST"]),
            *([Route(login.BY_PROVIDER, self._away), Route(_BACK, self._back)] if self._vouching else []),
            Route("/logout", self._visited(self._logout), methods=["POST"]),
            Route("/database", self._visited(self._change), methods=["POST"]),
            Route("/style.css", self._file("style.css", "text/css")),
            Route("/icon.svg", self._file("icon.svg", "image/svg+xml")),
            Route("/codes/{code}", self._visited(self._code)),
        ]
        pages = [Route(path, self._visited(page), methods=list(methods)) for path, methods, page in self.pages()]
        app = Starlette(
            routes=[*own, *pages, *self.others()],
            exception_handlers={HTTPException: self._missing, Exception: self._failed},
        )
        app.router.redirect_slashes = False
        return app

    def pages(self) -> list[tuple[str, tuple[str, ...], Page]]:
        """Path, methods and page of each, all behind the login."""
        return []

    def others(self) -> list[Route]:
        """Routes that look themselves at who is asking."""
        return []

    # --- who is asking -----------------------------------------------------------------------------------------------

    def _visited(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            session = self.sessions.find(request.cookies.get(self._cookie, ""), "console")
            if session is None:
                return RedirectResponse("/login", 303)
            form: Mapping[str, str] = {}
            if request.method == "POST":
                form = await fields(request)
                if not hmac.compare_digest(form.get("token", "").encode(), session.form_token.encode()):
                    return self.message(
                        "Not taken",
                        "This form is not of your session, or of another database. Go back, and load its page anew.",
                        403,
                    )
            asker, who = self.house.asker(session), session.login
            frame = PageFrame(
                who.database, self.role, who.name, session.form_token, request.url.path, who.databases,
                self.house.databases.of(who).made_up,
            )  # fmt: skip
            try:
                found = await page(Visit(request, session, asker, frame, form))
            except Refused as refused:
                found = layout.document(frame, "Refused", layout.refusal(refused.diagnostics))
            except Gone:
                return Response(status_code=204)
            return found if isinstance(found, Response) else html(found)

        return handle

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return self._asks()
        form = await fields(request)
        try:
            who = await self.entrance.by_password(
                form.get("name", ""), form.get("password", ""), address_of(request), first=True
            )
        except Busy:
            return self._asks("Too many are signing in. Try again in a minute.", 503)
        if who is None:
            return self._asks("Name or password is wrong.", 403)
        return self._let_in(request, who, RedirectResponse("/", 303))

    def _asks(self, message: str = "", status: int = 200) -> Response:
        return html(login.login(self.role, message, self._vouching is not None), status)

    def _let_in(self, request: Request, who: Login, response: Response) -> Response:
        old = self.sessions.find(request.cookies.get(self._cookie, ""), "console")
        if old is not None:
            self.sessions.end(old)
        token, _ = self.sessions.begin(who, "console")
        response.set_cookie(self._cookie, token, path="/", secure=self.secure, httponly=True, samesite="strict")
        return response

    async def _away(self, request: Request) -> Response:
        """To the identity provider. Its cookie comes back with the browser, which another site sends here then."""
        assert self._vouching is not None
        try:
            place, mark = await self._vouching.begun(self._origin(request))
        except Unreachable:
            return self._asks(_UNREACHABLE, 503)
        response = RedirectResponse(place, 303)
        response.set_cookie(self._cookie + _TRY, mark, SECONDS, path="/", secure=self.secure, httponly=True,
                            samesite="lax")  # fmt: skip
        return response

    async def _back(self, request: Request) -> Response:
        """From there. The session's cookie is sent by pages of this site alone, so that one of them leads on."""
        assert self._vouching is not None
        given, mark = dict(request.query_params), request.cookies.get(self._cookie + _TRY, "")
        try:
            asked = partial(self._vouching.subject, given, mark, self._origin(request))
            who = await self.entrance.by_provider(asked, address_of(request))
        except Busy:
            return self._asks("Too many are signing in. Try again in a minute.", 503)
        except Unreachable:
            return self._asks(_UNREACHABLE, 503)
        if who is None:
            response = self._asks("You were not vouched for, or are not among the users of this server.", 403)
        else:
            response = self._let_in(request, who, html(login.welcome(self.role)))
            response.headers["refresh"] = "0;url=/"
        response.delete_cookie(self._cookie + _TRY, path="/", secure=self.secure, httponly=True, samesite="lax")
        return response

    def _origin(self, request: Request) -> str:
        return f"http{'s' * self.secure}://{request.headers['host']}"

    async def _change(self, visit: Visit) -> Response:
        try:
            visit.session.enter(self.house.databases.entered(visit.session.login, visit.form.get("database", "")))
        except NoDatabase:
            return self.message("Not there", "There is no such database for you.", 404)
        return RedirectResponse("/", 303)

    async def _logout(self, visit: Visit) -> Response:
        self.sessions.end(visit.session)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(self._cookie, path="/", secure=self.secure, httponly=True, samesite="strict")
        return response

    # --- what is the same for both -----------------------------------------------------------------------------------

    async def _code(self, visit: Visit) -> bytes | Response:
        try:
            name = visit.request.path_params["code"]
            return reference.code(visit.frame, name.upper(), load_page(name))
        except Error:
            return self.message("Not there", "There is no such code.", 404)

    def _file(self, name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            return Response(self._files[name], media_type=kind, headers=_CACHED)

        return handle

    async def _missing(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if request.url.path.startswith(OF_PROGRAMS):
            headers = error.headers if isinstance(error, HTTPException) else None
            return problem(status, "there is nothing at this address, or this is not done to it", headers=headers)
        if status == 404:
            return self.message("Not there", "There is nothing at this address.", status)
        return self.message("Not understood", "This is not done here, or not in this form.", status)

    async def _failed(self, request: Request, error: Exception) -> Response:
        """Of anything unforeseen, whose own words could tell values of single rows, nothing is said."""
        if request.url.path.startswith(OF_PROGRAMS):
            return problem(500, _FAILED.message, [_FAILED])
        return self.message("Failed", "dpsql itself failed; what was charged by then stays charged.", 500)

    def message(self, title: str, text: str, status: int) -> Response:
        """A page that says one thing."""
        return html(login.message(self.role, title, text), status)


_FAILED: Final = Diagnostic(
    "DP904",
    "dpsql itself failed; what was charged by then stays charged",
    help=("tell the custodian when this happened",),
    notes=("what was charged stays charged",),
)


def html(page: bytes, status: int = 200) -> Response:
    """A response that is a page."""
    return Response(page, status, media_type="text/html; charset=utf-8")


def address_of(request: Request) -> str:
    """From where a request came: an IP address. Of no header but a declared proxy's (`guard.py`)."""
    return "" if request.client is None else request.client.host


async def fields(request: Request) -> Mapping[str, str]:
    """The fields of a form, each once, with line ends as they were typed. Raises HTTPException 400, 415."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    try:
        text = (await request.body()).decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=20)
    except ValueError:
        raise HTTPException(400) from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise HTTPException(400)
    return {name: value.replace("\r\n", "\n") for name, value in found.items()}
