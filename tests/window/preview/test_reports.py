"""What programs print: failures whole, passes counted, errors never lost, and gaps that say what
they hold."""

from __future__ import annotations

import argparse
import base64
import random
import re
import textwrap
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotset.window.preview import ContentOrigin, ContentType, closing, preview
from tests.window.preview.samples import shell, sniff

ROOM = 2500


def shown(text: str, command: str, room: int = ROOM) -> str:
    found = preview(text, shell(command), room)
    assert found is not None
    return found.text


def gaps(text: str) -> list[str]:
    return re.findall(r"^… lines? .*", text, re.MULTILINE)


@dataclass(frozen=True)
class Report:
    name: str
    command: str
    lines: list[str]
    kept: tuple[str, ...]
    """Whole lines, or what a gap says."""
    gone: tuple[str, ...] = ()


_FRAMES = [
    f"\tat org.junit.internal.runners.Runner{index}.run(Runner{index}.java:{index})"
    for index in range(40)
]
_STEPS = [f"        step_{index}(order)" for index in range(15)]


def _pytest(number: int) -> list[str]:
    return [
        f"________________________________ test_case_{number} _________________________________",
        "",
        f"    def test_case_{number}():",
        f"        order = make_order(total={number * 100})",
        *_STEPS,
        f">       assert price(order) == {number * 100}",
        f"E       assert {number * 99} == {number * 100}",
        "",
        f"tests/test_mod{number}.py:{number * 3}: AssertionError",
        "----------------------------- Captured stdout call -----------------------------",
        *(f"debug line {index} of noise for {number}" for index in range(60)),
    ]


