"""Made-up secrets of every kind, in the places where real ones occur: to plant, and to look for
wherever text goes. Seeded."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

_LETTERS = string.ascii_letters + string.digits
_DASHED = _LETTERS + "-_"
_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + "234567"
_BASE64 = _LETTERS + "+/"
_LINE = 64
_WORDS = (
    "deploy",
    "of",
    "service",
    "on",
    "staging",
    "failed",
    "again",
    "after",
    "retry",
    "with",
    "this",
    "log",
    "so",
    "please",
    "look",
)


@dataclass(frozen=True, slots=True)
class Planted:
    kind: str
    secret: str
    """As in the text; for a block of several lines, all of them."""
    text: str

    def remains(self, text: str) -> bool:
        """True if a piece of the secret, long enough to be of use, is still in the text."""
        lines = [
            line
            for line in self.secret.replace("\\n", "\n").splitlines()
            if line.strip() and not line.startswith("-----")
        ]
        return any(
            line[at : at + _TELLING] in text
            for line in lines
            for at in range(max(1, len(line) - _TELLING + 1))
        )


_TELLING = 12  # characters; fewer are found in any text by chance, prefixes of tokens above all


def planted(seed: int, n: int) -> list[Planted]:
    """`n` secrets, each kind in turn, each in one of the places where its kind occurs."""
    rng = Random(seed)  # noqa: S311 - the same ones each time
    turns = islice(cycle((*((kind, _anywhere(make)) for kind, make in _SHAPED), *_NAMED)), n)
    return [_plant(rng, kind, *make(rng)) for kind, make in turns]


def kinds() -> tuple[str, ...]:
    """The kinds that `planted` makes, in order."""
    return tuple(name for name, _ in (*_SHAPED, *_NAMED))


def _anywhere(make: Callable[[Random], str]) -> Callable[[Random], tuple[str, str]]:
    """A token with a distinctive shape may be anywhere."""

    def place(rng: Random) -> tuple[str, str]:
        secret = make(rng)
        return secret, rng.choice(_BLOCK_PLACES if "\n" in secret else _PLACES)(rng, secret)

    return place


def _plant(rng: Random, kind: str, secret: str, text: str) -> Planted:
    text = rng.choice(_WRAPPINGS)(text)
    escaped = json.dumps(secret)[1:-1]
    # neither is at that place in a diff or an indented block
    shown = escaped if secret not in text and escaped in text else secret
    return Planted(kind, shown, f"{_prose(rng)}\n{text}\n{_prose(rng)}\n")


def _random_token(rng: Random, alphabet: str, size: int) -> str:
    """Random characters with letters and digits, as long tokens nearly always have."""
    while True:
        drawn = "".join(rng.choices(alphabet, k=size))
        if (
            size < 12
            or alphabet.isdigit()
            or (any(c.isdigit() for c in drawn) and any(c.isalpha() for c in drawn))
        ):
            return drawn


def _prose(rng: Random) -> str:
    return " ".join(rng.choices(_WORDS, k=9))


def _written(*shapes: str) -> Callable[[Random, str], str]:
    """Text around a secret, in one of these shapes."""
    return lambda rng, secret: (rng.choice(shapes) if len(shapes) > 1 else shapes[0]).format(secret)


def _json(rng: Random, secret: str) -> str:
    return json.dumps({"name": "svc", "value": secret, "port": 8080}, indent=rng.choice((None, 2)))


def _json_in_json(_rng: Random, secret: str) -> str:
    return json.dumps(
        {"role": "tool", "content": json.dumps({"output": f"line one\n{secret}\nline two"})}
    )


def _wrap_base64(_rng: Random, secret: str) -> str:
    return base64.b64encode(json.dumps({"type": "account", "value": secret}).encode()).decode()


def _block_in_json(_rng: Random, secret: str) -> str:
    return json.dumps({"type": "service_account", "project_id": "p", "private_key": secret})


def _block_in_yaml(_rng: Random, secret: str) -> str:
    return "tls:\n  key: |\n" + "\n".join(f"    {line}" for line in secret.splitlines())


def _block_in_diff(_rng: Random, secret: str) -> str:
    return "@@ -0,0 +1,9 @@\n" + "\n".join(f"+{line}" for line in secret.splitlines())


def _block_in_code(_rng: Random, secret: str) -> str:
    return "KEY = (\n" + "\n".join(f'    "{line}\\n"' for line in secret.splitlines()) + "\n)"


def _cut_block(_rng: Random, secret: str) -> str:
    return "\n".join(secret.splitlines()[:-2])


_PLACES = (
    _written(
        'client = Client("{}", timeout=30)',
        "const client = new Client('{}');",
        'let c = Client::new("{}".into());',
    ),
    _json,
    _json_in_json,
    _written("service:\n  replicas: 2\n  value: {}\n  port: 80"),
    _written("DEBUG=1\nSERVICE_VALUE={}\nPORT=80"),
    _written(
        'export VALUE="{}"',
        "curl -H 'X-Api: {}' https://api.internal/v1",
        "login --with {} && ls",
    ),
    _written("2026-03-01T10:22:31Z INFO  client=svc-7 using {} for call id=42"),
    _written("My key is {}, please don't share it."),
    _written("@@ -1,3 +1,3 @@\n def connect():\n-    return None\n+    return Client('{}')"),
    _wrap_base64,
)
_BLOCK_PLACES = (
    _written("{}"),
    _block_in_json,
    _block_in_yaml,
    _block_in_diff,
    _block_in_code,
    _cut_block,
)


_WRAPPINGS: tuple[Callable[[str], str], ...] = (
    str,
    str,
    lambda text: text.replace("\n", "\r\n"),
    lambda text: json.dumps({"role": "user", "content": text}),
    lambda text: json.dumps({"arguments": json.dumps({"path": "a.txt", "text": text})}),
)
"""A text unchanged, with Windows line ends, as a message, as a call's argument."""


