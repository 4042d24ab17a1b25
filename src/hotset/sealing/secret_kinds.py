"""The kinds of secrets: how each begins, the pattern of the whole, and the check against false
matches.

Every `head` has bounded length, and so has what `whole` reads: the time is linear in the text's
length. Text may be inside JSON inside JSON: a line end may be written `\\n`, and a quote may have
backslashes before it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hotset.sealing import doubts


@dataclass(frozen=True, slots=True)
class SecretKind:
    name: str | Callable[[re.Match[bytes]], str]
    head: bytes
    """For RE2, which searches all heads at once: where a secret of this kind may begin."""
    whole: bytes
    """The whole secret from there; its group `secret` is what must be hidden."""
    begins: frozenset[int]
    """The bytes with which a head can begin."""
    holds: Callable[[re.Match[bytes]], bool]
    by_name: bool = False
    """Recognized by the text before it; a token with a shape of its own keeps its own kind."""
    wraps: bool = False
    """Base64, and a secret only if the decoded text contains one."""


_EDGE = rb"(?:\b|\\[nrtbf]|%[0-9A-Fa-f]{2})"
"""A token begins at a word boundary. In JSON and URLs the letters of an escape are not part of the
next word."""

_EDGE_BYTES = frozenset(b"\\%")
_QUOTE = rb"\\{0,31}[\"'`]"


def _is_shaped(match: re.Match[bytes]) -> bool:
    return doubts.is_real_token(match["secret"])


def _token(
    name: str, prefix: bytes, alphabet: bytes, least: int, *, most: int = 512, begins: bytes = b""
) -> SecretKind:
    """A token that begins with its own prefix and ends where its alphabet does."""
    some = rb"[" + alphabet + rb"]"
    return SecretKind(
        name,
        head=_EDGE + prefix + some + b"{%d}" % min(least, 16),
        whole=_EDGE
        + rb"(?P<secret>"
        + prefix
        + some
        + b"{%d,%d})(?!" % (least, most)
        + some
        + rb"|[A-Za-z0-9])",
        begins=frozenset(begins or prefix[:1]) | _EDGE_BYTES,
        holds=_is_shaped,
    )


_WORD = rb"A-Za-z0-9"
_DASH = rb"A-Za-z0-9_-"
_HEX = rb"a-f0-9"

_TOKENS = (
    _token("gcp-key", rb"AIza", _DASH, 35, most=40),
    _token("google-oauth", rb"GOCSPX-", _DASH, 24),
    _token("google-oauth", rb"ya29\.", rb"A-Za-z0-9_.-", 20, most=2048),
    _token("google-oauth", rb"1//0", _DASH, 30),
    _token("github-token", rb"gh[pousr]_", _WORD, 30),
    _token("github-token", rb"github_pat_", rb"A-Za-z0-9_", 36),
    _token("gitlab-token", (rb"gl(?:pat|dt|rt|oas|ptt|ft|soat|imt|"
        rb"agent|cbt|ffct)-"), rb"A-Za-z0-9_.-", 20),
    _token("slack-token", rb"xox[abceoprs]-", rb"A-Za-z0-9-", 20),
    _token("slack-token", rb"xapp-", rb"A-Za-z0-9-", 30),
    _token("stripe-key", rb"[rs]k_(?:live|test)_", _WORD, 16, begins=b"rs"),
    _token("stripe-key", rb"whsec_", rb"A-Za-z0-9+/=", 24),
    _token("anthropic-key", rb"sk-ant-", _DASH, 24),
    _token("openrouter-key", rb"sk-or-", _DASH, 24),
    _token("openai-key", rb"sk-(?:proj|svcacct|admin|None)-", _DASH, 20),
    _token("openai-key", rb"sk-", _WORD, 32),
    _token("huggingface-token", rb"(?:hf_|api_org_)", _WORD, 30, begins=b"ha"),
    _token("npm-token", rb"npm_", _WORD, 36),
    _token("pypi-token", rb"pypi-AgE", _DASH, 40, most=1024),
    _token("sendgrid-key", rb"SG\.", rb"A-Za-z0-9_.-", 40),
    _token("twilio-key", rb"SK", _HEX, 32, most=32),
    _token(
        "discord-webhook",
        (rb"discord(?:app)?\.com\\{0,31}/api(?:\\{0,31}/v[0-9]{1,2})?\\{0,31}/webhooks\\{0,31}/"
            rb"[0-9]{15,20}\\{0,31}/"),
        _DASH,
        40,
    ),
    _token("digitalocean-token", rb"do[opr]_v1_", _HEX, 64),
    _token("shopify-token", rb"shp(?:at|ca|pa|ss)_", rb"A-Fa-f0-9", 32),
    _token("databricks-token", rb"dapi", _HEX, 32),
    _token("mailgun-key", rb"key-", _HEX, 32, most=32),
    _token("square-token", rb"sq0[a-z]{3}-", _DASH, 22),
    _token("linear-key", rb"lin_api_", _WORD, 32),
    _token("notion-token", rb"ntn_", _WORD, 40),
    _token("vault-token", rb"hv[sbr]\.", _DASH, 24),
    _token("grafana-token", rb"gl(?:sa|c)_", rb"A-Za-z0-9_=+/", 32),
    _token("newrelic-key", rb"NRAK-", rb"A-Z0-9", 27),
    _token("groq-key", rb"gsk_", _WORD, 40),
    _token("xai-key", rb"xai-", _WORD, 60),
    _token("replicate-token", rb"r8_", _WORD, 30),
    _token("perplexity-key", rb"pplx-", _WORD, 40),
    _token("doppler-token", rb"dp\.(?:pt|st|ct|sa|scim|audit)\.", rb"A-Za-z0-9._-", 40),
    _token("planetscale-token", rb"pscale_(?:tkn|pw|oauth)_", rb"A-Za-z0-9_.-", 32),
    _token("supabase-key", rb"sb(?:p|_secret)_", rb"A-Za-z0-9_-", 24),
    _token("atlassian-token", rb"AT(?:ATT|CTT|BB)3", rb"A-Za-z0-9_=-", 50),
    _token("figma-token", rb"fig[dor]_", _DASH, 40),
    _token("postman-key", rb"PMAK-", rb"a-f0-9-", 40),
    _token("sentry-token", rb"sntry[su]_", rb"A-Za-z0-9_=+/", 60),
    _token("docker-token", rb"dckr_(?:pat|oat)_", _DASH, 24),
    _token("rubygems-key", rb"rubygems_", _HEX, 48),
    _token("age-key", rb"AGE-SECRET-KEY-(?:PQ-)?1", rb"A-Z0-9", 50, most=2048),
)  # fmt: skip


def _kind(
    name: str | Callable[[re.Match[bytes]], str],
    head: bytes,
    whole: bytes,
    begins: bytes,
    holds: Callable[[re.Match[bytes]], bool] = _is_shaped,
    *,
    by_name: bool = False,
    wraps: bool = False,
) -> SecretKind:
    return SecretKind(name, head, whole, frozenset(begins), holds, by_name, wraps)


_PEM = rb"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_BREAK = rb"(?:[\s\"'`,;+>#|*]|\\{1,31}[nrt\"']){1,64}"
_CHUNK = rb"[A-Za-z0-9+/=_-]{12,4096}"
_LABEL = rb"[A-Z][A-Za-z-]{2,20}: [\w ,.@()/:-]{1,120}"
_SHORT_END = rb"(?:\s{1,8}|\\{1,31}[nr]){1,4}[+ ]?[A-Za-z0-9+/=]{1,16}(?=[\s\"'`\\]|$)"
_END = rb"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"


def _has_body(match: re.Match[bytes]) -> bool:
    """True if a key follows, maybe cut off; patterns and mentions of keys have no body."""
    body = re.sub(rb"-----[A-Z ]*-----|[^A-Za-z0-9+/]", b"", match[0])
    return len(body) >= 32 and doubts.entropy(body) > 3.5 and not _NO_BODY.search(match[0])


_NO_BODY = re.compile(rb"(?i:example)|\.\.\.|x{8}|X{8}")


def _is_jwt(match: re.Match[bytes]) -> bool:
    header = doubts.decode_base64(match["secret"].split(b".", 1)[0])
    return header is not None and header.startswith(b"{") and b'"' in header


def _is_card(match: re.Match[bytes]) -> bool:
    digits = re.sub(rb"[ -]", b"", match["secret"])
    return (
        doubts.has_valid_check_digit(digits) and len(set(digits)) > 4 and digits not in _KNOWN_CARDS
    )


_KNOWN_CARDS = frozenset(
    (
        b"4242424242424242",
        b"4111111111111111",
        b"5555555555554444",
        b"4000056655665556",
        b"5105105105105100",
        b"6011111111111117",
    )
)


def _in_url(match: re.Match[bytes]) -> bool:
    """True for a password in a URL; an ordinary word counts, the words of manuals do not."""
    secret = match["secret"]
    if doubts.is_placeholder(secret) or secret.lower() in _MANUALS or secret == match["user"]:
        return False
    if re.search(rb"[{}$<>()%]", secret) and not re.search(rb"%[0-9A-F]{2}", secret):
        return False
    if secret.isalpha() or secret.isdigit():
        return len(secret) >= 12 or doubts.is_unlike_words(secret)
    return len(secret) >= 6


_MANUALS = frozenset(
    (
        b"pass password passwd pwd secret token user admin root test guest postgres mysql mongo "
        b"redis rabbit pass123"
    ).split()
)


def _is_basic_auth(match: re.Match[bytes]) -> bool:
    """True for `user:password` in base64."""
    inner = doubts.decode_base64(match["secret"])
    return inner is not None and b":" in inner[:128] and inner.isascii() and not _DULL.search(inner)


_DULL = re.compile(
    rb"(?i)^(?:user(?:name)?|admin|foo|test|aladdin|name)?:(?:pass(?:word)?|bar|open "
    rb"?sesame|secret|test|admin)?$"
)


def _is_random(match: re.Match[bytes]) -> bool:
    return doubts.looks_random(match["secret"])


def _is_password(match: re.Match[bytes]) -> bool:
    secret = match["secret"]
    return (
        doubts.looks_random(secret)
        or doubts.is_password(secret)
        or (len(secret) >= _LEAST_MADE_UP and doubts.is_word_password(secret, quoted=True))
    )


_LEAST_MADE_UP = 8  # characters of a password without a symbol


def _is_bearer(match: re.Match[bytes]) -> bool:
    secret = match["secret"]
    mixed = len(secret) >= 20 and _MIXED.search(secret) is not None and b"." not in secret
    return doubts.looks_random(secret) or (mixed and not doubts.is_placeholder(secret))


_MIXED = re.compile(rb"[0-9].*[A-Za-z]|[A-Za-z].*[0-9]")


def _has_random_part(match: re.Match[bytes]) -> bool:
    """True if a part of the path is random; a path of words and numbers is a page."""
    parts = re.split(rb"[/\\@]", match["secret"])
    return any(
        len(part) >= _LEAST_IN_PATH and doubts.looks_random(part) for part in parts
    ) and not doubts.is_placeholder(match["secret"])


_LEAST_IN_PATH = 16  # characters


def _in_base64(prefixes: Iterable[bytes]) -> bytes:
    """A pattern for the beginnings of base64 texts with one of these prefixes, at any offset of its
    three-byte groups."""
    heads = set()
    for prefix in prefixes:
        for before, first in ((0, 0), (1, 2), (2, 3)):
            # characters that no byte after the prefix changes
            sure = 8 * (before + len(prefix)) // 6
            head = base64.b64encode(b"\0" * before + prefix + b"\0\0")[first:sure]
            if len(head) >= _LEAST_HEAD:
                heads.add(head)
    return rb"(?:" + b"|".join(map(re.escape, sorted(heads))) + rb")"


_LEAST_HEAD = 4  # characters
_IN_BASE64 = _in_base64(
    b"ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xoxb- xoxp- xoxa- xapp- sk_live_ sk_test_ "
    b"rk_live_ whsec_ sk-ant- sk-or-"
    b" sk-proj- sk-svcacct- sk-admin- hf_ npm_ pypi- AKIA ASIA AIza GOCSPX- ya29. dop_v1_ "
    b"shpat_ dckr_pat_ lin_api_ gsk_ xai-"
    b" pplx- hvs. eyJ".split()
)
_IN_BASE64_BEGINS = b"".join(head[:1] for head in _IN_BASE64[3:-1].split(b"|"))


_SHAPED = (
    _kind(
        "aws-key",
        _EDGE + rb"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
        _EDGE + rb"(?P<secret>(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
        rb"(?:[,;:|\t ]{1,2}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=]))?)(?![A-Za-z0-9])",
        b"A\\%",
    ),
    _kind(
        "private-key",
        rb"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY",
        rb"(?P<secret>"
        + _PEM
        + rb"(?:" + _BREAK + rb"(?:" + _LABEL + rb"|" + _CHUNK + rb")){0,2000}"
        + rb"(?:(?:" + _BREAK + rb"[A-Za-z0-9+/=]{1,16})?" + _BREAK + _END + (rb"|"
            rb"(?:") + _SHORT_END + rb"){0,2}))",
        b"-",
        _has_body,
    ),
    _kind(
        "private-key",
        rb"PuTTY-User-Key-File-",
        (rb"PuTTY-User-Key-File-[\s\S]{1,8192}?Private-Lines: "
            rb"[0-9]{1,3}(?P<secret>(?:\s{1,2}[A-Za-z0-9+/=]{1,64}(?=\s)){1,200})"),
        b"P",
        _is_shaped,
    ),
    _kind(
        "jwt",
        _EDGE + rb"eyJ[A-Za-z0-9_-]{8}",
        _EDGE + rb"(?P<secret>eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{0,"
            rb"8192}\.[A-Za-z0-9_-]{8,8192}"
        rb"(?:\.[A-Za-z0-9_-]{4,8192}){0,2})",
        b"e\\%",
        _is_jwt,
    ),
    _kind(
        "base64",
        _EDGE + rb"(?:LS0tLS1CRUdJTi|eyJ|ewog|ewoJ|ewoi)[A-Za-z0-9+/_-]{16}",
        _EDGE + rb"(?P<secret>(?:LS0tLS1CRUdJTi|ey|ewo)[A-Za-z0-9+/_-]{32,65536}={0,2})",
        b"Le\\%",
        wraps=True,
    ),
    _kind(
        "base64",
        _IN_BASE64 + rb"[A-Za-z0-9+/_-]{16}",
        rb"(?P<secret>" + _IN_BASE64 + rb"[A-Za-z0-9+/_-]{16,65536}={0,2})",
        _IN_BASE64_BEGINS,
        wraps=True,
    ),
    _kind(
        "percent",
        rb"(?:%[0-9A-Fa-f]{2}){12}",
        rb"(?P<secret>(?:%[0-9A-Fa-f]{2}){12,2048})",
        b"%",
        wraps=True,
    ),
    _kind(
        "slack-webhook",
        rb"hooks\.slack\.com\\{0,31}/(?:services|workflows|triggers)\\{0,31}/[A-Za-z0-9]{4}",
        (rb"hooks\.slack\.com\\{0,31}/(?:services|workflows|triggers)(?P<secret>(?:\\{0,31}/"
            rb"[A-Za-z0-9_+-]{4,128}){2,5})"),
        b"h",
    ),
    _kind(
        "webhook",
        rb"/(?i:(?:incoming-?)?web-?hooks?(?:b2)?|hooks|with\\{0,31}/key)\\{0,31}/[A-Za-z0-9_-]{3}",
        rb"/(?i:(?:incoming-?)?web-?hooks?(?:b2)?|hooks|with\\{0,31}/key)"
        rb"(?P<secret>(?:\\{0,31}/[A-Za-z0-9_@.%+-]{1,128}){1,6})",
        b"/",
        _has_random_part,
    ),
    _kind(
        "webhook",
        rb"\bhook\.[a-z0-9]{2,8}\.make\.com\\{0,31}/[A-Za-z0-9]{8}",
        rb"hook\.[a-z0-9]{2,8}\.make\.com\\{0,31}/(?P<secret>[A-Za-z0-9]{16,64})",
        b"h",
    ),
    _kind(
        "telegram-token",
        _EDGE + rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{16}",
        (rb"(?:\\[nrtbf]|%[0-9A-Fa-f]{2})?(?P<secret>[0-9]{8,10}:AA[A-Za-z0-9_-]{32,36})"
            rb"(?![A-Za-z0-9_-])"),
        b"0123456789\\%",
    ),
    _kind(
        "telegram-token",
        rb"/bot[0-9]{8,10}:AA[A-Za-z0-9_-]{16}",
        rb"/bot(?P<secret>[0-9]{8,10}:AA[A-Za-z0-9_-]{32,36})(?![A-Za-z0-9_-])",
        b"/",
    ),
    _kind(
        "discord-token",
        _EDGE + rb"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{20}",
        _EDGE + (rb"(?P<secret>[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})"
            rb"(?![A-Za-z0-9_-])"),
        b"MNO\\%",
    ),
    _kind(
        "azure-key",
        _EDGE + rb"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{16}",
        (rb"(?:\\[nrtbf]|%[0-9A-Fa-f]{2})?(?P<secret>[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~."
            rb"-]{31,34})(?![A-Za-z0-9_~.-])"),
        bytes(range(0x30, 0x3A)) + bytes(range(0x41, 0x5B)) + bytes(range(0x61, 0x7B)) + b"_~.\\%",
    ),
    _kind(
        "terraform-token",
        _EDGE + rb"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{16}",
        (rb"(?:\\[nrtbf]|%[0-9A-Fa-f]{2})?(?P<secret>"
            rb"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{50,90})"),
        bytes(range(0x30, 0x3A)) + bytes(range(0x41, 0x5B)) + bytes(range(0x61, 0x7B)) + b"\\%",
    ),
    _kind(
        "password-hash",
        rb"\$(?:2[aby]\$[0-9]{2}\$|apr1\$|[156]\$)[A-Za-z0-9./]{8}",
        rb"(?P<secret>\$(?:2[aby]\$[0-9]{2}\$[A-Za-z0-9./]{53}|apr1\$[A-Za-z0-9./]{1,"
            rb"8}\$[A-Za-z0-9./]{22}|"
        rb"[156]\$(?:rounds=[0-9]{1,9}\$)?[A-Za-z0-9./]{1,16}\$[A-Za-z0-9./]{22,86}))",
        b"$",
    ),
    _kind(
        "card-number",
        _EDGE + rb"(?:4[0-9]{3}|5[1-5][0-9]{2}|6011)[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{4}\b",
        _EDGE + rb"(?P<secret>[456][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{4})(?![0-9-])",
        b"456\\%",
        _is_card,
    ),
)  # fmt: skip

_BETWEEN = rb"(?:\\{1,31}[nrt]|\\{0,31}[\s\"',]){1,40}"
"""Separates two words on one line, on two, or in a list of lines, as in a notebook."""

_URL_TEXT = rb"[^\s:/@\"'<>\\`\x80-\xff]"
_BY_PLACE = (
    _kind(
        "url-password",
        rb":\\{0,31}/\\{0,31}/[A-Za-z0-9._%+~!$&*-]{0,64}:[^\s/@\"'<>\\`]",
        rb":\\{0,31}/\\{0,31}/(?P<user>" + _URL_TEXT + rb"{0,64}):"
        rb"(?P<secret>[^\s/@\"'<>\\`\x80-\xff]{1,256})@(?=[A-Za-z0-9_.\[-])",
        b":",
        _in_url,
    ),
    _kind(
        "url-password",
        rb":\\{0,31}/\\{0,31}/[A-Za-z0-9_-]{20,64}@[A-Za-z0-9]",
        rb":\\{0,31}/\\{0,31}/(?P<secret>[A-Za-z0-9_-]{20,64})@[A-Za-z0-9]",
        b":",
        _is_random,
        by_name=True,
    ),
    _kind(
        "login",
        rb"[ ](?:-u[ =]?|--user[ =]|-a[ ]|--auth[ =])(?:" + _QUOTE + (rb")"
            rb"?[^\s:\"'`\\]{1,64}(?:") + _QUOTE + rb")?:"
        rb"(?:" + _QUOTE + rb")?[^\s\"'`\\]{6}",
        rb"[ ](?:-u[ =]?|--user[ =]|-a[ ]|--auth[ =])(?:" + _QUOTE + (rb")"
            rb"?[^\s:\"'`\\]{1,64}(?:") + _QUOTE + rb")?:"
        rb"(?:" + _QUOTE + rb")?(?P<secret>[^\s\"'`\\\x80-\xff]{6,256})",
        b" ",
        _is_password,
        by_name=True,
    ),
    _kind(
        "password",
        (rb"(?:sshpass[ ]-p[ ]?|mysql[a-z]{0,8}[ ](?:[^\n]{0,60}[ ])?-p|redis-cli[ ](?:[^\n"
            rb"]{0,60}[ ])?(?:-a|--pass)[ ])")
        + _QUOTE + rb"?[^\s\"'`\\]{6}",
        rb"(?:sshpass[ ]-p[ ]?|mysql[a-z]{0,8}[ ](?:[^\n]{0,60}?[ ])?-p|redis-cli[ ](?:[^\n"
            rb"]{0,60}?[ ])?(?:-a|--pass)[ ])"
        rb"(?:" + _QUOTE + rb")?(?P<secret>[^\s\"'`\\\x80-\xff]{6,256})",
        b"smr",
        _is_password,
        by_name=True,
    ),
    _kind(
        "authorization",
        rb"(?i:basic)\s{1,4}[A-Za-z0-9+/]{8}",
        rb"(?i:basic)\s{1,4}(?P<secret>[A-Za-z0-9+/]{8,1024}={0,2})(?![A-Za-z0-9+/=])",
        b"bB",
        _is_basic_auth,
        by_name=True,
    ),
    _kind(
        "authorization",
        rb"(?i:bearer|authorization" + _QUOTE + (rb"?\s{0,"
            rb"4}[:=]\s{0,4}(?:") + _QUOTE + rb")?(?:token|apikey|key))"
        rb"(?:\s{1,4}|%20)[A-Za-z0-9._~+/-]{12}",
        (rb"(?i:bearer|authorization[^A-Za-z]{1,24}(?:token|apikey|key))(?:\s{1,4}|%20)"
            rb"(?P<secret>[A-Za-z0-9._~+/-]{12,4096}={0,2})(?![A-Za-z0-9._~+/=-])"),
        b"aAbB",
        _is_bearer,
        by_name=True,
    ),
    _kind(
        "session",
        rb"\b(?i:session|s?sid)=[A-Za-z0-9%_.-]{16}",
        rb"(?i:session|s?sid)=(?P<secret>[A-Za-z0-9%_.-]{16,512})(?![A-Za-z0-9%_.-])",
        b"sS",
        _is_random,
        by_name=True,
    ),
    _kind(
        "session",
        rb"(?i:cookie)(?:" + _QUOTE + (rb")?\s{0,"
            rb"4}:\s{0,4}(?:") + _QUOTE + rb")?[A-Za-z0-9_.-]{1,64}=",
        rb"(?i:cookie)(?:" + _QUOTE + rb")?\s{0,4}:\s{0,4}(?:" + _QUOTE + rb")?"
        rb"(?:[A-Za-z0-9_.-]{1,64}=(?:[^;\s\"'\\]{0,15}|\[secret:[a-z0-9-]{1,40}\]);[ ]?){0,16}"
        rb"[A-Za-z0-9_.-]{1,64}=(?P<secret>[A-Za-z0-9%_.~+/=-]{16,1024})(?![A-Za-z0-9%_.~+/=-])",
        b"cC",
        _is_random,
        by_name=True,
    ),
    _kind(
        "docker-auth",
        rb"\"auth\\{0,31}\"\s{0,4}:\s{0,4}\\{0,31}\"[A-Za-z0-9+/]{8}",
        (rb"\"auth\\{0,31}\"\s{0,4}:\s{0,4}\\{0,31}\"(?P<secret>[A-Za-z0-9+/]{8,4096}={0,2})"
            rb"(?=\\{0,31}\")"),
        b'"',
        _is_basic_auth,
        by_name=True,
    ),
    _kind(
        "kube-key",
        rb"client-key-data" + rb"(?:" + _QUOTE + (rb")?\s{0,"
            rb"4}:\s{0,4}(?:") + _QUOTE + rb")?[A-Za-z0-9+/]{16}",
        rb"client-key-data[^A-Za-z0-9+/]{1,24}(?P<secret>[A-Za-z0-9+/]{16,16384}={0,2})",
        b"c",
    ),
    _kind(
        "login",
        rb"(?:login|account)\s{1,8}[^\s]{1,64}[\s\\nrt\"',]{1,40}password\s{1,8}[^\s]{6}",
        rb"(?:login|account)\s{1,8}[^\s]{1,64}?" + _BETWEEN + (rb"password\s{1,8}(?P<secret>"
            rb"[^\s\"'\\\x80-\xff]{6,256})"),
        b"la",
        lambda match: not doubts.is_placeholder(match["secret"]) and not match["secret"].isalpha(),
        by_name=True,
    ),
    _kind(
        "login",
        rb":[0-9]{4,5}:[A-Za-z0-9_*-]{1,63}:[A-Za-z0-9_.*-]{1,63}:[^\s:/]{6}",
        (rb":[0-9]{4,5}:[A-Za-z0-9_*-]{1,63}:[A-Za-z0-9_.*-]{1,63}:(?P<secret>[^\s:/"
            rb"\"'\\\x80-\xff]{6,256})(?=[\s\"'\\]|$)"),
        b":",
        _is_password,
        by_name=True,
    ),
)  # fmt: skip

_NAMES = (
    rb"(?i:pass(?:w(?:or)?d|_?phrase)|(?:\b|[_-])pass|(?-i:Pass)|pwd|secret|token|credential|"
    rb"(?:api|access|account|auth|private|encryption|signing|license|shared|"
    rb"master|service|storage|primary|webhook|app|consumer|admin|hmac|jwt|subscription)[_.-]?key|"
    rb"sess(?:ion)?[_.-]?(?:id|key|cookie)|connect\.sid|auth[_.-]?code|[?&;]sig|[_.]auth)"
)
_NAMES_BEGIN = b"pstcaelmwhjPSTCAELMWHJ_-.?&;"
_REST = rb"[A-Za-z0-9_.-]{0,24}"
_GAP = rb"[ \t]{0,8}"
_TYPE = rb"(?::[ ]?[A-Za-z]{2,12}(?:[ ]?\|[ ]?None)?[ ]?)?"
_BLOCK = (
    rb"[ ]{0,4}:[ ]{1,4}[|>][+-]?[0-9]?[+-]?[ ]{0,8}(?:\r?\n|(?:\\{1,31}r)?\\{1,31}n)(?:[ "
    rb"]|\\{1,31}t|\t){1,32}"
)
"""In YAML, a value on the next line."""

_SIGN = (
    rb"(?:"
    + _GAP
    + _TYPE
    + _GAP
    + rb"(?:=>|:=|\|\|=|\?\?=|[=:]|%3[ADad])"
    + _GAP
    + rb"|>|[ ]{1,2}is:?[ ]{1,2}|"
    + _BLOCK
    + rb")"
)
"""Between a name and its value in code, JSON, YAML, INI, XML, a shell, and in prose."""

_CALL = rb"(?:" + _GAP + rb"[,(]" + _GAP + rb"|[ ]{1,4}value[ ]?=[ ]?)"
"""The same for values that must be quoted: `define('DB_PASSWORD', '...')`, `setPassword('...')`,
`<add key= value=>`."""

_SEEN = rb"[!#-&(-\[\]-_a-~]"
"""Characters of a value in any quotes."""

_IN_DOUBLE, _IN_SINGLE = rb"[!#-\[\]-~]", rb"[!-&(-\[\]-~]"
_BARE = rb"[!#%&*+./0-9:=?@A-Z^_a-z|~$-]"
"""A value without quotes ends at a bracket, a comma or a semicolon."""

_VALUE = (
    rb"(?P<quote>[bBfrRu]{0,2}\\{0,31}(?:(?P<double>\")|(?P<single>')|`))?"
    rb"(?P<secret>(?(double)" + _IN_DOUBLE + rb"{8,512}(?=\\{0,31}\")|"
    rb"(?(single)" + _IN_SINGLE + (rb"{8,512}(?=\\{0,31}')|"
        rb"(?(quote)") + _SEEN + rb"{8,512}(?=\\{0,31}`)|"
    + _BARE + rb"{8,512}(?!" + _BARE + rb"|[(\[])))))"
)  # fmt: skip


def _kind_by_name(match: re.Match[bytes]) -> str:
    name = match["name"].lower()
    for word, kind in _KIND_OF_NAME:
        if word in name:
            return kind
    return "secret"


_KIND_OF_NAME = (
    (b"aws", "aws-secret"),
    (b"secret_access", "aws-secret"),
    (b"secretaccess", "aws-secret"),
    (b"account", "azure-key"),
    (b"sharedaccess", "azure-key"),
    (b"pass", "password"),
    (b"pwd", "password"),
    (b"sess", "session"),
    (b".sid", "session"),
    (b"token", "token"),
    (b"key", "key"),
)


def _is_assigned(match: re.Match[bytes]) -> bool:
    """True if the value after a secret's name is one: a random value, or a chosen one if the name
    says password."""
    secret = match["secret"]
    if (
        secret[:1] in b"=.&|"
        or b"://" in secret
        or match.string.startswith(b"[secret:", max(0, match.start() - 1))
    ):
        return False  # an operator, a look-up, an address, a placeholder of ours
    if doubts.looks_random(secret) or (
        _PASSWORD.search(match["name"]) is not None and doubts.is_password(secret)
    ):
        return True
    return _PLAIN_PASSWORD.fullmatch(match["name"]) is not None and doubts.is_word_password(
        secret, quoted=match["quote"] is not None
    )


def _is_given(match: re.Match[bytes]) -> bool:
    return match["quote"] is not None and _is_assigned(match)


def _is_stated(match: re.Match[bytes]) -> bool:
    secret = match["secret"]
    made_up = len(secret) >= _LEAST_MADE_UP and doubts.is_word_password(
        secret, quoted=match["quote"] is not None
    )
    return doubts.looks_random(secret) or doubts.is_password(secret) or made_up


_CALLED = (
    rb"(?:(?i:passwor[dt]|passphrase|kennwort|clave|mot[ ]de[ "
    rb"]passe|contrasena)|[Cc]ontrase(?:\xc3\xb1|n\xcc\x83)a"
    rb"|CONTRASE\xc3\x91A|\xe5\xaf\x86(?:\xe7\xa0\x81|\xe7\xa2\xbc)|\xe5\x8f\xa3\xe4\xbb\xa4)"
)
"""Words for password in English, German, Spanish, French and Chinese."""
_CALLED_BEGIN = b"pPkKcCmM\xe5"
_IS = (
    rb"(?:[ ](?i:is|was|ist|war|lautet|es|era|est)[ :]{1,3}"
    rb"|[ ]{0,2}(?:[:=]|\xef\xbc\x9a|\xe6\x98\xaf|\xe4\xb8\xba|\xe7\x82\xba|\xe7\x88\xb2)[ ]{0,2})"
)
_OPEN = rb"(?:" + _QUOTE + rb"|\xe2\x80[\x98\x9c\x9e\x9a]|\xc2\xab[ ]?|\xe3\x80\x8c)"
_PASSWORD = re.compile(rb"(?i)pass|pwd|secret")
_PLAIN_PASSWORD = re.compile(
    rb"(?i)[a-z0-9_.-]{0,24}(?:pass(?:w(?:or[dt]|d)|[_-]?(?:phrase|code))?|pwd)(?:|[0-9_]{1,"
    rb"4}|[_-](?!"
    rb"hash|policy|field|file|path|ur[il]|name|id|type|min|max|len|reset|encod|encrypt|input|"
    rb"regex|pattern|label|hint|algo|format|"
    rb"version|key|col|class|c(?:om)?m(?:an)?d|manag|valid|check|re?quire|change|help|prompt|"
    rb"confirm_?url|salt|size|mode|method|"
    rb"through|fd|expir|strength|context|hasher|generator|ref|from|var|env|secret)[a-z0-9_."
    rb"-]{1,24})"
)
"""A name whose value is a password, not a property of passwords: `DB_PASSWORD_PROD`, not
`password_policy`."""
_CLOSE = rb"(?:" + _QUOTE + rb")?\]?"
_ASSIGNED = (
    _kind(
        _kind_by_name,
        _NAMES + _REST + _CLOSE + _SIGN + rb"(?:[bBfrRu]{0,2}" + _QUOTE + rb")?" + _SEEN + rb"{8}",
        rb"(?P<name>" + _NAMES + _REST + rb")" + _CLOSE + _SIGN + _VALUE,
        _NAMES_BEGIN,
        _is_assigned,
        by_name=True,
    ),
    _kind(
        _kind_by_name,
        _NAMES + _REST + _CLOSE + _CALL + _QUOTE + _SEEN + rb"{8}",
        rb"(?P<name>" + _NAMES + _REST + rb")" + _CLOSE + _CALL + _VALUE,
        _NAMES_BEGIN,
        _is_given,
        by_name=True,
    ),
    _kind(
        _kind_by_name,
        rb"--[a-z-]{0,24}(?:password|passwd|token|secret|key)[ ]{1,2}(?:"
        + _QUOTE
        + rb")?"
        + _SEEN
        + rb"{8}",
        rb"--(?P<name>[a-z-]{0,24}(?:password|passwd|token|secret|key))[ ]{1,2}" + _VALUE,
        b"-",
        _is_assigned,
        by_name=True,
    ),
    _kind(
        "password",
        _CALLED + rb"(?:[ ][^\n=:;.!?]{1,48})?" + _IS + _OPEN + rb"?" + _SEEN + rb"{6}",
        _CALLED + rb"(?:[ ][^\n=:;.!?]{1,48}?)?" + _IS + rb"(?P<quote>" + _OPEN + rb")?"
        rb"(?P<secret>[!#-&(-+\--\[\]-_a-~]{5,255}[A-Za-z0-9!#$%&*+=@^_~-])(?=[\s\"'`\\,;.:!?)"
        rb"\x80-\xff]|$)",
        _CALLED_BEGIN,
        _is_stated,
        by_name=True,
    ),
    _kind(
        "password",
        rb"(?i:password|identified[ ](?:with[ ][a-z0-9_]{1,32}[ ])?by(?:[ ]password)?)\s{1,4}"
        + _QUOTE
        + _SEEN
        + rb"{8}",
        rb"(?i:password|identified[ ](?:with[ ][a-z0-9_]{1,32}[ ])?by(?:[ ]password)?)\s{1,4}"
        + _VALUE,
        b"pPiI",
        lambda match: match["quote"] is not None and _is_password(match),
        by_name=True,
    ),
)

KINDS: tuple[SecretKind, ...] = (*_TOKENS, *_SHAPED, *_BY_PLACE, *_ASSIGNED)
"""Kinds recognized by shape come first: at each place the first match wins."""
