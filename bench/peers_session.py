"""A coding session to compare proxies with: 30 calls, about 180,000 tokens of tool output of every
kind, 34 planted facts.

Everything is made from one seed, so every method sees the same bytes. Each fact is a value that
stands in one result, between a third and two thirds of it, where keeping the head and the tail
loses it. Some stand out from their surroundings (an error, a failing test, a deviating row); most
stand in a line like any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

MODEL = "claude-sonnet-5"
SYSTEM = """You are a careful engineer. You work in the repository below with the tools that you have.
<env>
Working directory: /srv/orders
Is directory a git repo: Yes
Platform: linux
</env>
"""  # noqa: E501
QUESTION = "Orders are charged twice since the last release. Find out why, and prepare a fix."
_SEED = "orders are charged twice"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that stands in the output once and may be wanted later."""

    kind: str
    step: int
    """The number of the call whose result holds it."""
    question: str
    value: str


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model and what its call brings."""

    text: str
    tool: str
    arguments: dict[str, str]
    result: str


@dataclass(frozen=True, slots=True)
class Session:
    steps: tuple[Step, ...]
    facts: tuple[Fact, ...]

    @property
    def size(self) -> int:
        """Bytes of tool output."""
        return sum(len(step.result.encode()) for step in self.steps)


TOOLS: tuple[dict[str, Any], ...] = tuple(
    {
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": {field: {"type": "string"}},
            "required": [field],
        },
    }
    for name, field, description in (
        ("Bash", "command", "Run a command in the repository and give back what it prints."),
        ("Read", "file_path", "Read a file of the repository, with line numbers."),
        ("Grep", "pattern", "Search the repository's files for a regular expression."),
        ("WebFetch", "url", "Fetch a page and give back its text."),
        ("query_api", "path", "Ask the orders service's own HTTP API."),
    )
)


def session() -> Session:
    rng = Random(_SEED)
    steps: list[Step] = []
    facts: list[Fact] = []
    for number, (kind, count, tool, argument, make) in enumerate(_CALLS):
        planted = [_value(rng, kind) for _ in range(count)]
        result, questions = make(rng, planted, len(steps))
        field = next(
            iter(next(each for each in TOOLS if each["name"] == tool)["input_schema"]["properties"])
        )
        steps.append(
            Step(f"Step {number + 1}: I look at the {kind} next.", tool, {field: argument}, result)
        )
        facts += [
            Fact(kind, number, f"{asked} ({argument})", value)
            for asked, value in zip(questions, planted, strict=True)
        ]
    _reread(steps)
    return Session(tuple(steps), tuple(facts))


def _reread(steps: list[Step]) -> None:
    """Agents read again what they know: once a file that is as it was, once one in which a line has
    changed."""
    reads = [number for number, step in enumerate(steps) if step.tool == "Read"]
    first, second, *_, again, changed = reads
    steps[again] = Step(steps[again].text, "Read", steps[first].arguments, steps[first].result)
    lines = steps[second].result.split("\n")
    lines[40] += "  # checked"
    steps[changed] = Step(steps[changed].text, "Read", steps[second].arguments, "\n".join(lines))


Made = tuple[str, list[str]]
"""A result, and for each planted value the question that it answers."""

Make = Callable[[Random, list[str], int], Made]
"""Makes a result of one kind. The number of its call decides whether its first value stands out or
not."""


def _value(rng: Random, kind: str) -> str:
    """Ids and settings as they look in the field; distinct enough to be found by eye and by
    search."""
    shapes: dict[str, Callable[[], str]] = {
        "JSON": lambda: f"ord_{rng.randbytes(6).hex()}",
        "log": lambda: f"lease-{rng.randrange(10**5, 10**6)}",
        "code": lambda: f"{rng.randrange(10**6, 10**7)}",
        "search": lambda: f"retry_after_{rng.randrange(10**4, 10**5)}",
        "tests": lambda: f"{rng.randrange(10**3, 10**4)}.{rng.randrange(100, 999)}",
        "diff": lambda: f"max_inflight={rng.randrange(10**4, 10**5)}",
        "prose": lambda: f"{rng.randrange(1000, 9999)}-{rng.randrange(1000, 9999)}",
        "table": lambda: f"SKU-{rng.randbytes(4).hex().upper()}",
    }
    return shapes[kind]()


_VERBS = (
    "reserve",
    "charge",
    "refund",
    "release",
    "settle",
    "capture",
    "void",
    "audit",
    "retry",
    "merge",
    "split",
    "route",
    "index",
    "notify",
    "archive",
)
_NOUNS = (
    "order",
    "invoice",
    "ledger",
    "basket",
    "shipment",
    "customer",
    "coupon",
    "payment",
    "batch",
    "cursor",
    "lease",
    "ticket",
    "region",
    "quota",
)
_PLACES = (
    "checkout",
    "billing",
    "gateway",
    "worker",
    "scheduler",
    "storage",
    "webhooks",
    "reporting",
    "inventory",
    "sessions",
)


def _two(rng: Random) -> str:
    return f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}"


def _planted(lines: Sequence[str], extra: Sequence[str]) -> list[str]:
    """`extra` among `lines`, each at its own place between a third and two thirds."""
    made = list(lines)
    for number, line in reversed(list(enumerate(extra))):
        made.insert(int(len(lines) * (0.34 + 0.32 * (number + 0.5) / len(extra))), line)
    return made


def _json(rng: Random, planted: list[str], call: int) -> Made:
    """Rows of an API: at even calls the first value is a row that failed, the others are ids of
    rows like any other."""
    rows = [_row(rng, f"ord_{rng.randbytes(6).hex()}") for _ in range(95)]
    questions = []
    for number, value in enumerate(planted):
        row = _row(rng, value)
        if number == call % 2:
            row |= {"status": "charge_failed", "error": "duplicate capture refused by the bank"}
            questions.append("Which order failed with a duplicate capture refused by the bank?")
        else:
            questions.append(f"Which order belongs to customer {row['customer']}?")
        rows.insert(34 + 14 * number, row)
    return json.dumps({"data": rows, "has_more": True}, indent=2), questions


def _row(rng: Random, id: str) -> dict[str, Any]:
    return {
        "id": id,
        "customer": f"cus_{rng.randbytes(5).hex()}",
        "status": rng.choice(["paid", "paid", "paid", "shipped", "open"]),
        "amount": rng.randrange(500, 90_000),
        "currency": rng.choice(["EUR", "EUR", "USD"]),
        "created": (
            f"2026-11-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:{rng.randrange(60):02}:00Z"
        ),
        "attempts": 1,
    }


def _log(rng: Random, planted: list[str], call: int) -> Made:
    """A service's log: a value stands in an error, in a warning, or among the rest."""
    lines = [_log_line(rng, number) for number in range(270)]
    said = (
        (
            "ERROR",
            "capture ran twice under {value}: the first answer came after the timeout",
            "Under which lease did a capture run twice?",
        ),
        (
            "WARNING",
            "{value} was taken over while its holder was still alive",
            "Which lease was taken over while its holder was alive?",
        ),
        (
            "INFO",
            "worker-31 renewed {value} for the nightly settlement",
            "Which lease did worker-31 renew for the nightly settlement?",
        ),
    )
    extra, questions = [], []
    for number, value in enumerate(planted):
        level, text, question = said[(number + call // 4) % len(said)]
        extra.append(
            f"2026-11-10T03:{20 + number}:07.118Z {level:<8}orders.{rng.choice(_PLACES)}: "
            f"{text.format(value=value)}"
        )
        questions.append(question)
    return "\n".join(_planted(lines, extra)), questions


def _log_line(rng: Random, number: int) -> str:
    clock = (
        f"2026-11-10T{2 + number // 150:02}:{number // 3 % 60:02}:{rng.randrange(60):02}."
        f"{rng.randrange(1000):03}Z"
    )
    place, trace, spent = rng.choice(_PLACES), rng.randbytes(6).hex(), rng.randrange(2, 900)
    text = rng.choice(
        [
            f"{_two(rng)} done in {spent} ms trace={trace}",
            f"GET /v1/{rng.choice(_NOUNS)}s/{rng.randrange(10**6)} 200 {spent} ms trace={trace}",
            f"queue depth {rng.randrange(40)} after {_two(rng)} trace={trace}",
            f"cache hit for {rng.choice(_NOUNS)} {rng.randrange(10**6)}",
        ]
    )
    return f"{clock} {'INFO' if rng.random() < 0.97 else 'WARNING':<8}orders.{place}: {text}"


def _code(rng: Random, planted: list[str], _call: int) -> Made:
    """A module: the first value is a constant at the module's level, the second a default inside a
    function."""
    blocks = [
        (
            '"""Part of the orders service."""\n\nfrom __future__ import annotations\n\nimport '
            "logging\nimport time"
        )
    ]
    blocks += [_function(rng, number) for number in range(64)]
    extra, questions = [], []
    if planted:
        extra.append(
            f"# Milliseconds; the bank gives up before this.\nCAPTURE_DEADLINE = {planted[0]}"
        )
        questions.append("What is CAPTURE_DEADLINE set to, in milliseconds?")
    if len(planted) > 1:
        body = (
            "    entry = store.find(key, within=within)\n    return entry.lease if entry else None"
        )
        extra.append(f"def reclaim_lease(store, key, *, within={planted[1]}):\n{body}")
        questions.append("What is the default of `within` in reclaim_lease?")
    lines = "\n\n\n".join(_planted(blocks, extra)).split("\n")
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, 1)), questions


