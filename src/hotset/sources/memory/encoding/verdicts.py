"""Did it work? What the result of a call says about that, whichever client ran it. Pure; only heads and tails are looked at."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CODE = re.compile(
    r"(?:\bexit(?:ed)?(?: with)?(?: (?:code|status))?|\breturn ?code|\bexit[_-](?:code|status))[\"'>\]]*\s*[:=]?\s*(-?\d{1,3})\b",
    re.IGNORECASE,
)
_CODE_HEAD, _CODE_TAIL = 300, 200  # characters in which clients put the code of a command
_RUNNING = re.compile(r"\bProcess running with session ID|Command running in background|\bstill running\b", re.IGNORECASE)
_REFUSED = re.compile(
    r"\s*(?:<tool_use_error>|(?:tool )?error(?:\(s\))?\b\s*[:(]|\[?error\]?:|failed to |could not |cannot |ENOENT|EACCES|invalid "
    r"|exception\b|traceback \(|no such file|file (?:does not exist|not found|has not been read)|permission denied"
    r"|InputValidationError|string to replace not found|unknown (?:tool|command|option)"
    r"|The user doesn't want to (?:proceed|take)|\{\s*\"(?:error|is_?error)\"\s*:\s*(?!null|false|\"\"))",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"The user doesn't want to (?:proceed|take this action)|user (?:rejected|declined|denied)"
    r"|Sibling tool call errored|\[Request interrupted",
    re.IGNORECASE,
)
_BROKEN = re.compile(
    r"^(?:\S+: )?(?:line \d+: )?\S+: (?:command not found|No such file or directory|Permission denied|not found)$"
    r"|^Traceback \(most recent call last\)|^(?:npm|yarn|pnpm) (?:ERR!|error)|^error: (?:script"
    r"|unrecognized|unexpected|could not|failed)"
    r"|^error(?:\[E\d+\])?: |^fatal: |^FAILED\b|^E  +\w|\berror TS\d+:|^panic: |\bBUILD FAILED\b|^ERROR: |^make: \*\*\*"
    r"|^=+ .*\b\d+ (?:failed|errors?)\b.* =+$|^Tests?:? .*\b[1-9]\d* failed|^\s*[1-9]\d* (?:fail|failed|failing|failures?)\b"
    r"|^FAIL(?:ED)?(?: \(|$|\s+\S+)|^Found [1-9]\d* errors?\b|^✖ [1-9]\d* problem",
    re.MULTILINE,
)
"""What commands print that failed inside a pipe, whose code is that of its last part."""
_PASSED = re.compile(
    r"^=+ .*\b\d+ passed\b(?!.*\b(?:failed|errors?)\b).* =+$|^OK(?: \(|$)|^Tests?:? +\d+ passed"
    r"|^\s*\d+ pass(?:ed|ing)?$|^\s*0 fail"
    r"|\bAll checks passed\b|\bSuccess: no issues found|No fixes applied|\b0 errors?\b|\btest result: ok\b|^PASS\b|^ok\s+\S+",
    re.MULTILINE,
)
_NAMED = re.compile(
    r"(?:^|[\s.(\[])([A-Z][A-Za-z]{2,60}(?:Error|Exception|Failure|Interrupt))(?=:|\s|$)"
    r"|\b(lint/\w+/\w+)\b|\b(error TS\d{3,5})\b|\berror\[(E\d{3,5})\]"
    r"|\b(E(?:NOENT|ACCES|PERM|EXIST|ADDRINUSE|CONNREFUSED|CONNRESET|TIMEDOUT|NOTFOUND|PIPE|RESOLVE|MFILE|NOSPC|INVAL|ISDIR))\b"
    r"|(?i:\b(command not found|permission denied|no such file or directory|unrecognized (?:subcommand|option|arguments?)"
    r"|unknown (?:flag|option|command|shorthand flag)|unexpected argument)\b)"
)
_SPEAKING = re.compile(
    r"(?:^|\b)(?:[A-Z]\w+(?:Error|Exception|Failure)\b|error\b|fatal\b|panic\b|failed\b|failure\b|cannot\b|command not found"
    r"|no such file|permission denied|not found|unrecognized|unexpected|undefined\b|unable to\b|missing\b|invalid\b|refused\b)",
    re.IGNORECASE,
)
_DIAGNOSED = re.compile(
    r"\berror TS\d+: |^error(?:\[E\d+\])?: (?!script|could not compile|aborting|Recipe|failed to push|found \d+ error)\S"
    r"|:\d+(?::\d+)?:? (?:fatal )?error:? \S"
    r"|^E +(?:assert\b|\w)|^\s*\d+:\d+ +error +\S"
    r"|^\S+:\d+:\d+: [A-Z]+\d+ |^\s*(?:\u00d7|!) (?!Some (?:errors|warnings))\S|^\(fail\) \S"
    r"|^(?:not ok \d+|FAILED \S+::\S+|\s*\u25cf .+ \u203a) "
)
"""What compilers, linters and runners of tests say of one finding."""
_ESCAPES = re.compile(r"\x1b\[[\d;]*m|(?<!\w)\[\d{1,2}(?:;\d{1,2})*m")
_NOISE = re.compile(
    r"^\s*(?:at |File \"|\^|(?:\d+\s+)*\d*\s*[|│]|[+-] |\$ |> |Traceback|npm (?:ERR!|error) (?:code|path"
    r"|errno|location|command|workspace|A complete"
    r" log|Lifecycle)|error: script |husky|=+$|-+$|━+|╭|╰|\u00d7? ?Some (?:errors|warnings) were|node:internal"
    r"|Node\.js v|Exit code|Chunk ID|Wall time|Process exited|Original token"
    r"|Output:|<returncode|<output|</output|Found \d+ |Ran \d+ "
    r"|\[[\w:. -]{2,24}\] |\w+: undefined$|raise self\.|[_]{3,}|Checked \d+|Checking \w+|\d+ expect\(|\[full output)"
    r"|\b0 (?:errors?|fail)|no errors?\b|[\u2501\u2500\u2550]{5}",
    re.IGNORECASE,
)
_LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a result says about its call."""

    failed: bool
    kind: str = ""
    """The error's own name; `exit 1` where it has none."""
    said: str = ""
    """The line that tells most, as it stands there. Others' words."""
    code: int | None = None
    declined: bool = False
    """A person did not let it happen: no trouble of the call's own."""
    open: bool = False
    """It still runs."""


