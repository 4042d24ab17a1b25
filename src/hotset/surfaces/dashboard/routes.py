"""What the dashboard reads and does: one row for each, from which the routes and the published
OpenAPI description are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from hotset import __version__
from hotset.errors import BadInput, NotFound
from hotset.nouns.order import OrderAct
from hotset.runtime.orders import (
    KeptOrder,
    OrderQuote,
    PrefixPrice,
    list_orders,
    order_off,
    order_page,
    order_tool,
    quote_off,
    quote_page,
    read_orders,
    undo_order,
)
from hotset.runtime.reader import find_page
from hotset.runtime.views.project import ViewedProject
from hotset.runtime.views.window import (
    PageHistory,
    PageLine,
    SessionTimeline,
    TurnPoint,
    WindowView,
    read_page,
    read_page_lines,
    read_session_timeline,
    read_timeline,
    read_window,
)
from hotset.surfaces.dashboard.api_route import (
    ApiRoute,
    Download,
    Name,
    NoQuestion,
    Number,
    PageSize,
)
from hotset.surfaces.dashboard.routes_learning import ROUTES as LEARNING_ROUTES
from hotset.surfaces.dashboard.routes_parts import ROUTES as PART_ROUTES
from hotset.surfaces.dashboard.routes_sessions import ROUTES as SESSION_ROUTES
from hotset.typed import json_schemas


class TurnQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    session: Name
    turn: Number = 0
    """0 is the latest."""


class TurnsQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    session: Name
    first: Annotated[int, Meta(ge=1, le=2**31)] = 1
    limit: PageSize = 500


class TimelineQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    session: Name
    first: Annotated[int, Meta(ge=1, le=2**31)] = 1
    """From this turn on: what came since the last look."""


class PagesQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    ids: Annotated[str, Meta(max_length=2000)]
    """Separated by commas."""


class PriceQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    page: Name = ""
    """Of orders about this page; otherwise of switching the session off."""
    session: Name = "last"


class PageQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    page: Name
    turn: Number = 0
    """As it was then; 0 is the latest."""


class WindowAct(Struct, frozen=True, forbid_unknown_fields=True):
    """An order about a page, a tool or a session, or taking one back."""

    act: OrderAct | None = None
    """None takes the order back."""
    about: Name = ""
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class ActDone:
    orders: tuple[KeptOrder, ...]
    """The orders that hold now."""
    price: PrefixPrice | None
    """What it costs to do it at once; None where it costs nothing."""


def _window(project: ViewedProject, asked: TurnQuestion) -> WindowView:
    session = project.session(asked.session)
    orders = read_orders(project.store)
    view = read_window(project.store, project.config, session, asked.turn, orders)
    if view is None:
        raise NotFound(f"{session.id} has no turn {asked.turn or ''}".rstrip())
    return view


def _timeline(project: ViewedProject, asked: TurnsQuestion) -> tuple[TurnPoint, ...]:
    session = project.session(asked.session)
    return read_timeline(project.store, project.config, session.id, asked.first, asked.limit)


def _session_timeline(project: ViewedProject, asked: TimelineQuestion) -> SessionTimeline:
    session = project.session(asked.session)
    return read_session_timeline(project.store, project.config, session.id, asked.first)


def _price(project: ViewedProject, asked: PriceQuestion) -> tuple[OrderQuote, ...]:
    if asked.page:
        page = find_page(project.store, asked.page)
        return quote_page(project.store, project.config, page)
    return (quote_off(project.store, project.config, project.session(asked.session)),)


def _page(project: ViewedProject, asked: PageQuestion) -> PageHistory:
    page = find_page(project.store, asked.page)
    orders = read_orders(project.store)
    return read_page(project.store, project.config, page, orders, asked.turn)


def _page_lines(project: ViewedProject, asked: PagesQuestion) -> tuple[PageLine, ...]:
    return read_page_lines(project.store, asked.ids.split(","))


def _orders(project: ViewedProject, _: NoQuestion) -> tuple[KeptOrder, ...]:
    return list_orders(project.store)


def _act(project: ViewedProject, asked: WindowAct) -> ActDone:
    store, config, now = project.store, project.config, project.clock()
    price: PrefixPrice | None = None
    if not asked.about:
        raise BadInput("say what it is about: a page, a tool or a session")
    match asked.act:
        case None:
            undo_order(store, asked.about, now)
        case OrderAct.WHOLE:
            order_tool(store, asked.about, now)
        case OrderAct.OFF:
            session = project.session(asked.about)
            price = order_off(store, config, session, at_once=asked.at_once, now=now)
        case act:
            page = find_page(store, asked.about)
            price = order_page(store, config, page, act, at_once=asked.at_once, now=now)
    return ActDone(list_orders(store), price)


API_ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute(
        "sessions/{session}/window",
        "One turn's window, piece by piece.",
        TurnQuestion,
        WindowView,
        _window,
    ),
    ApiRoute(
        "sessions/{session}/turns",
        "A session's turns as a timeline.",
        TurnsQuestion,
        tuple[TurnPoint, ...],
        _timeline,
    ),
    ApiRoute(
        "sessions/{session}/timeline",
        "All turns of a session in short, or those from one on.",
        TimelineQuestion,
        SessionTimeline,
        _session_timeline,
    ),
    ApiRoute(
        "price",
        "What orders about a page, or switching a session off, would cost.",
        PriceQuestion,
        tuple[OrderQuote, ...],
        _price,
    ),
    ApiRoute("pages/{page}", "One page, with what became of it.", PageQuestion, PageHistory, _page),
    ApiRoute(
        "pages", "Some pages, a line for each.", PagesQuestion, tuple[PageLine, ...], _page_lines
    ),
    ApiRoute("orders", "What a person ordered.", NoQuestion, tuple[KeptOrder, ...], _orders),
    ApiRoute("act", "Order something, or take it back.", WindowAct, ActDone, _act, acts=True),
    *PART_ROUTES,
    *LEARNING_ROUTES,
    *SESSION_ROUTES,
)


def openapi(routes: Sequence[ApiRoute] = API_ROUTES) -> dict[str, Any]:
    """The OpenAPI description of the dashboard's API."""
    kinds = [
        kind for each in routes for kind in (each.question, each.answer) if kind is not Download
    ]
    _, components = json_schemas(kinds, "#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for each in routes:
        fields = components[each.question.__name__]
        ok = {"description": each.summary, "content": _content(each.answer)}
        operation: dict[str, Any] = {
            "summary": each.summary,
            "operationId": each.path.replace("/", "_").translate({123: None, 125: None}),
            "responses": {"200": ok, **_REFUSALS},
        }
        if each.acts:
            body = {"$ref": f"#/components/schemas/{each.question.__name__}"}
            content = {"application/json": {"schema": body}}
            operation["requestBody"] = {"required": True, "content": content}
        else:
            operation["parameters"] = list(_parameters(each.path, fields))
        paths[f"/{each.path}"] = {"post" if each.acts else "get": operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "hotset dashboard", "version": __version__},
        "servers": [{"url": "/hotset/api"}],
        "paths": paths,
        "components": {"schemas": {**components, "Refusal": _REFUSAL}},
    }


def _content(answer: Any) -> dict[str, Any]:
    if answer is Download:
        return {"application/x-ndjson": {"schema": {"type": "string"}}}
    (schema,), _ = json_schemas([answer], "#/components/schemas/{name}")
    return {"application/json": {"schema": schema}}


_REFUSAL = {
    "type": "object",
    "properties": {"error": {"type": ["string", "object"]}},
    "required": ["error"],
}
_REFUSED = {
    "description": "What is wrong, and what to do.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
}
_REFUSALS: Mapping[str, Any] = dict.fromkeys(
    ("400", "401", "403", "404", "405", "413", "414", "415", "421", "431", "503"), _REFUSED
)


def _parameters(path: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path" if f"{{{name}}}" in path else "query",
            "required": f"{{{name}}}" in path or name in fields.get("required", ()),
            "schema": schema,
        }
        for name, schema in fields.get("properties", {}).items()
    ]