REPORTS = (
    Report(
        "maven",
        "mvn test",
        [
            *(
                line
                for index in range(60)
                for line in (
                    f"[INFO] Running com.x.Test{index}",
                    (
                        f"[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: "
                        f"0.{index} s"
                    ),
                )
            ),
            (
                "[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0 <<< FAILURE! - in "
                "com.x.PayTest"
            ),
            "[ERROR] com.x.PayTest.charge  Time elapsed: 0.01 s  <<< FAILURE!",
            "org.opentest4j.AssertionFailedError: expected: <200> but was: <402>",
            "\tat com.x.PayTest.charge(PayTest.java:42)",
            *_FRAMES,
            *(f"[INFO] Running com.x.Late{index}" for index in range(60)),
            "[INFO] BUILD FAILURE",
        ],
        (
            "<<< FAILURE! - in com.x.PayTest",
            "expected: <200> but was: <402>",
            "\tat com.x.PayTest.charge(PayTest.java:42)",
            "300 passes",
            "[INFO] BUILD FAILURE",
        ),
        ("Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.7 s",),
    ),
    Report(
        "cargo build",
        "cargo build",
        [
            *(
                f"   Compiling {name}{index} v0.{index}.1"
                for index in range(90)
                for name in ("serde_", "tokio-")
            ),
            "error[E0308]: mismatched types",
            "  --> src/main.rs:42:18",
            "   |",
            '42 |     let x: u32 = "a";',
            "   |            ---   ^^^ expected `u32`, found `&str`",
            "   |",
            "",
            *(f"   Compiling late{index} v0.{index}.1" for index in range(90)),
            'error: could not compile `app` (bin "app") due to 1 previous error',
        ],
        (
            "error[E0308]: mismatched types\n  --> src/main.rs:42:18\n   |\n42 |     let x: u32",
            "expected `u32`, found `&str`",
            "error: could not compile `app`",
            " x Compiling ",
        ),
    ),
    Report(
        "pytest",
        "pytest -q",
        [
            "============================= test session starts ==============================",
            *(
                (
                    f"tests/test_mod{index}.py .........{'F' if index in (7, 30) else '.'}   "
                    f"[{index * 2:3}%]"
                )
                for index in range(41)
            ),
            "",
            "=================================== FAILURES ===================================",
            *_pytest(7),
            *_pytest(30),
            "=========================== short test summary info ============================",
            "FAILED tests/test_mod7.py::test_case_7 - assert 693 == 700",
            "FAILED tests/test_mod30.py::test_case_30 - assert 2970 == 3000",
            "================== 2 failed, 408 passed in 12.33s ===================",
        ],
        (
            "_ test_case_7 _",
            "    def test_case_7():",
            "E       assert 693 == 700",
            "_ test_case_30 _",
            "    def test_case_30():",
            "E       assert 2970 == 3000",
            "390 passes",
            "2 failed, 408 passed",
        ),
        ("debug line 20 of noise for 7",),
    ),
    Report(
        "eslint",
        "npx eslint .",
        [
            *(
                line
                for index in range(40)
                for line in (
                    f"/app/src/file{index}.ts",
                    f"  {index}:1   warning  Unexpected console statement  no-console",
                    f"  {index}:5   error    'x{index}' is not defined   no-undef",
                    "",
                )
            ),
            "✖ 80 problems (40 errors, 40 warnings)",
        ],
        ("/app/src/file8.ts", "  8:5   error    'x8' is not defined", "✖ 80 problems"),
    ),
    Report(
        "gcc",
        "make -j8",
        [
            *(f"gcc -O2 -Wall -c -o obj/file{index}.o src/file{index}.c" for index in range(150)),
            "src/net.c: In function 'net_open':",
            "src/net.c:88:17: error: 'SOCK_NONBLOCK' undeclared (first use in this function)",
            "   88 |     int fd = socket(AF_INET, SOCK_NONBLOCK, 0);",
            "      |                              ^~~~~~~~~~~~~",
            *(f"gcc -O2 -Wall -c -o obj/late{index}.o src/late{index}.c" for index in range(50)),
            "make: *** [Makefile:31: obj/net.o] Error 1",
        ],
        (
            "In function 'net_open':",
            "error: 'SOCK_NONBLOCK' undeclared",
            "^~~~~~~~~~~~~",
            "[Makefile:31: obj/net.o] Error 1",
        ),
        ("obj/late20.o src/late20.c",),
    ),
    Report(
        "tsc",
        "npx tsc --noEmit",
        [
            *(
                (
                    f"src/page{index}.tsx({index},1): error TS2339: Property 'p{index}' does not "
                    f"exist on type 'P'."
                )
                for index in range(120)
            ),
            (
                "src/api/client.ts(88,13): error TS2345: Argument of type 'string' is not "
                "assignable to parameter of type 'number'."
            ),
            *(
                (
                    f"src/zone{index}.tsx({index},1): error TS2339: Property 'p{index}' does not "
                    f"exist on type 'P'."
                )
                for index in range(120)
            ),
        ],
        ("src/api/client.ts(88,13): error TS2345: Argument of type 'string'", "x src/"),
    ),
    Report(
        "dotnet",
        "dotnet test",
        [
            *(f"  Passed Shop.Tests.OrderTests.Order_{index} [{index} ms]" for index in range(150)),
            "  Failed Shop.Tests.PayTests.Charges_Card [12 ms]",
            "  Error Message:",
            "   Assert.Equal() Failure: Values differ",
            "Expected: 200",
            "Actual:   402",
            "  Stack Trace:",
            "     at Shop.Tests.PayTests.Charges_Card() in /src/Shop.Tests/PayTests.cs:line 42",
            *(f"  Passed Shop.Tests.LateTests.Late_{index} [{index} ms]" for index in range(50)),
            "",
            "Failed!  - Failed:     1, Passed:   200, Skipped:     0, Total:   201, Duration: 1 s",
        ],
        (
            "  Failed Shop.Tests.PayTests.Charges_Card",
            "Actual:   402",
            "PayTests.cs:line 42",
            "150 passes",
            "50 passes",
            "Failed!  -",
        ),
        ("Late_20 ",),
    ),
    Report(
        "unittest",
        "python -m unittest -v",
        [
            *(
                f"test_error_{index} (tests.test_shop.OrderTest.test_error_{index}) ... ok"
                for index in range(150)
            ),
            "test_charge (tests.test_pay.PayTest.test_charge) ... FAIL",
            "",
            "======================================================================",
            "FAIL: test_charge (tests.test_pay.PayTest.test_charge)",
            "----------------------------------------------------------------------",
            "Traceback (most recent call last):",
            '  File "/app/tests/test_pay.py", line 42, in test_charge',
            "    self.assertEqual(charge(card).status, 200)",
            "AssertionError: 402 != 200",
            "",
            "----------------------------------------------------------------------",
            "Ran 151 tests in 0.512s",
            "",
            "FAILED (failures=1)",
        ],
        (
            "150 passes",
            'File "/app/tests/test_pay.py", line 42',
            "AssertionError: 402 != 200",
            "FAILED (failures=1)",
        ),
    ),
    Report(
        "rspec",
        "bundle exec rspec --format documentation",
        [
            "Order",
            *(f"  totals the lines of order {index} with its discounts" for index in range(150)),
            "",
            "Failures:",
            "",
            "  1) Pay charges the card",
            "     Failure/Error: expect(pay.status).to eq(200)",
            "",
            "       expected: 200",
            "            got: 402",
            "",
            "     # ./spec/pay_spec.rb:42:in `block (2 levels) in <top (required)>'",
            "",
            *(f"  note {index} of the run" for index in range(60)),
            "151 examples, 1 failure",
        ],
        (
            "  1) Pay charges the card",
            "            got: 402",
            "./spec/pay_spec.rb:42",
            "151 examples, 1 failure",
            "x totals the lines",
        ),
    ),
    Report(
        "jest",
        "npx jest",
        [
            *(f"PASS src/mod{index}/error-handling.test.ts" for index in range(120)),
            "FAIL src/pay.test.ts",
            "  ● Payment > charges the card",
            "",
            "    expect(received).toBe(expected) // Object.is equality",
            "",
            "    Expected: 200",
            "    Received: 402",
            "",
            "    > 42 |   expect(res.status).toBe(200);",
            "         |                      ^",
            "",
            "      at Object.<anonymous> (src/pay.test.ts:42:22)",
            "",
            *(f"PASS src/late{index}.test.ts" for index in range(40)),
            "Test Suites: 1 failed, 160 passed, 161 total",
        ],
        (
            "120 passes",
            "● Payment",
            "    Received: 402",
            "(src/pay.test.ts:42:22)",
            "40 passes",
            "Test Suites: 1 failed",
        ),
    ),
    Report(
        "go test",
        "go test ./...",
        [
            *(f"ok  \tgithub.com/x/app/mod{index}\t0.0{index}s" for index in range(100)),
            "--- FAIL: TestCharge (0.01s)",
            "    pay_test.go:42: got 402, want 200",
            "FAIL",
            "FAIL\tgithub.com/x/app/pay\t0.012s",
            *(f"ok  \tgithub.com/x/app/zed{index}\t(cached)" for index in range(60)),
            "FAIL",
        ],
        ("100 passes", "--- FAIL: TestCharge", "pay_test.go:42: got 402, want 200", "60 passes"),
        ("zed30",),
    ),
    Report(
        "gradle",
        "./gradlew build",
        [
            *(f"> Task :mod{index}:compileJava UP-TO-DATE" for index in range(120)),
            "> Task :app:compileJava FAILED",
            "/build/Pay.java:42: error: incompatible types: String cannot be converted to int",
            "        int amount = card.getAmount();",
            "                                   ^",
            *(f"> Task :late{index}:compileJava UP-TO-DATE" for index in range(60)),
            "BUILD FAILED in 14s",
        ],
        (
            "> Task :app:compileJava FAILED",
            "Pay.java:42: error",
            "int amount = card.getAmount();",
            "BUILD FAILED",
            "x > Task :mod#",
        ),
        (":late20:",),
    ),
    Report(
        "npm install",
        "npm install",
        [
            *(
                f"npm warn deprecated pkg{index}@1.{index}.0: this package is no longer supported"
                for index in range(120)
            ),
            "npm error code ERESOLVE",
            "npm error While resolving: app@1.0.0",
            'npm error peer react@"^17.0.0 || ^18.0.0" from react-dates@21.8.0',
        ],
        ("npm error code ERESOLVE", "from react-dates@21.8.0", "x npm warn deprecated pkg#"),
        ("pkg60@",),
    ),
    Report(
        "docker build",
        "docker build .",
        [
            *(
                f"#{index} [build {index}/60] COPY pkg{index}/ ./pkg{index}/"
                for index in range(1, 60)
            ),
            *(f"#60 {index}.1 > transforming module {index}" for index in range(100)),
            (
                "#60 12.31 src/api/client.ts(88,13): error TS2345: Argument of type 'string' is "
                "not assignable."
            ),
            *(f"#61 {index}.1 > writing chunk {index}" for index in range(100)),
            (
                'ERROR: failed to solve: process "/bin/sh -c npm run build" did not complete '
                "successfully: exit code: 2"
            ),
        ],
        (
            "src/api/client.ts(88,13): error TS2345",
            "ERROR: failed to solve",
            "> transforming module #",
        ),
    ),
    Report(
        "terraform",
        "terraform apply -auto-approve",
        [
            *(
                line
                for index in range(60)
                for line in (
                    f"aws_instance.web[{index}]: Creating...",
                    f"aws_instance.web[{index}]: Creation complete after 12s [id=i-0{index:07x}]",
                )
            ),
            "╷",
            "│ Error: creating EC2 Instance: VcpuLimitExceeded",
            "│   on main.tf line 14, in resource",
            "╵",
            *(
                f"aws_instance.db[{index}]: Creation complete after 12s [id=i-1{index:07x}]"
                for index in range(60)
            ),
        ],
        (
            "│ Error: creating EC2 Instance: VcpuLimitExceeded",
            "│   on main.tf line 14",
            "x aws_instance.web[#]: Creating...",
        ),
    ),
    Report(
        "webpack",
        "npx webpack",
        [
            *(
                f"asset chunk{index}.{index:08x}.js {index} KiB [emitted] [immutable]"
                for index in range(120)
            ),
            "ERROR in ./src/pay.js 42:10-20",
            "Module not found: Error: Can't resolve './charge' in '/app/src'",
            " @ ./src/index.js 3:0-24",
            "",
            *(
                f"  ./src/comp{index}.js {index} bytes [built] [code generated]"
                for index in range(80)
            ),
            "webpack 5.90.0 compiled with 1 error in 4123 ms",
        ],
        (
            "ERROR in ./src/pay.js 42:10-20",
            "Can't resolve './charge'",
            " @ ./src/index.js",
            "x asset chunk#",
            "compiled with 1 error",
        ),
    ),
    Report(
        "colours",
        "make",
        [
            *(
                f"\x1b[32m[{index:3}%]\x1b[0m Building CXX object src/f{index}.cpp.o"
                for index in range(100)
            ),
            "\x1b[1m\x1b[31mTraceback (most recent call last)\x1b[0m",
            '  \x1b[32mFile "/app/gen.py"\x1b[0m, line 10, in <module>',
            "\x1b[31mKeyError: 'user_id'\x1b[0m",
            *(
                f"\x1b[32m[{index:3}%]\x1b[0m Linking CXX object src/f{index}.so"
                for index in range(100)
            ),
        ],
        ('File "/app/gen.py"', "KeyError: 'user_id'", "x [ #%] Building CXX object"),
    ),
    Report(
        "a script",
        "./migrate.sh",
        [
            *(f"migrated_user_{index:05}" for index in range(200)),
            "ERROR: row 301 violates foreign key constraint fk_user_org (org_id=9917)",
            "  at table users",
            *(f"migrated_order_{index:05}" for index in range(200)),
        ],
        (
            "ERROR: row 301 violates foreign key constraint fk_user_org (org_id=9917)",
            "  at table users",
        ),
    ),
    Report(
        "a program",
        "python main.py",
        [
            *["loading"] * 300,
            "Traceback (most recent call last):",
            '  File "/app/svc.py", line 77, in main',
            "    raise KeyError('user_id')",
            "KeyError: 'user_id'",
            *["cleanup"] * 300,
        ],
        (
            "Traceback (most recent call last):",
            '  File "/app/svc.py", line 77, in main',
            "KeyError: 'user_id'",
            "x loading",
        ),
    ),
)


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_a_report_keeps_its_failures_whole_and_counts_the_rest(report):
    text = shown("\n".join(report.lines), report.command, 1800)
    assert [piece for piece in report.kept if piece not in text] == []
    assert [piece for piece in report.gone if piece in text] == []