NOTHING = Verdict(failed=False)
"""Of a call that nothing speaks against."""


def verdict(text: str, *, shell: bool, reads: bool = False, piped: bool = False) -> Verdict:
    """Of a result's text. `reads`: it shows what stands elsewhere, and errors in there are nobody's; `piped`: its code is that of
    the last part of a pipe.
    """
    if _DECLINED.search(text[:400]):
        return Verdict(failed=True, declined=True, kind="declined")
    code = _code(text) if shell else None
    if code is None and _RUNNING.search(text[:400]):
        return Verdict(failed=False, open=True)
    refused = not (shell and code is not None) and _REFUSED.match(text) is not None
    broken = shell and not reads and (code is None or (code == 0 and piped)) and _is_broken(text)
    if not (refused or broken or (code or 0) != 0):
        return Verdict(failed=False, code=code)
    if reads and not refused and code == 1:  # a search that finds nothing, a diff that finds something
        return Verdict(failed=False, code=code)
    line = telling_line(text)
    return Verdict(failed=True, kind=_kind(line, text, code), said=line, code=code)


def telling_line(text: str) -> str:
    """The line of an error that says what is wrong: the last named error, the first finding, else what speaks of one."""
    plain = _ESCAPES.sub("", text) if "[" in text else text
    lines = [line.strip() for line in plain.splitlines() if line.strip() and not _NOISE.search(line[:_LONGEST_LINE])]
    named = [
        line
        for line in lines
        if len(line) <= 2 * _LONGEST_LINE and re.match(r"(?:E +)?(?:\w+\.)*[A-Z]\w+(?:Error|Exception)\b", line)
    ]
    speaking = [line for line in lines if _SPEAKING.search(line[:_LONGEST_LINE])]
    diagnosed = [line for line in lines if _DIAGNOSED.search(line[:_LONGEST_LINE])]
    found = named[-1:] or diagnosed[:1] or speaking[:1] or lines[-1:]
    return re.sub(r"^(?:<tool_use_error>|E +|[\u00d7!] )", "", found[0])[:_LONGEST_LINE] if found else ""


def _code(text: str) -> int | None:
    for part in (text[:_CODE_HEAD], text[-_CODE_TAIL:]):
        if found := _CODE.search(part):
            return int(found.group(1))
    return None


def _is_broken(text: str) -> bool:
    return _BROKEN.search(text) is not None and not _passes_last(text)


def _passes_last(text: str) -> bool:
    """The last that it says is that all is well: an error before that was one of those that tests provoke."""
    passed = [found.start() for found in _PASSED.finditer(text)]
    broken = [found.start() for found in _BROKEN.finditer(text)]
    return bool(passed) and passed[-1] > broken[-1]


def _kind(line: str, text: str, code: int | None) -> str:
    for part in (line, text[-1000:], text[:1000]):
        if found := _NAMED.search(part):
            return next(group for group in found.groups() if group)
    return f"exit {code}" if code else "error"
