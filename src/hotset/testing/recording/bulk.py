"""The session's bulk output, made from a seed: logs, API rows, tables. The same seed gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

from hotset.testing.recording.build_log import failing_build, passing_build
from hotset.testing.recording.seeded import seeded

MIDNIGHT = datetime(2026, 11, 10, tzinfo=UTC).timestamp()
SLOW_DELIVERY = "dlv_7c1e0a94b2d84f6ea310"
SLOW_ENDPOINT = "ep_4be1c07d99a2f310"
STUCK_DELIVERY = "dlv_e2f0963d51ab4c7f8812"
STUCK_ENDPOINT = "ep_91d2f6c0a7be4455"
LEASE = 30.0
NEW_YORK = 5 * 3600.0  # how far local time is behind UTC in November: what the second bug adds to every date

_COMPANIES = [
    "lindqvist-freight",
    "alderbrook",
    "tessera-labs",
    "harbourlight",
    "nuthatch-books",
    "ostrava-tools",
    "pinecrest-dental",
    "quillfeather",
    "rookwood",
    "saltmarsh-foods",
    "thornbury",
    "umberto-cycles",
    "vantongeren",
    "windrose",
    "yarrow-health",
    "zephyrine",
    "bellweather",
    "copperfield-music",
    "dunmore",
    "elmhurst-print",
    "fenwick-optics",
    "galloway-seeds",
    "hollins-rail",
    "ironbridge",
    "juniper-row",
    "kestrel-air",
    "larkspur",
    "moorgate",
    "northfold",
    "oakhanger",
    "pembury-glass",
    "quarrystone",
    "ridgeway-paper",
    "stanmore",
    "tolworth",
    "underhill",
]
_TOPICS = ("order.paid", "order.shipped", "order.refunded", "invoice.created", "customer.updated", "stock.low")


def endpoints() -> list[dict[str, Any]]:
    """The customers' endpoints. Every sixth asks for a long timeout; the two that the story names are among them."""
    rng = seeded("endpoints")
    made = []
    for place, company in enumerate(_COMPANIES):
        id = {0: SLOW_ENDPOINT, 7: STUCK_ENDPOINT}.get(place, f"ep_{rng.randbytes(8).hex()}")
        made.append(
            {
                "id": id,
                "url": f"https://hooks.{company}.example/ferrypost/{rng.choice(['in', 'events', 'v2', 'webhook'])}",
                "topics": rng.choice([["*"], ["order.*"], ["order.*", "invoice.created"], ["stock.low", "customer.updated"]]),
                "enabled": rng.random() > 0.05,
                "timeout_seconds": rng.choice([60.0, 90.0, 120.0]) if place % 6 == 0 else rng.choice([5.0, 10.0, 10.0, 20.0]),
                "headers": {"x-tenant": company, "authorization": f"Bearer {rng.randbytes(6).hex()}..."}
                if place % 3 == 0
                else {},
            }
        )
    made[0]["timeout_seconds"] = 90.0
    return made


def attempt_log() -> str:
    """Three hours of `attempt` lines from twelve workers, with what the first bug does to slow endpoints."""
    return "\n".join(json.dumps(line) for line in sorted(_attempts(seeded("log"), 170), key=lambda line: line["ts"]))


def repeated_deliveries() -> str:
    """The log grouped by delivery, as a one-liner of the agent prints it."""
    rows = [f"{'delivery':<26} {'sent':>4}  {'endpoint':<20} {'timeout':>7}  times and workers"]
    sent: dict[str, list[dict[str, Any]]] = {}
    for line in _attempts(seeded("log"), 900):
        if line["outcome"] == "delivered":
            sent.setdefault(line["delivery"], []).append(line)
    timeouts = {endpoint["id"]: endpoint["timeout_seconds"] for endpoint in endpoints()}
    repeated = {id: lines for id, lines in sent.items() if len(lines) > 1}
    for id, lines in sorted(repeated.items(), key=lambda item: item[1][0]["ts"]):
        when = "  ".join(f"{_clock(line['ts'] - line['elapsed'])}+{line['elapsed']:.1f}s by {line['worker']}" for line in lines)
        rows.append(f"{id:<26} {len(lines):>4}  {lines[0]['endpoint']:<20} {timeouts[lines[0]['endpoint']]:>7g}  {when}")
    return "\n".join([*rows, f"{len(repeated)} of {len(sent)} delivered deliveries were delivered more than once"])