def _lines(make, count: int = 300) -> str:
    chance = random.Random(7)
    return "\n".join(make(chance, index) for index in range(count))


PLAIN = {
    "uuids": _lines(lambda chance, _: str(uuid.UUID(int=chance.getrandbits(128)))),
    "hashes": _lines(lambda chance, _: f"{chance.getrandbits(160):040x}"),
    "long hashes": _lines(lambda chance, _: f"{chance.getrandbits(256):064x}"),
    "branches": _lines(lambda _, index: f"feature/TICKET-{1000 + index}-thing"),
    "names": _lines(lambda _, index: f"customer_{index}"),
    "folders": _lines(lambda _, index: f"services/svc-{index}/handlers/v{index % 4}"),
    "one word": "\n".join(["loading"] * 900),
}


@pytest.mark.parametrize("name", PLAIN)
def test_short_lines_of_letters_are_text(name):
    assert sniff(PLAIN[name], shell("./list")) is not ContentType.OPAQUE


@pytest.mark.parametrize("width", [64, 76])
def test_lines_of_base64_are_not_text(width):
    encoded = base64.b64encode(random.Random(7).randbytes(9000)).decode()
    assert (
        sniff("\n".join(textwrap.wrap(encoded, width)), shell("base64 a.bin")) is ContentType.OPAQUE
    )