def _drawn(prefix: str, alphabet: str, size: int, end: str = "") -> Callable[[Random], str]:
    return lambda rng: prefix + _random_token(rng, alphabet, size) + end


def _pem(label: str, lines: int, *, head: str = "") -> Callable[[Random], str]:
    def make(rng: Random) -> str:
        body = [_random_token(rng, _BASE64, _LINE) for _ in range(lines)]
        body.append(_random_token(rng, _BASE64, rng.randrange(3, 60)) + "==")
        above = [f"-----BEGIN {label}-----", *([head, ""] if head else [])]
        return "\n".join([*above, *body, f"-----END {label}-----"])

    return make


def _url_part(value: dict[str, object]) -> str:
    return (
        base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode())
        .decode()
        .rstrip("=")
    )


def _jwt(rng: Random) -> str:
    claims: dict[str, object] = {
        "sub": _random_token(rng, _LETTERS, 12),
        "iat": rng.randrange(10**9, 2 * 10**9),
    }
    head = _url_part({"alg": "HS256", "typ": "JWT"})
    return f"{head}.{_url_part(claims)}.{_random_token(rng, _DASHED, 43)}"


def _slack(rng: Random) -> str:
    numbers = f"{rng.randrange(10**11, 10**12)}-{rng.randrange(10**12, 10**13)}"
    return f"xoxb-{numbers}-{_random_token(rng, _LETTERS, 24)}"


def _join_parts(*parts: tuple[str, str, int], end: str = "") -> Callable[[Random], str]:
    """Random parts, each after its own prefix."""
    return lambda rng: (
        "".join(before + _random_token(rng, alphabet, size) for before, alphabet, size in parts)
        + end
    )


def _slack_hook(rng: Random) -> tuple[str, str]:
    team, bot = _random_token(rng, _UPPER, 8), _random_token(rng, _UPPER, 10)
    secret = f"/T{team}/B{bot}/{_random_token(rng, _LETTERS, 24)}"
    return secret, f"notify: https://hooks.slack.com/services{secret}"