def endpoint_page() -> str:
    return json.dumps({"data": endpoints()}, indent=2)


def retrying_page() -> str:
    """What the API says is waiting for its next attempt: most for seconds, those with a dated Retry-After for hours."""
    return json.dumps({"data": list(_retrying(seeded("retrying"), 150))}, indent=2)


def stuck_delivery() -> str:
    """The one delivery that the agent looks at closely: asked to wait half a minute, it waited five hours, twice."""
    tries = ((88211, _FIRST_TRY, 0.212), (88967, _FIRST_TRY + NEW_YORK + _ASKED, 0.194))
    made = [
        {
            "id": id,
            "delivery_id": STUCK_DELIVERY,
            "at": at,
            "status": 503,
            "outcome": "error",
            "elapsed": elapsed,
            "error": f"maintenance, back at {_http_date(at + _ASKED)}",
        }
        for id, at, elapsed in tries
    ]
    return json.dumps({**_stuck_row(), "attempts_made": made}, indent=2)


def metrics_page() -> str:
    rng = seeded("metrics")
    lines = ["# TYPE ferrypost_attempts_total counter"]
    lines += [f'ferrypost_attempts_total{{outcome="{name}"}} {count}' for name, count in _OUTCOMES]
    lines.append("# TYPE ferrypost_attempt_seconds histogram")
    running = 0
    for edge in ("0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "120", "+Inf"):
        running += rng.randrange(0, 40000) // (3 if edge in ("30", "60", "120", "+Inf") else 1)
        lines.append(f'ferrypost_attempt_seconds_bucket{{le="{edge}"}} {running}')
    lines.append("# TYPE ferrypost_events_accepted_total counter")
    lines += [f'ferrypost_events_accepted_total{{topic="{topic}"}} {rng.randrange(800, 22000)}' for topic in _TOPICS]
    return "\n".join(lines)


def rescheduled_rows() -> str:
    """What the repair script would move: every delivery whose next attempt is hours later than the endpoint asked for."""
    rng = seeded("repair")
    known = [endpoint["id"] for endpoint in endpoints()]
    rows = [f"{'delivery':<26} {'endpoint':<20} {'last try':<9} {'asked for':>9} {'scheduled':>10} {'would move to':>14}"]
    for _ in range(118):
        last, asked = MIDNIGHT + rng.uniform(3, 11) * 3600, rng.choice([15, 30, 30, 60, 120])
        id = f"dlv_{rng.randbytes(10).hex()}"
        rows.append(
            f"{id:<26} {STUCK_ENDPOINT if rng.random() < 0.4 else rng.choice(known):<20} {_clock(last):<9} {asked:>8}s"
            f" {NEW_YORK + asked:>9g}s {_clock(last + asked):>14}"
        )
    return "\n".join([*rows, "118 deliveries would be moved (dry run, nothing was written)"])


BULK: Mapping[str, Callable[[], str]] = {
    "attempt-log": attempt_log,
    "repeated-deliveries": repeated_deliveries,
    "endpoints": endpoint_page,
    "retrying": retrying_page,
    "stuck-delivery": stuck_delivery,
    "metrics": metrics_page,
    "repair": rescheduled_rows,
    "build-failing": failing_build,
    "build-passing": passing_build,
}

_OUTCOMES = (("delivered", 214_387), ("error", 9_122), ("refused", 41), ("timeout", 1_873))


_FIRST_TRY = MIDNIGHT + 9 * 3600 + 412.118
_ASKED = 30.0


def _stuck_row() -> dict[str, Any]:
    return {
        "id": STUCK_DELIVERY,
        "event_id": "evt_b71c3e5098d24aa6b7f1",
        "endpoint_id": STUCK_ENDPOINT,
        "state": "retrying",
        "attempts": 2,
        "next_attempt_at": round(_FIRST_TRY + 2 * (NEW_YORK + _ASKED), 3),
        "lease_until": None,
        "worker": None,
        "last_error": f"maintenance, back at {_http_date(_FIRST_TRY + NEW_YORK + 2 * _ASKED)}",
    }


def _attempts(rng: Random, events: int) -> Iterator[dict[str, Any]]:
    known = [endpoint for endpoint in endpoints() if endpoint["enabled"]]
    for number in range(events):
        endpoint = known[0] if number == 40 else rng.choice(known)
        slow = endpoint["timeout_seconds"] >= 60 and (number == 40 or rng.random() < 0.35)
        elapsed = rng.uniform(31, min(58, endpoint["timeout_seconds"] - 2)) if slow else rng.lognormvariate(-1.2, 0.7)
        started = MIDNIGHT + 2 * 3600 + number * 12.0 + rng.random()
        line = _attempt(rng, endpoint, SLOW_DELIVERY if number == 40 else f"dlv_{rng.randbytes(10).hex()}", started, elapsed)
        if rng.random() < 0.06 and not slow:
            yield {**line, "status": 503, "outcome": "error", "retry_after": NEW_YORK + 30 if rng.random() < 0.5 else None}
            continue
        yield line
        if slow:  # the lease ended while the first worker was still waiting, so a second one sent it again
            again = _attempt(rng, endpoint, line["delivery"], started + LEASE + rng.random() / 2, rng.uniform(8, elapsed))
            yield {**again, "event": line["event"]}


def _attempt(rng: Random, endpoint: Mapping[str, Any], delivery: str, started: float, elapsed: float) -> dict[str, Any]:
    return {
        "ts": round(started + elapsed, 3),
        "level": "INFO",
        "logger": "ferrypost.worker",
        "msg": "attempt",
        "worker": f"relay-2:{4117 + rng.randrange(3)}:{rng.randrange(4)}",
        "delivery": delivery,
        "event": f"evt_{rng.randbytes(10).hex()}",
        "endpoint": endpoint["id"],
        "attempt": 1,
        "status": 200,
        "outcome": "delivered",
        "elapsed": round(elapsed, 3),
        "retry_after": None,
    }


def _retrying(rng: Random, rows: int) -> Iterator[dict[str, Any]]:
    known = endpoints()
    yield _stuck_row()
    for _ in range(rows):
        dated = rng.random() < 0.45
        attempts = rng.randrange(1, 5)
        wait = NEW_YORK + rng.choice([15, 30, 60, 120]) if dated else 5.0 * 2 ** (attempts - 1) * rng.uniform(0.8, 1.2)
        last = MIDNIGHT + 15.5 * 3600 - rng.uniform(0, wait)
        yield {
            "id": f"dlv_{rng.randbytes(10).hex()}",
            "event_id": f"evt_{rng.randbytes(10).hex()}",
            "endpoint_id": rng.choice(known)["id"],
            "state": "retrying",
            "attempts": attempts,
            "next_attempt_at": round(last + wait, 3),
            "lease_until": None,
            "worker": None,
            "last_error": f"maintenance, back at {_http_date(last + wait - NEW_YORK)}" if dated else rng.choice(_ERRORS),
        }


_ERRORS = (
    "timeout",
    "ConnectError: [Errno 111] Connection refused",
    "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>",
    '{"error":"internal","trace":"a41f"}',
    "RemoteProtocolError: Server disconnected without sending a response.",
)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def _http_date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