def test_base64_with_an_error_below_it_is_shown_as_text():
    encoded = textwrap.wrap(base64.b64encode(random.Random(7).randbytes(9000)).decode(), 76)
    assert "base64: a.bin: read error" in shown(
        "\n".join([*encoded, "base64: a.bin: read error", *encoded]), "base64 a.bin"
    )


def test_a_list_of_names_is_a_listing():
    assert sniff(PLAIN["names"], shell("ls")) is ContentType.LISTING
    assert sniff(PLAIN["branches"], shell("git branch")) is ContentType.LISTING


def _log(count: int) -> list[str]:
    return [
        f"2026-11-03T{index // 3600:02}:{index // 60 % 60:02}:{index % 60:02}Z INFO "
        f"[worker-{index % 8}] "
        f"processed order ord_{index * 37} in {index} ms"
        for index in range(count)
    ]


def test_every_gap_of_a_log_says_what_its_lines_are():
    lines = _log(800)
    for index in range(50, 800, 100):
        lines[index] = (
            f"2026-11-03T09:59:59Z ERROR [db] pool {'abcdefgh'[index // 100]} lost its connection"
        )
    found = gaps(shown("\n".join(lines), "kubectl logs orders"))
    assert len(found) > 7
    assert [
        gap for gap in found if " x INFO [worker-#] processed order ord_# in # ms" not in gap
    ] == []


