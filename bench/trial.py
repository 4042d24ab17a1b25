"""A trial of 400 sessions through the real proxy: `hotset learn trial` gives shares of them to full
history, the profile `lean` and a harmful profile, and `hotset learn compare` tells them apart.

    make bench-trial                              (7 minutes)
    TRIAL_SESSIONS=60 python -m bench.trial

A made-up agent runs ten commands, whose reports are of 2,000 to 10,000 characters, and is then
asked for lines of five of them, three times. The scripted model answers with the lines that it
sees; what is hidden it asks back, at most three reports for a question, and does not know the rest,
so that success depends on what an arm shows. One answer in twenty is wrong whatever it sees. The
provider's prompt cache is simulated; the client says how each session came out
(`x-hotset-outcome`). Everything is done as a person would: commands, a config file, requests. The
proxy starts anew after every 20 sessions; the first 20 are before the trial.

`success` and `cost` (in % of full history's) are what `compare` says of an arm, `seen` the success
that the client itself counted; `dollars` a session are `compare`'s, `provider` what the scripted
provider charged. Then the differences to the default, in %, with intervals that hold at any time;
`ended after` so many sessions of all arms. The sessions' clock runs through 20 days, the commands'
does not: a trial that learning itself begins stays at its first day's share.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import astuple, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.proxy.talking import MODELS, Talk

from bench.results import tell
from hotset.config import listed_prices
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.price import Prices
from hotset.runtime.session_arm import arm_of_session
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Received
from hotset.window.price import price_of, units

SESSIONS, BATCH, A_DAY = int(os.environ.get("TRIAL_SESSIONS", "400")), 20, 20
TRIAL = ("off=20%", "lean=20%", "shorter=20%")
SHORTER = """
[profiles.shorter]
limit = { over = 2400, room = 1000 }
limits.test_result = { over = 2400, room = 1000 }
"""
"""A harmful profile: it hides three reports in five, where the default hides one."""

COMMANDS, QUESTIONS, LINES = 10, 3, 5
_LENGTHS = (60, 75, 90, 110, 300)  # lines of a report
_PATIENCE = 3  # reports that the model asks back for a question
_WRONG = 0.05  # answers that are wrong whatever it sees
_DAY = 86_400.0
_PAUSE = 20.0  # seconds between two calls of a session
_ASKED = re.compile(r"line_(\d+)_(\d+)")
_QUESTION, _ANSWER = "What do the reports say of", "They say:"
_WORDS = ("open", "closed", "waiting", "running", "stopped", "late", "done")


@dataclass
class Clock:
    now: float

    def __call__(self) -> float:
        return self.now


@dataclass
class Work:
    """One session's reports, and what the client is going to ask."""

    number: int
    reports: list[list[str]]
    questions: list[list[tuple[int, int]]]
    chance: random.Random

    @staticmethod
    def of(number: int) -> Work:
        chance = random.Random(number)
        reports = [
            [
                f"line_{report}_{at} = {chance.randrange(10**9)} {chance.choice(_WORDS)}"
                for at in range(chance.choice(_LENGTHS))
            ]
            for report in range(COMMANDS)
        ]
        questions = [
            [
                (report, chance.randrange(len(reports[report])))
                for report in chance.sample(range(COMMANDS), LINES)
            ]
            for _ in range(QUESTIONS)
        ]
        return Work(number, reports, questions, chance)

    def question(self, at: int) -> str:
        names = ", ".join(f"line_{report}_{line}" for report, line in self.questions[at])
        return f"{_QUESTION} {names}?"

    def is_right(self, at: int, answer: str) -> bool:
        return all(self.reports[report][line] in answer for report, line in self.questions[at])


def report_id(work: int, report: int) -> str:
    return f"w{work}r{report}"


@dataclass
class Model:
    """The scripted model: it knows what the request shows, and nothing else."""

    work: Work
    ran: int = 0
    asked_back: int = 0

    def __call__(self, request: Received) -> Say:
        body = request.json()
        question = _open_question(body["messages"])
        if question is not None:
            return self._answer(question, body)
        if self.ran == COMMANDS:
            return Say("I have read them.")
        self.ran += 1
        call = Call(
            "run_command",
            {"command": f"report {self.ran}"},
            report_id(self.work.number, self.ran - 1),
        )
        return Say(f"Report {self.ran}.", (call,))

    def _answer(self, question: str, body: dict[str, Any]) -> Say:
        text, reports = json.dumps(body["messages"]), self.work.reports
        wanted = [(int(report), int(line)) for report, line in _ASKED.findall(question)]
        missing = [each for each in wanted if reports[each[0]][each[1]] not in text]
        can_ask = any(tool["name"] == "retrieve_context" for tool in body.get("tools", ()))
        if missing and can_ask and self.asked_back < _PATIENCE:
            self.asked_back += 1
            report, line = missing[0]
            id = f"toolu_{report_id(self.work.number, report)}"
            how = {"id": id, "regex": f"line_{report}_{line} ="}
            return Say("I look it up.", (Call("retrieve_context", how),))
        self.asked_back = 0
        slips = self.work.chance.random() < _WRONG
        said = (
            f"line_{report}_{line} = unknown"
            if slips or (report, line) in missing
            else reports[report][line]
            for report, line in wanted
        )
        return Say("\n".join([_ANSWER, *said]))


def _open_question(messages: list[Any]) -> str | None:
    """The user's question that has no answer yet."""
    for message in reversed(messages):
        words = _own_words(message["content"])
        if words and (message["role"] == "user" or words.startswith(_ANSWER)):
            return words if words.startswith(_QUESTION) else None
    return None


