"""What is rare within a page is what the page has to say: previews keep it, whatever the page is
made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from hotset.window.preview import ContentOrigin, ContentType, Preview, preview
from hotset.window.preview.json_text import records, records_of
from hotset.window.preview.rarity import odd_lines, odd_rows
from tests.campaign import sample
from tests.window.preview.samples import shell

WORDS = tuple(
    re.findall(
        r"\w+",
        (
            "basil cedar delta ember fjord glade heron ivory jetty kayak lilac mango nectar opal "
            "prism quartz"
        ),
    )
)


@dataclass(frozen=True)
class Page:
    """Many lines alike, and among them a few that are not."""

    name: str
    type: ContentType
    usual: Callable[[Random, int], str]
    odd: Sequence[str]
    told: Sequence[str]
    """What of the odd lines must be seen."""
    origin: ContentOrigin
    head: str = ""
    room: int = 2500
    count: int = 220

    @property
    def text(self) -> str:
        chance = Random(self.name)
        lines = [self.usual(chance, number) for number in range(self.count)]
        for number, line in enumerate(self.odd):
            lines.insert(self.count // 3 + 17 * number, line)
        return "\n".join([self.head, *lines] if self.head else lines)


def word(chance: Random) -> str:
    return chance.choice(WORDS)


PAGES = (
    Page(
        "access log",
        ContentType.LOG,
        lambda chance, number: (
            f"10.0.0.{chance.randrange(255)} - - "
            f"[12/Nov/2026:10:{number // 60:02}:{number % 60:02} +0000] "
            f'"GET /{word(chance)}/{chance.randrange(9999)} HTTP/1.1" 200 '
            f'{chance.randrange(300, 9000)} "-" {chance.random():.3f}'
        ),
        (
            (
                '10.0.0.7 - - [12/Nov/2026:10:01:31 +0000] "GET /opal/44110 HTTP/1.1" 503 612 "-" '
                "0.210"
            ),
            (
                '10.0.0.8 - - [12/Nov/2026:10:02:31 +0000] "POST /admin/rotate-keys HTTP/1.1" 200 '
                '612 "-" 0.210'
            ),
            (
                '10.0.0.9 - - [12/Nov/2026:10:03:31 +0000] "GET /opal/88120 HTTP/1.1" 200 612 "-" '
                "41.553"
            ),
        ),
        ("/opal/44110", "rotate-keys", "41.553"),
        shell("tail -300 access.log"),
    ),
    Page(
        "search",
        ContentType.SEARCH,
        lambda chance, number: (
            f"lib/{WORDS[number // 16]}.rb:{number}:  connect({word(chance)}_pool, tries: "
            f"{chance.randrange(9)})"
        ),
        (
            "lib/shim.rb:77:  CONNECT_URL = 'tcp://db-7.internal:6543'",
            "config/prod.yml:12:connect_mode: pinned-eu3",
        ),
        ("db-7.internal:6543", "pinned-eu3"),
        ContentOrigin(tool="Grep", arguments=b'{"pattern": "connect"}'),
    ),
    Page(
        "diff",
        ContentType.DIFF,
        lambda chance, number: (
            f"diff --git a/pkg/{word(chance)}{number}.go b/pkg/{word(chance)}{number}.go\n@@ "
            f"-{number},3 +{number},3 @@\n"
            f' ctx := background()\n-log.Printf("{word(chance)}", err)\n'
            f'+slog.Error("{word(chance)}", "err", err)'
        ),
        (
            (
                "diff --git a/pkg/token.go b/pkg/token.go\n@@ -9,3 +9,3 @@\n-ttl := minute\n+ttl "
                ":= 90 * 24 * hour // partners asked"
            ),
        ),
        ("90 * 24 * hour", "pkg/token.go"),
        shell("git show HEAD"),
        count=60,
    ),
    Page(
        "comma table",
        ContentType.TABLE,
        lambda chance, number: (
            f"{word(chance)}-{number},eu-{chance.randrange(1, 4)},{chance.randrange(5, 95)},Running"
        ),
        ("pod-x,us-9,44,Running", "pod-y,eu-2,88000,Running", "pod-z,eu-2,40,Evicted"),
        ("pod-x", "pod-y", "pod-z"),
        shell("inventory"),
        head="name,zone,load,phase",
    ),
    Page(
        "aligned columns",
        ContentType.TABLE,
        lambda chance, number: (
            f"{word(chance):<10}  {word(chance)}-{number:03}  1/1   Running   "
            f"{chance.randrange(3)}   {number}d"
        ),
        (
            "glade       ledger-sync  0/1   CrashLoopBackOff   2   3d",
            "heron       mailer-x9    1/1   Running   98   3d",
        ),
        ("ledger-sync", "mailer-x9"),
        shell("kubectl get pods -A"),
    ),
    Page(
        "test run",
        ContentType.CHECKS,
        lambda chance, number: (
            f"--- PASS: Test{word(chance).title()}{word(chance).title()}{number} "
            f"(0.0{chance.randrange(9)}s)"
        ),
        (
            "    lease_test.go:41: got 7731, want 7730\n--- FAIL: TestLease (0.02s)",
            "--- PASS: TestColdStart (83.20s)",
            "    store_test.go:12: skipping: needs license KX-5512",
        ),
        ("got 7731", "83.20s", "KX-5512"),
        shell("go test ./... -v"),
        room=1500,
    ),
    Page(
        "JSON lines",
        ContentType.JSON_LINES,
        lambda chance, number: json.dumps(
            {"at": number, "ev": chance.choice(["view", "click"]), "ms": chance.randrange(5, 80)}
        ),
        (
            '{"at": 90001, "ev": "takeover", "ms": 12}',
            '{"at": 91, "ev": "click", "ms": 90412}',
            '{"at": 90003, "ev": "click", "ms": 12, "via": "proxy-9"}',
        ),
        ("90001", "90412", "proxy-9"),
        shell("cat events.jsonl"),
    ),
    Page(
        "listing",
        ContentType.LISTING,
        lambda chance, number: f"./assets/{word(chance)}/{word(chance)}_{number}.png",
        ("./assets/opal/credentials.kdbx", "./assets/opal/.env.production"),
        ("credentials.kdbx", ".env.production"),
        shell("find . -type f"),
    ),
    Page(
        "prose",
        ContentType.PROSE,
        lambda chance, number: (
            f"In {1900 + number} the {word(chance)} committee met {chance.randrange(3, 30)} "
            f"times about the {word(chance)}."
        ),
        (
            "We decided to freeze schema migrations until RFC-219 is signed.",
            "The backup vault keeps its passphrase under locker 88-C.",
        ),
        ("RFC-219", "88-C"),
        ContentOrigin(tool="fetch"),
    ),
    Page(
        "code",
        ContentType.CODE,
        lambda chance, number: (
            f"export function {word(chance)}{number}(input: Input) {{\n  const item = "
            f"repo.find(input.{word(chance)});\n"
            f"  return item.{word(chance)}();\n}}\n"
        ),
        (
            "const MAX_SESSIONS = 4096;\n",
            "// FIXME(ops-771): drops the lock when the clock jumps\n",
            "const REGION = 'eu-west-7';\n",
        ),
        ("4096", "ops-771", "eu-west-7"),
        ContentOrigin(tool="Read", arguments=b'{"file_path": "/x/a.ts"}'),
        count=90,
    ),
    Page(
        "settings",
        ContentType.CODE,
        lambda chance, number: (
            f"{word(chance)}_{number}:\n  image: registry/{word(chance)}:latest\n  replicas: 2"
        ),
        (
            (
                "edge:\n  image: registry/edge:latest\n  replicas: 64\n  hostNetwork: true # see "
                "INC-3381"
            ),
        ),
        ("replicas: 64", "INC-3381"),
        shell("cat deploy.yml"),
        count=100,
    ),
    Page(
        "other output",
        ContentType.LOG,
        lambda chance, number: (
            f"Collecting {word(chance)}-{word(chance)}>={number}.{chance.randrange(20)}"
        ),
        ("Note: falcon-engine pinned to 2.17.4 because resolver backtracked",),
        ("2.17.4",),
        shell("./setup.sh"),
    ),
)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def made(text: str, origin: ContentOrigin, room: int) -> Preview:
    found = preview(text, origin, room)
    assert found is not None
    return found


@each_page
def test_what_is_rare_within_a_page_is_shown(page):
    shown = made(page.text, page.origin, page.room)
    assert shown.type is page.type
    assert [piece for piece in page.told if piece not in shown.text] == []


@each_page
def test_a_page_on_which_all_is_alike_has_nothing_odd(page):
    chance = Random(page.name)
    assert len(odd_lines([page.usual(chance, 50) for _ in range(page.count)])) <= page.count * 0.02


def test_where_everything_is_unlike_everything_else_nothing_is_odd():
    chance = Random(1)
    lines = [
        " ".join("".join(chance.choices("abcdefghij", k=7)) for _ in range(6)) for _ in range(100)
    ]
    assert odd_lines(lines) == {}


@settings(max_examples=sample(40, 100), deadline=None)
@given(columns=st.lists(st.lists(st.text(max_size=6), min_size=20, max_size=20), max_size=5))
def test_only_few_rows_are_ever_odd(columns):
    assert len(odd_rows(columns)) <= 2


@given(value=st.integers(-(10**9), 10**9).filter(lambda number: not -500 <= number <= 600))
def test_a_number_far_from_all_others_of_its_column_is_odd(value):
    column = [str(number) for number in range(100)]
    column[41] = str(value)
    assert list(odd_rows([column])) == [41]


def rows(count: int) -> list[dict[str, object]]:
    chance = Random(7)
    return [
        {
            "id": f"run_{chance.getrandbits(40):010x}",
            "owner": word(chance),
            "state": "done",
            "files": chance.randrange(1, 9),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("indent", [None, 2])
def test_rows_of_json_are_all_named_and_those_that_stand_out_are_whole(indent):
    table = rows(80)
    table[37]["reverts"] = "9f31c0ffee"
    table[44]["files"] = 1873
    table[50]["state"] = "held"
    shown = made(
        json.dumps({"runs": table}, indent=indent), ContentOrigin(tool="list_runs"), 2500
    ).text
    assert [row["id"] for row in table if str(row["id"]) not in shown] == []
    assert "80 rows in $.runs" in shown
    assert "state: done (79), held (1)" in shown
    for at, what in (
        (37, '"reverts": "9f31c0ffee"'),
        (44, '"files": 1873'),
        (50, '"state": "held"'),
    ):
        (line,) = [line for line in shown.split("\n") if line.startswith(f"… $.runs[{at}]:")]
        assert what in line


def test_more_room_shows_more_columns_of_all_rows():
    text = json.dumps(rows(80))
    shown = [made(text, ContentOrigin(), room).text for room in range(1000, 4000, 100)]
    found = [re.search(r"… ([a-z, ]+) from row 0: run_", each) for each in shown]
    assert list(dict.fromkeys(each[1] if each else "" for each in found)) == [
        "",
        "id",
        "id, owner",
        "id, owner, files",
    ]


def test_objects_in_an_object_are_rows_too():
    settings = {
        f"{WORDS[number % 16]}_{number}": {"enabled": True, "limit": 100} for number in range(60)
    }
    settings["opal_13"] = {"enabled": True, "limit": 7, "override": "ticket-8812"}
    shown = made(json.dumps(settings, indent=2), ContentOrigin(tool="get_settings"), 1500).text
    assert '… $.opal_13: { "enabled": true, "limit": 7, "override": "ticket-8812" }' in shown


@settings(max_examples=sample(40, 100), deadline=None)
@given(
    value=st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner, max_size=20)
        ),
        max_leaves=60,
    )
)
@pytest.mark.slow
def test_any_json_has_rows_or_has_none(value):
    raw = json.dumps(value).encode()
    for table in (records(raw), records_of([raw.decode()] * 15)):
        if table is not None:
            assert all(len(column) == len(table.paths) for column in table.columns.values())
            assert len(table.odd()) <= len(table.paths) * (1 + len(table.columns))
            assert sum(map(len, table.catalogue(300, 80))) <= 300