def test_an_error_that_repeats_is_counted_and_does_not_hide_another():
    lines = _log(900)
    lines[100:700] = [
        f"2026-11-03T09:59:59Z ERROR [db] connection {index} refused" for index in range(600)
    ]
    lines[650] = "2026-11-03T09:59:59Z ERROR [disk] volume /data is full"
    lines[660] = "2026-11-03T09:59:59Z WARN [tls] certificate expires in 3 days"
    text = shown("\n".join(lines), "kubectl logs orders")
    assert "volume /data is full" in text
    assert "certificate expires in 3 days" in text
    assert re.search(r"\d{3} x ERROR \[db\] connection # refused", text)
    assert "processed order ord_0 in" in text


def test_errors_of_the_same_length_are_not_the_same():
    lines = _log(600)
    said = [
        "disk volume data is full",
        "token of client seven expired",
        "queue orders lost two messages",
        "index users is out of date",
    ]
    said += [
        "lock held by another worker",
        "cache node three went away",
        "reply took far too long",
        "schema version nine is unknown",
    ]
    for index, what in enumerate(said):
        lines[index * 60 + 30] = f"2026-11-03T09:59:59Z ERROR {what}"
    text = shown("\n".join(lines), "kubectl logs orders")
    assert [what for what in said if what not in text] == []


