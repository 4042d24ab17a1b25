"""First part: two complaints, and what is behind them."""

from __future__ import annotations

from hotset.testing.recording.bulk import SLOW_DELIVERY, STUCK_DELIVERY
from hotset.testing.recording.story.beat import Beat, Use, command, get, grep, read, run_tests

_COMPLAINT = """\
Since we rolled out 2.3.0 two alerts keep firing, and I would like to understand both before we touch anything:

1. DuplicateDeliveries: the canary and at least three customers get the same delivery id twice, about half a minute apart. \
Both times we record a 200.
2. OldestRetry: deliveries sit in `retrying` for five hours although the endpoint was only down for a minute or so.

Last night's worker log is worker-2026-11-10.jsonl, staging has a copy of the data. Find the causes, show me the evidence, \
then fix them with tests. Please leave the HTTP API as it is."""

_COUNT_REPEATED = """\
python - <<'EOF'
import collections, json
sent = collections.defaultdict(list)
for line in open('/var/log/ferrypost/worker-2026-11-10.jsonl'):
    entry = json.loads(line)
    if entry.get('msg') == 'attempt' and entry['outcome'] == 'delivered':
        sent[entry['delivery']].append(entry)
repeated = {id: lines for id, lines in sent.items() if len(lines) > 1}
for id, lines in sorted(repeated.items(), key=lambda item: item[1][0]['ts']):
    print(id, len(lines), lines[0]['endpoint'], [(e['ts'] - e['elapsed'], e['elapsed'], e['worker']) for e in lines])
print(len(repeated), 'of', len(sent))
EOF"""

FINDING = (
    Beat(
        "I start with the layout and what the service promises.",
        (Use("list_directory", {"path": ".", "recursive": True}), read("README.md")),
        prompt=_COMPLAINT,
    ),
    Beat(
        "The README promises that a delivery is in the hands of one worker at a time, so (1) breaks a promise, it is not"
        " just at-least-once at work. Next: what came with 2.3.0, and how it is deployed.",
        (read("CHANGELOG.md"), Use("git_log", {"limit": 12}, "git-log"), read("docs/operations.md")),
    ),
    Beat(
        "2.3.0 brought two things: timeouts per endpoint, up to 120 s, and `Retry-After`. Two features, two symptoms. I"
        " look at the log before I read code, so that I know what I am looking for.",
        (
            Use(
                "query_logs",
                {"file": "worker-2026-11-10.jsonl", "where": {"msg": "attempt"}, "since": "02:00:00", "limit": 200},
                "attempt-log",
            ),
        ),
    ),
    Beat(
        f"`{SLOW_DELIVERY}` was sent twice, by two workers, and the first attempt took longer than 30 s. I count all of them.",
        (command(_COUNT_REPEATED, "repeated-deliveries"),),
    ),
    Beat(
        "Every repeated delivery looks the same: the first attempt takes more than 30 s, and 30.0 to 30.5 s after it began"
        " another worker sends it again. All of them go to endpoints with a timeout of 60 s or more. 30 s is the lease, I"
        " think.",
        (grep(r"lease", context=1),),
    ),
    Beat("The lease is a constant of 30 s. I read the store and the worker as a whole.", (read("ferrypost/store.py"),)),
    Beat("", (read("ferrypost/worker.py"),)),
    Beat(
        "`claim_due` takes a batch of up to 8 with one lease for all, and `work_once` then sends them one after the other."
        " So the lease does not only have to outlast one slow answer but everything in front of it in the batch as well. I"
        " check where the timeout comes from.",
        (read("ferrypost/config.py"), read("ferrypost/models.py"), read("ferrypost/sender.py")),
    ),
    Beat("And who may set it, and how far.", (grep(r"timeout", "ferrypost/"), read("ferrypost/api.py"))),
    Beat(
        "Up to 120 s by the API. What do real endpoints use?",
        (get("/v1/endpoints", "endpoints"),),
    ),
    Beat(
        "Six of the 36 endpoints have 60 s or more, and exactly those are in the list of repeated deliveries. That settles"
        " the first symptom. Now the second one.",
        (get("/v1/deliveries?state=retrying&limit=151", "retrying"),),
    ),
    Beat(
        "Two populations: those that failed with a timeout or a 5xx are due within seconds to a minute, those whose error"
        " names a time (`maintenance, back at ...`) are due about five hours after that time. I take one of them apart.",
        (get(f"/v1/deliveries/{STUCK_DELIVERY}", "stuck-delivery"), read("ferrypost/backoff.py")),
    ),
    Beat(
        "The endpoint said 09:07:22 GMT, half a minute after the attempt; we came back at 14:07:22. Five hours to the"
        " second. `ferrypost/backoff.py:40` drops the time zone of the date and compares it with `datetime.now()`, which is"
        " local time, and docs/operations.md says that the image sets `TZ=America/New_York`: five hours behind GMT in"
        " November. Let me make sure.",
        (
            command("date; echo TZ=$TZ; python -c 'import time; print(time.tzname, time.timezone)'", "time-zone"),
            grep(r"datetime|utcnow|localtime|fromtimestamp"),
        ),
    ),
    Beat(
        "Confirmed, and it is the only place that uses local time. East of Greenwich the same line would make us retry at"
        " once instead, ignoring what the endpoint asked for; that may be why nobody saw it on a laptop. I write down the"
        " plan and look at the tests.",
        (
            Use(
                "update_plan",
                {
                    "steps": [
                        {"text": "Duplicates: leases end while a slow endpoint is still being waited for", "state": "done"},
                        {"text": "Stuck retries: Retry-After dates are read as local time", "state": "done"},
                        {"text": "Failing tests for both", "state": "doing"},
                        {"text": "Fix the lease", "state": "open"},
                        {"text": "Fix Retry-After", "state": "open"},
                        {"text": "Changelog, operations notes, version", "state": "open"},
                    ]
                },
            ),
            read("tests/conftest.py"),
            read("tests/test_worker.py"),
            read("tests/test_backoff.py"),
        ),
    ),
    Beat("Baseline first.", (run_tests("tests-baseline"),)),
)