def _function(rng: Random, number: int) -> str:
    name, noun, other = f"{_two(rng)}_{number}", rng.choice(_NOUNS), rng.choice(_NOUNS)
    title = name.replace("_", " ").capitalize()
    body = rng.choice(_BODIES).format(noun=noun, other=other, name=name, verb=rng.choice(_VERBS))
    return f'def {name}(store, key, value=None, since=None):\n    """{title}."""\n{body}'


_BODIES = (
    """\
    {noun} = store.load("{noun}", key)
    if {noun} is None:
        raise LookupError(f"no {noun} {{key}}")
    {noun}.touch(time.time())
    log.info("{name} %s", {noun}.id)
    return {noun}""",
    """\
    seen = set()
    for {noun} in store.each("{noun}", since=since):
        if {noun}.id in seen:
            continue
        seen.add({noun}.id)
        yield {noun}.with_{other}(store.load("{other}", {noun}.{other}_id))""",
    """\
    with store.transaction() as tx:
        {noun} = tx.lock("{noun}", key)
        {noun}.{other} = value
        tx.write({noun})
        tx.publish("{noun}.{verb}d", {{"id": {noun}.id}})
    return {noun}""",
)


def _search(rng: Random, planted: list[str], _call: int) -> Made:
    """Hits in many files: the values stand in single lines of files that have other hits too."""
    lines = []
    for _ in range(24):
        file = f"src/orders/{rng.choice(_PLACES)}/{_two(rng)}.py"
        hits = sorted(rng.sample(range(5, 900), rng.randrange(3, 18)))
        lines += [
            (
                f"{file}:{line}:{' ' * 4 * rng.randrange(1, 4)}{_two(rng)}(store, "
                f"timeout={rng.randrange(5, 90)})"
            )
            for line in hits
        ]
    extra = [
        f"src/orders/gateway/bank_{number}.py:{211 + number}:    timeout = {value}"
        for number, value in enumerate(planted)
    ]
    questions = [
        f"What is the timeout in gateway/bank_{number}.py called?" for number in range(len(planted))
    ]
    return "\n".join(_planted(lines, extra)), questions