def test_an_error_about_what_was_passed_is_an_error():
    lines = [f"checked module {index}" for index in range(400)]
    lines[200] = "error: 3 arguments passed to charge(), 2 expected; exit 0 but failed"
    assert lines[200] in shown("\n".join(lines), "make check")


def test_requests_without_a_time_are_told_by_their_form():
    lines = [f"GET /items/{index * 7 % 1000} 200 {index % 90}ms" for index in range(1000)]
    lines[500] = "POST /pay 502 30001ms"
    text = shown("\n".join(lines), "docker logs web")
    assert "POST /pay 502 30001ms" in text
    assert [gap for gap in gaps(text) if "x GET /items/# # #ms" not in gap] == []


def test_the_middle_of_a_long_log_is_told_too():
    text = shown("\n".join(_log(4000)), "kubectl logs orders")
    assert re.search(r"3,\d\d\d x INFO", text)


def test_a_long_file_is_outlined_from_end_to_end():
    source = Path(argparse.__file__).read_text(encoding="utf-8") * 2
    found = preview(
        source, ContentOrigin(tool="read_file", arguments=b'{"path": "argparse.py"}'), ROOM
    )
    assert found is not None
    assert "class ArgumentParser " in found.text
    assert "conflict_handler='error'," not in found.text
    assert not re.search(r"[:,] _ \d", found.text)


def test_a_call_is_no_definition():
    calls = "\n".join(
        f"    msg = ngettext('one {index}',\n    other _('argument {index}')\n"
        for index in range(150)
    )
    found = preview(
        f"def first():\n{calls}\nint last(int a,\n         int b)\n{{\n{'    f();' * 400}\n}}",
        shell("cat a.py"),
        900,
    )
    assert found is not None
    assert not re.search(r"[:,] _ \d", found.text)


def test_what_is_left_out_is_what_is_not_shown():
    found = preview("<a>" + "word " * 4000, ContentOrigin(), ROOM)
    assert found is not None
    left, size = (
        int(number.replace(",", "")) for number in re.findall(r"[\d,]+", found.left_out)[:2]
    )
    assert size == 20_003
    assert abs(size - left - len(found.text)) < 60
    assert len(found.text) > ROOM // 2
    assert f"{left:,} of 20,003 characters" in closing(found, "c1")


def test_xml_in_one_line_is_shown_by_its_elements():
    items = "".join(
        f"<item><title>Item {index}</title><guid>g-{index}</guid></item>" for index in range(300)
    )
    found = preview(
        f'<?xml version="1.0"?><rss><channel>{items}</channel></rss>',
        ContentOrigin(tool="http_get"),
        ROOM,
    )
    assert found is not None
    assert found.type is ContentType.HTML
    assert "… <item><title>Item 0</title><guid>g-0</guid></item>" in found.text.split("\n")
    assert re.search(r"^… \d+ <item> …$", found.text, re.MULTILINE)
    assert len(found.text) > 0.7 * ROOM


def test_a_piece_of_a_page_is_shown_by_what_it_says():
    piece = "".join(
        f"<p class='c{index}'>Para {index} says <a href='/l/{index}'>link {index}</a></p>"
        for index in range(300)
    )
    found = preview(f"<div class='a'>{piece}</div>", ContentOrigin(tool="browser"), ROOM)
    assert found is not None
    assert "… Para 0 says link 0 </l/0>" in found.text.split("\n")
    assert len(found.text) > 0.7 * ROOM