def _database(rng: Random) -> tuple[str, str]:
    secret = _random_token(rng, _LETTERS + "!*~.", rng.randrange(10, 24))
    scheme = rng.choice(
        ("postgresql", "mysql+pymysql", "mongodb+srv", "redis", "amqp", "https", "ftp")
    )
    user = rng.choice(("app", "svc-main", "")) if scheme == "redis" else "app"
    return (
        secret,
        (
            f"{rng.choice(('DATABASE_URL=', 'url: ', 'connect to '))}{scheme}://{user}:"
            f"{secret}@db-1.internal:5432/main?x=1"
        ),
    )


def _bearer(rng: Random) -> tuple[str, str]:
    secret = _random_token(rng, _DASHED, rng.randrange(24, 60)) + "x"
    return secret, rng.choice(
        (
            f"Authorization: Bearer {secret}",
            f"curl -H 'authorization: bearer {secret}' https://h",
            f'{{"Authorization": "Bearer {secret}"}}',
        )
    )


def _basic(rng: Random) -> tuple[str, str]:
    secret = base64.b64encode(f"svc:{_random_token(rng, _LETTERS, 16)}".encode()).decode()
    return secret, rng.choice(
        (f"Authorization: Basic {secret}", f'headers["Authorization"] = "Basic {secret}"')
    )


def _docker(rng: Random) -> tuple[str, str]:
    secret = base64.b64encode(f"svc:{_random_token(rng, _LETTERS, 20)}".encode()).decode()
    return secret, json.dumps(
        {"auths": {"https://index.docker.io/v1/": {"auth": secret}}}, indent=2
    )


def _kube(rng: Random) -> tuple[str, str]:
    secret = base64.b64encode(_pem("RSA PRIVATE KEY", 6)(rng).encode()).decode()
    return secret, f"users:\n- name: admin\n  user:\n    client-key-data: {secret}"


def _netrc(rng: Random) -> tuple[str, str]:
    secret = _random_token(rng, _LETTERS + "!#%", 14)
    return secret, rng.choice(
        (
            f"machine api.internal login svc password {secret}",
            f"machine h\n  login svc\n  password {secret}",
        )
    )


def _pgpass(rng: Random) -> tuple[str, str]:
    secret = _random_token(rng, _LETTERS, 16)
    return secret, f"db.internal:5432:main:app:{secret}"


def _assignment(
    names: tuple[str, ...], alphabet: str, size: int
) -> Callable[[Random], tuple[str, str]]:
    def make(rng: Random) -> tuple[str, str]:
        secret = _random_token(rng, alphabet, size)
        name = rng.choice(names)
        shapes = (
            f'{name} = "{secret}"',
            f"{name} = '{secret}'",
            f'const {name}: string = "{secret}";',
            f'connect({name}="{secret}", port=1)',
            f'"{name}": "{secret}",',
            f"{name}: {secret}",
            f'{name}: "{secret}"',
            f"{name.upper()}={secret}",
            f'export {name.upper()}="{secret}"',
            f"<{name}>{secret}</{name}>",
            f'<add key="{name}" value="{secret}" />',
            f"'{name}' => '{secret}',",
            f"define('{name.upper()}', '{secret}');",
            f"+{name} = {secret}",
            f"the {name} is {secret}",
            f"run --{name.replace('_', '-')} {secret} --verbose",
            f"Server=db;{name}={secret};Encrypt=true",
            f'os.environ["{name.upper()}"] = "{secret}"',
        )
        return secret, rng.choice(shapes)

    return make


def _cookie(rng: Random) -> tuple[str, str]:
    secret = _random_token(rng, _LETTERS, 32)
    name = rng.choice(("sessionid", "JSESSIONID", "PHPSESSID", "connect.sid", "session_id"))
    return secret, rng.choice(
        (f"Cookie: theme=dark; {name}={secret}; lang=en", f"Set-Cookie: {name}={secret}; HttpOnly")
    )