def _tests(rng: Random, planted: list[str], call: int) -> Made:
    """pytest -v: passes, a failure with its number, and how long tests took; at even calls the
    failure's log holds the other."""
    names = [
        f"tests/{rng.choice(_PLACES)}/test_{_two(rng)}.py::test_{_two(rng)}_{number}"
        for number in range(190)
    ]
    spent = [f"{9 - number * 0.04:.2f}" for number in range(len(names))]
    asked = "After how many seconds did the lease run out in the failing test?"
    warned = planted[1]
    if call % 2:
        spent[20], warned = planted[1], "30.000"
        asked = f"How long did {names[20]} take?"
    failed = "tests/billing/test_capture.py::test_a_late_answer_is_not_a_second_charge"
    passes = [
        f"{name} PASSED [{number * 100 // len(names):>3}%]" for number, name in enumerate(names)
    ]
    passes.insert(len(passes) // 2, f"{failed} FAILED [ 50%]")
    report = f"""
{"=" * 35} FAILURES {"=" * 35}
{"_" * 22} test_a_late_answer_is_not_a_second_charge {"_" * 22}

    def test_a_late_answer_is_not_a_second_charge(bank, orders):
        bank.answers_after(seconds=31)
        orders.capture('ord_1')
        bank.settle()
>       assert bank.charged('ord_1') == 1990
E       assert {planted[0]} == 1990

tests/billing/test_capture.py:88: AssertionError
{"-" * 28} Captured log call {"-" * 29}
WARNING  orders.billing:capture.py:{rng.randrange(100, 300)} lease ran out after {warned} s, taken again
{"=" * 30} slowest durations {"=" * 30}"""  # noqa: E501
    slow = [f"{seconds}s call     {name}" for seconds, name in zip(spent, names, strict=True)]
    whole = [
        *passes,
        report,
        *slow,
        f"FAILED {failed}",
        f"1 failed, {len(names)} passed in 341.08s",
    ]
    return "\n".join(whole), ["What did the bank charge in the failing capture test?", asked]


def _diff(rng: Random, planted: list[str], _call: int) -> Made:
    """A release's diff over many files: the values stand in added lines of hunks in the middle."""
    hunks = [_hunk(rng, f"src/orders/{rng.choice(_PLACES)}/{_two(rng)}.py") for _ in range(60)]
    extra = [
        _hunk(
            rng,
            f"src/orders/gateway/pool_{number}.py",
            f"+    pool = Pool(url, {value})  # was unbounded",
        )
        for number, value in enumerate(planted)
    ]
    questions = [
        f"To what was the pool of gateway/pool_{number}.py bounded?"
        for number in range(len(planted))
    ]
    return "\n".join(_planted(hunks, extra)), questions


def _hunk(rng: Random, file: str, added: str = "") -> str:
    at = rng.randrange(10, 800)
    before = f"-    {_two(rng)}(store, key, timeout={rng.randrange(5, 90)})"
    after = added or f"+    {_two(rng)}(store, key, deadline=time.time() + {rng.randrange(5, 90)})"
    context = [f"     {_two(rng)}(store, key)" for _ in range(4)]
    head = [
        f"diff --git a/{file} b/{file}",
        f"index {rng.randbytes(4).hex()}..{rng.randbytes(4).hex()} 100644",
        f"--- a/{file}",
        f"+++ b/{file}",
    ]
    return "\n".join(
        [
            *head,
            f"@@ -{at},6 +{at},6 @@ def {_two(rng)}(store, key):",
            *context[:2],
            before,
            after,
            *context[2:],
        ]
    )


def _prose(rng: Random, planted: list[str], call: int) -> Made:
    """A page of operations notes: the values stand in the middle of paragraphs."""
    sentences = [_sentence(rng) for _ in range(220)]
    said = (
        (
            (
                "The rotation for a stuck settlement is reached under extension {value}, day and "
                "night."
            ),
            "Under which extension is the rotation for a stuck settlement reached?",
        ),
        (
            "A refund above the limit needs the form {value} before the month ends.",
            "Which form does a refund above the limit need?",
        ),
    )
    turned = (*said[call % 2 :], *said[: call % 2])
    extra = [text.format(value=value) for value, (text, _) in zip(planted, turned, strict=False)]
    made = _planted(sentences, extra)
    paragraphs = [" ".join(made[at : at + 6]) for at in range(0, len(made), 6)]
    return "\n\n".join(paragraphs), [question for _, question in turned[: len(planted)]]


def _sentence(rng: Random) -> str:
    noun, other, verb, place = (
        rng.choice(_NOUNS),
        rng.choice(_NOUNS),
        rng.choice(_VERBS),
        rng.choice(_PLACES),
    )
    return rng.choice(
        [
            (
                f"When the {place} team has to {verb} a {noun}, it asks the owner of the {other} "
                f"and writes down what was agreed."
            ),
            (
                f"Nobody should {verb} a {noun} by hand, because {place} keeps its own count of "
                f"every {other}."
            ),
            (
                f"Since the spring the {noun} moves through {place} in batches, which made it "
                f"slower to {verb} a single {other}."
            ),
            (
                f"The {other} is older than the {noun}; what {place} does with it was never "
                f"written down until this page."
            ),
        ]
    )


def _table(rng: Random, planted: list[str], call: int) -> Made:
    """A CSV report: at even calls the first value is the row that deviates, the others are rows
    like any other."""
    rows = [_cells(rng, f"SKU-{rng.randbytes(4).hex().upper()}") for _ in range(330)]
    extra, questions = [], []
    for number, value in enumerate(planted):
        if number == call % 2:
            extra.append(_cells(rng, value).rsplit(",", 2)[0] + ",-4120,oversold")
            questions.append("Which article is oversold?")
        else:
            extra.append(f"{value},warehouse-{77 + number},2026-11-09,12,31.50,12,ok")
            questions.append(f"Which article lies in warehouse-{77 + number}?")
    return "\n".join(
        ["article,place,counted,units,price,free,state", *_planted(rows, extra)]
    ), questions


def _cells(rng: Random, article: str) -> str:
    units = rng.randrange(0, 400)
    place, day = f"warehouse-{rng.randrange(1, 60)}", f"2026-11-{rng.randrange(1, 29):02}"
    return (
        f"{article},{place},{day},{units},{rng.randrange(1, 900)}."
        f"{rng.randrange(10, 99)},{units},"
        f"ok"
    )


def _calls() -> Iterator[tuple[str, int, str, str, Make]]:
    """What is asked, in an order in which somebody would, and how many facts each result holds: 34
    in all."""
    yield "search", 1, "Grep", "timeout", _search
    yield "code", 1, "Read", "src/orders/billing/capture.py", _code
    yield "log", 3, "Bash", "journalctl -u orders --since 02:00", _log
    yield "JSON", 3, "query_api", "/v1/orders?limit=100", _json
    yield "prose", 1, "WebFetch", "https://wiki.orders.example/settlement", _prose
    yield "code", 2, "Read", "src/orders/gateway/lease.py", _code
    yield "table", 2, "Bash", "psql -c 'copy stock to stdout csv header'", _table
    yield "tests", 2, "Bash", "pytest -v tests --durations=60", _tests
    yield "diff", 1, "Bash", "git diff v2.3..v2.4", _diff
    yield "log", 1, "Bash", "journalctl -u gateway --since 02:00", _log
    yield "search", 1, "Grep", "deadline", _search
    yield "code", 1, "Read", "src/orders/worker/settle.py", _code
    yield "JSON", 1, "query_api", "/v1/orders?limit=100&page=2", _json
    yield "prose", 1, "WebFetch", "https://wiki.orders.example/refunds", _prose
    yield "code", 0, "Read", "src/orders/storage/ledger.py", _code
    yield "table", 1, "Bash", "psql -c 'copy stock_history to stdout csv header'", _table
    yield "search", 2, "Grep", "lease", _search
    yield "diff", 2, "Bash", "git diff v2.4..v2.5", _diff
    yield "log", 1, "Bash", "journalctl -u worker --since 02:00", _log
    yield "JSON", 1, "query_api", "/v1/leases?limit=100", _json
    yield "tests", 2, "Bash", "pytest -v tests/billing tests/gateway --durations=60", _tests
    yield "code", 0, "Read", "src/orders/checkout/basket.py", _code
    yield "prose", 2, "WebFetch", "https://wiki.orders.example/on-call", _prose
    yield "search", 0, "Grep", "capture", _search
    yield "diff", 1, "Bash", "git diff HEAD", _diff
    yield "code", 0, "Read", "src/orders/billing/capture.py", _code
    yield "table", 1, "Bash", "psql -c 'copy refunds to stdout csv header'", _table
    yield "JSON", 0, "query_api", "/v1/orders?limit=100&page=3", _json
    yield "log", 0, "Bash", "journalctl -u reporting --since 02:00", _log
    yield "code", 0, "Read", "src/orders/gateway/lease.py", _code


_CALLS = tuple(_calls())
