"""The API's addresses. Each answers as the wire would: the same account, ceilings, moments and lines in the log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpsql.faces.server.databases import NoDatabase
from dpsql.faces.server.front.client_link import Gone
from dpsql.faces.server.statements import Refused
from dpsql.faces.server.web.api import bodies, problems
from dpsql.faces.server.web.api import openapi as document
from dpsql.faces.server.web.api import responses as answers
from dpsql.faces.server.web.entrance import Busy, Entrance
from dpsql.faces.server.web.session_asking import Asker, WaitingClient
from dpsql.faces.server.web.sessions import IDLE, LONGEST, Sessions, WebSession
from dpsql.faces.server.web.site import House, address_of

ROOT: Final = "/api/v1"
_ASK: Final = {"www-authenticate": 'Basic realm="dpsql", charset="UTF-8"'}
Answered = Callable[[Request, Asker, WebSession], Awaitable[Response]]


def known(house: House, entrance: Entrance, answer: Answered) -> Callable[[Request], Awaitable[Response]]:
    """An address of programs, behind its `Authorization`: whoever is not known is told how to be."""

    async def handle(request: Request) -> Response:
        try:
            session = await entrance.by_authorization(
                request.headers.get("authorization", ""), address_of(request), request.query_params.get("database", "")
            )
            if session is None:
                return problems.problem(401, "name and password are needed, or the token of a session", headers=_ASK)
            return await answer(request, house.asker(session), session)
        except Busy:
            return problems.problem(503, "too many are logging in", headers={"retry-after": "60"})
        except NoDatabase as wrong:
            his = ", ".join(wrong.known)
            what = "there is no such database for you" if wrong.database else "you have several databases"
            return problems.problem(404 if wrong.database else 400, f"{what}: ?database=…, one of {his}")
        except bodies.MalformedBody as error:
            return problems.problem(400, f"the body is not understood: {error}")
        except Refused as refused:
            return problems.refusal(refused)
        except Gone:
            return Response(status_code=204)

    return handle


class Api:
    """For analysts' programs."""

    def __init__(self, house: House, sessions: Sessions, entrance: Entrance) -> None:
        self._house, self._sessions, self._entrance = house, sessions, entrance
        self._document = json.dumps(document.document()).encode()

    def routes(self) -> list[Route]:
        """All of them."""
        asked = {
            "query": (self._query, "POST"), "explain": (self._explain, "POST"), "cost": (self._cost, "POST"),
            "batch/cost": (self._batch, "POST"), "budget": (self._budget, "GET"), "tables": (self._tables, "GET"),
        }  # fmt: skip
        return [
            Route(f"{ROOT}/openapi.json", self._described),
            Route(f"{ROOT}/session", self._session, methods=["POST", "DELETE"]),
            *(
                Route(f"{ROOT}/{name}", known(self._house, self._entrance, answer), methods=[method])
                for name, (answer, method) in asked.items()
            ),
        ]

    # --- who is asking -----------------------------------------------------------------------------------------------

    async def _session(self, request: Request) -> Response:
        answer = self._end if request.method == "DELETE" else self._begin
        return await known(self._house, self._entrance, answer)(request)

    async def _begin(self, request: Request, asker: Asker, session: WebSession) -> Response:
        if not request.headers.get("authorization", "").lower().startswith("basic "):
            return problems.problem(403, "a token is given for name and password, and not for another token")
        token, own = self._sessions.begin(session.login, "API")
        return answered(
            {"token": token, "database": own.login.database, "idle_seconds": int(IDLE), "seconds": int(LONGEST)}
        )

    async def _end(self, request: Request, asker: Asker, session: WebSession) -> Response:
        self._sessions.end(session)
        return Response(status_code=204)

    # --- what is asked -----------------------------------------------------------------------------------------------

    async def _described(self, request: Request) -> Response:
        return Response(self._document, media_type="application/json")

    async def _query(self, request: Request, asker: Asker, session: WebSession) -> Response:
        given = await answers.query(asker, await _read(request, bodies.Question), WaitingClient(request.receive))
        return await asyncio.to_thread(lambda: answered(answers.given(given)))  # many rows: others have their turn

    async def _explain(self, request: Request, asker: Asker, session: WebSession) -> Response:
        return answered(await answers.explain(asker, await _read(request, bodies.Question)))

    async def _cost(self, request: Request, asker: Asker, session: WebSession) -> Response:
        return answered(await answers.cost(asker, await _read(request, bodies.Question)))

    async def _batch(self, request: Request, asker: Asker, session: WebSession) -> Response:
        return answered(await answers.batch(asker, await _read(request, bodies.Questions)))

    async def _budget(self, request: Request, asker: Asker, session: WebSession) -> Response:
        return answered(await answers.budget(asker, session.login))

    async def _tables(self, request: Request, asker: Asker, session: WebSession) -> Response:
        return answered(answers.tables(self._house.policy(session)))


async def _read(request: Request, kind: Any) -> Any:
    return bodies.read(await body_of(request), kind)


async def body_of(request: Request) -> bytes:
    """A body that says it is JSON. Raises Malformed."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise bodies.MalformedBody("its content type is not application/json")
    return await request.body()


def answered(data: Any) -> Response:
    """A response that is JSON."""
    return Response(json.dumps(data, ensure_ascii=True, allow_nan=False), media_type="application/json")