def _azure(rng: Random) -> tuple[str, str]:
    secret = _random_token(rng, _BASE64, 86) + "=="
    return (
        secret,
        (
            f"DefaultEndpointsProtocol=https;AccountName=store7;AccountKey={secret};"
            f"EndpointSuffix=core.windows.net"
        ),
    )


_SHAPED: tuple[tuple[str, Callable[[Random], str]], ...] = (
    ("aws-key", _drawn("AKIA", _UPPER, 16)),
    ("gcp-key", _drawn("AIza", _DASHED, 34, "x")),
    ("google-oauth", _drawn("GOCSPX-", _DASHED, 27, "x")),
    ("github-token", _drawn("ghp_", _LETTERS, 36)),
    ("github-token", _drawn("gho_", _LETTERS, 36)),
    ("github-token", _drawn("ghs_", _LETTERS, 36)),
    ("github-token", _join_parts(("github_pat_", _LETTERS, 22), ("_", _LETTERS, 59))),
    ("gitlab-token", _drawn("glpat-", _DASHED, 19, "x")),
    ("slack-token", _slack),
    ("stripe-key", _drawn("sk_live_", _LETTERS, 24)),
    ("openai-key", _drawn("sk-", _LETTERS, 48)),
    ("openai-key", _drawn("sk-proj-", _DASHED, 120, "x")),
    ("anthropic-key", _drawn("sk-ant-api03-", _DASHED, 93, "AA")),
    ("huggingface-token", _drawn("hf_", _LETTERS, 34)),
    ("npm-token", _drawn("npm_", _LETTERS, 36)),
    ("pypi-token", _drawn("pypi-AgEIcHlwaS5vcmc", _DASHED, 120, "x")),
    ("sendgrid-key", _join_parts(("SG.", _DASHED, 22), (".", _DASHED, 42), end="x")),
    ("twilio-key", _drawn("SK", _HEX, 32)),
    (
        "telegram-token",
        lambda rng: f"{rng.randrange(10**8, 10**10)}:AA{_random_token(rng, _DASHED, 33)}",
    ),
    (
        "discord-token",
        _join_parts(("M", _LETTERS, 25), (".", _LETTERS, 6), (".", _DASHED, 37), end="x"),
    ),
    ("digitalocean-token", _drawn("dop_v1_", _HEX, 64)),
    ("age-key", _drawn("AGE-SECRET-KEY-1", _UPPER, 58)),
    ("jwt", _jwt),
    ("private-key", _pem("RSA PRIVATE KEY", 12)),
    ("private-key", _pem("PRIVATE KEY", 20)),
    ("private-key", _pem("OPENSSH PRIVATE KEY", 5)),
    ("private-key", _pem("RSA PRIVATE KEY", 8, head="Proc-Type: 4,ENCRYPTED")),
    ("private-key", _pem("PGP PRIVATE KEY BLOCK", 9, head="Version: GnuPG v2")),
)
_NAMED: tuple[tuple[str, Callable[[Random], tuple[str, str]]], ...] = (
    ("slack-webhook", _slack_hook),
    ("url-password", _database),
    ("authorization", _bearer),
    ("authorization", _basic),
    ("docker-auth", _docker),
    ("kube-key", _kube),
    ("login", _netrc),
    ("login", _pgpass),
    ("session", _cookie),
    ("azure-key", _azure),
    ("aws-secret", _assignment(("aws_secret_access_key",), _BASE64, 40)),
    ("password", _assignment(("password", "db_password", "smtp_passwd"), _LETTERS, 16)),
    ("token", _assignment(("token", "access_token", "auth_token"), _HEX, 40)),
    ("secret", _assignment(("client_secret", "app_secret"), _DASHED, 32)),
    ("key", _assignment(("api_key", "signing_key"), _LETTERS, 32)),
)