def _own_words(content: Any) -> str:
    """The text with which a message begins; empty for results of tools."""
    if isinstance(content, str):
        return content
    return str(content[0]["text"]) if content and content[0]["type"] == "text" else ""


@dataclass
class Seen:
    """What a client and a provider know of a session."""

    is_right: bool
    dollars: float
    seconds: float


@dataclass
class Person:
    """A person who tries three profiles in a project."""

    place: Path
    clock: Clock
    sessions: dict[str, Seen] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.place / "data"

    def command(self, *arguments: str) -> str:
        """Runs `hotset ...`; returns what it prints."""
        environ = {
            **os.environ,
            "HOME": str(self.place),
            "HOTSET_DATA": str(self.data),
            "HOTSET_CONFIG": str(self.data / "config.toml"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        done = subprocess.run(
            [sys.executable, "-m", "hotset", *arguments, "--project", str(self.data)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"hotset {' '.join(arguments)}: {done.stderr}{done.stdout}")
        return done.stdout

    def compare(self) -> dict[str, dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.command("learn", "compare", "--json"))
        return {each["name"]: each for each in found}

    def work(self, numbers: range) -> None:
        """Sessions one after the other, through a proxy that starts for them."""
        model = Model(Work.of(0))
        with (
            ScriptedUpstream(model, strict=True, now=self.clock) as upstream,
            LocalProxy(self.data, anthropic_url=upstream.anthropic_url, clock=self.clock) as proxy,
        ):
            for number in numbers:
                model.work, model.ran, model.asked_back = Work.of(number), 0, 0
                self._work(model.work, proxy, upstream)
                self.clock.now += _DAY / A_DAY
            proxy.wait_until_kept()

    def _work(self, work: Work, proxy: LocalProxy, upstream: ScriptedUpstream) -> None:
        name, begun = f"work-{work.number}", time.perf_counter()
        talk = Talk(proxy.address, "anthropic", headers={"x-hotset-session": name})
        before, calls = upstream.bill, len(upstream.requests)
        talk.say(f"Run the ten reports of part {work.number}, please. I have questions then.")
        for report in work.reports:
            self.clock.now += _PAUSE
            talk.results("\n".join(report))
        right = 0
        for at in range(QUESTIONS):
            self.clock.now += _PAUSE
            talk.say(work.question(at))
            right += work.is_right(at, talk.text)
        talk.headers["x-hotset-outcome"] = "success" if right == QUESTIONS else "failure"
        talk.say("Thanks.")
        calls = len(upstream.requests) - calls
        self.sessions[name] = Seen(
            right == QUESTIONS,
            _dollars(upstream.bill, before, calls),
            time.perf_counter() - begun,
        )

    def sessions_by_arm(self) -> dict[str, list[Seen]]:
        found: dict[str, list[Seen]] = {}
        with closing(SqliteStore.open_to_look(self.data)) as store:
            for session in store.sessions():
                seen = self.sessions[session.key.rpartition(":")[2]]
                found.setdefault(arm_of_session(store, session.id).name, []).append(seen)
        return found


def _dollars(after: Usage, before: Usage, calls: int) -> float:
    price = price_of(MODELS[DialectName.ANTHROPIC], Prices(listed_prices()), "anthropic")
    numbers = (now - then for now, then in zip(astuple(after), astuple(before), strict=True))
    return units(price, Usage(*numbers), calls) * price.input / 1e6


def main() -> None:
    begun = time.perf_counter()
    logging.getLogger("hotset").setLevel(logging.ERROR)
    with TemporaryDirectory(prefix="hotset-trial-") as place:
        person = Person(Path(place), Clock(time.time() - (SESSIONS / A_DAY + 2) * _DAY))
        person.data.mkdir(mode=0o700)
        (person.data / "config.toml").write_text(SHORTER)
        found = _try(person)
    found["all of it"] = {"hotset": {"minutes": (time.perf_counter() - begun) / 60}}
    tell("trial", found)


def _try(person: Person) -> dict[str, dict[str, dict[str, float]]]:
    person.work(range(BATCH))
    person.command("learn", "trial", *TRIAL)
    ended: dict[str, int] = {}
    for first in range(BATCH, SESSIONS, BATCH):
        person.work(range(first, first + BATCH))
        person.command("learn", "now", "--all", "--minutes", "0.05")
        for name, arm in person.compare().items():
            if arm["until"] and name not in ended:
                ended[name] = first + BATCH
        print(f"{first + BATCH} sessions, ended: {ended}", file=sys.stderr)
    print(person.command("learn", "compare"), file=sys.stderr)
    print(person.command("learn", "status"), file=sys.stderr)
    compared, by_arm = person.compare(), person.sessions_by_arm()
    return {
        name: {"hotset": _figures(arm, by_arm.get(name, []), ended.get(name, 0))}
        for name, arm in compared.items()
    }


def _figures(arm: dict[str, Any], seen: list[Seen], ended: int) -> dict[str, float]:
    found: dict[str, float] = {"sessions": arm["sessions"]}
    if seen:
        found |= {
            "success": 100 * (arm["success"] or 0.0),
            "seen": 100 * sum(each.is_right for each in seen) / len(seen),
            "cost": 100 * (arm["cost"] or 0.0),
            "dollars": arm["dollars"] or 0.0,
            "provider": sum(each.dollars for each in seen) / len(seen),
        }
    compared = {"success", "cost"}
    for each in (each for each in arm["differences"] if each["figure"] in compared):
        for end in ("mean", "low", "high"):
            found[f"{each['figure']} {end}"] = 100 * each[end]
    return found | ({"ended after": float(ended)} if ended else {})


if __name__ == "__main__":
    main()
