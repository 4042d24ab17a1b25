# ruff: noqa: RUF001 - other languages have other punctuation

"""Secrets that were once missed: cookies, logins of commands, encoded tokens, blocks of YAML,
webhooks, five languages."""

from __future__ import annotations

import base64
import json
from random import Random
from urllib.parse import quote

import pytest

from hotset.sealing import SealedText, find, seal

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
CLAUDE = "sk-ant-api03-" + "kT9vQ2xLm4RwZb7pNc3Hd8Js" * 2
AWS = "AKIAQ7X2M4ZP9LK3TR5V"
RANDOM = "kT9vQ2xLm4RwZb7pNc3Hd8Js"


def percent(text: str) -> str:
    return "".join(f"%{ord(each):02X}" for each in text)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


CASES = {
    # cookies
    (
        "Set-Cookie: sid=s%3AkT9vQ2xLm4RwZb7pNc3Hd8Js.Vx81; Path=/; HttpOnly"
    ): "kT9vQ2xLm4RwZb7pNc3Hd8Js",
    f"set-cookie: sid={RANDOM}; Secure": RANDOM,
    f"Cookie: theme=dark; sid={RANDOM}": RANDOM,
    f"Cookie: theme=dark; _shop_login={RANDOM}; lang=en": RANDOM,
    f'{{"set-cookie": "__Host-a={RANDOM}; Secure"}}': RANDOM,
    f"document.cookie = 'sid={RANDOM}'": RANDOM,
    # logins of commands
    "curl -u admin:'Tiger2020x' https://h": "Tiger2020x",
    'curl -u admin:"Tiger2020x" https://h': "Tiger2020x",
    "curl --user admin:'Tiger2020x' https://h": "Tiger2020x",
    "curl --user=admin:'Tiger2020x' https://h": "Tiger2020x",
    "curl -uadmin:Tiger2020x https://h": "Tiger2020x",
    "curl -u 'admin':'Tiger2020x' https://h": "Tiger2020x",
    "curl -u admin:'zw#8K!tiger 2' https://h": "zw#8K!tiger",
    "http -a admin:'Tiger2020x' https://h": "Tiger2020x",
    "subprocess.run(\"curl -u admin:\\'Tiger2020x\\' https://h\")": "Tiger2020x",
    # base64
    f"data: {encoded(TOKEN)}": encoded(TOKEN)[4:],
    f"auth={encoded('deploy:' + TOKEN)}": encoded("deploy:" + TOKEN)[16:],
    f"auth={encoded('me:' + TOKEN)}": encoded("me:" + TOKEN)[12:],
    f"auth={encoded('x:' + CLAUDE)}": encoded("x:" + CLAUDE)[12:],
    f"k8s: {encoded(CLAUDE)}": encoded(CLAUDE)[4:],
    f"k8s: {encoded(AWS)}": encoded(AWS)[4:],
    # percent
    f"https://h/cb?state=access_token%3D{TOKEN}%26x%3D1": TOKEN,
    f"https://h/cb?next=%2Fin%3Fkey%3D{quote(CLAUDE)}": CLAUDE,
    f"url={percent(TOKEN)}": percent(TOKEN),
    f"url=a%3D1%26t%3D{percent(CLAUDE)}": percent(CLAUDE),
    "https://h/?q=password%3DTiger2020x": "Tiger2020x",
    f"header=Authorization%3A%20Bearer%20{RANDOM}": RANDOM,
    # YAML
    "password: |\n  Tiger2020x\nuser: bob\n": "Tiger2020x",
    "  db_password: >-\n      Tiger2020x\n": "Tiger2020x",
    f"api_key: |-\n    {RANDOM}\n": RANDOM,
    f"token: |+\r\n  {RANDOM}\r\n": RANDOM,
    f"token: |2\n    {RANDOM}\n": RANDOM,
    json.dumps({"file": "password: |\n  Tiger2020x\n"}): "Tiger2020x",
    # webhooks
    f"https://hooks.slack.com/services/T01AB2CD3/B04EF5GH6/{RANDOM}": RANDOM,
    f"https://discord.com/api/webhooks/731902846150273946/{RANDOM * 2}xYz12": RANDOM,
    f"https://canary.discord.com/api/v10/webhooks/731902846150273946/{RANDOM * 2}xYz12": RANDOM,
    (
        "https://acme.webhook.office.com/webhookb2/"
        "3f2504e0-4f89-41d3-9a0c-0305e82c3301@9a0c04e0-4f89-41d3-9a0c-0305e82c3302"
        "/IncomingWebhook/8d3c1f7a9be04d56a1c2e3f405162738/0305e82c-4f89-41d3-9a0c-3f2504e03301"
    ): "8d3c1f7a9be04d56a1c2e3f405162738",
    f"https://hooks.zapier.com/hooks/catch/7319028/{RANDOM}/": RANDOM,
    f"https://maker.ifttt.com/trigger/deploy/with/key/{RANDOM}": RANDOM,
    f"https://hook.eu1.make.com/{RANDOM}": RANDOM,
    f"https://chat.acme.example/hooks/{RANDOM}": RANDOM,
    f"https://ci.acme.example/webhook/deploy/{RANDOM}": RANDOM,
    f"https:\\/\\/chat.acme.example\\/hooks\\/{RANDOM}": RANDOM,
    # prose, in five languages
    "the password is Tiger2020x.": "Tiger2020x",
    "The password for the staging database is Tiger2020x, ask Bob": "Tiger2020x",
    "Das Passwort ist Tiger2020x.": "Tiger2020x",
    "Das Kennwort lautet: Tiger2020x": "Tiger2020x",
    "Kennwort: Tiger2020x": "Tiger2020x",
    "das Passwort für die Datenbank lautet „Tiger2020x“": "Tiger2020x",
    "La contraseña es Tiger2020x": "Tiger2020x",
    "la contraseña del servidor es «Tiger2020x».": "Tiger2020x",
    "contrasena: Tiger2020x": "Tiger2020x",
    "Le mot de passe est Tiger2020x": "Tiger2020x",
    "Mot de passe : Tiger2020x": "Tiger2020x",
    "le mot de passe du serveur est 'Tiger2020x'": "Tiger2020x",
    "密码是Tiger2020x。": "Tiger2020x",
    "密码：Tiger2020x": "Tiger2020x",
    "数据库的密碼為 Tiger2020x，谢谢": "Tiger2020x",
    "口令: Tiger2020x": "Tiger2020x",
}


@pytest.mark.parametrize("text", CASES, ids=lambda text: text[:60])
def test_it_is_sealed(text: str):
    told = seal(text).text
    assert CASES[text] not in told
    assert seal(told) == SealedText(told)
    if text.startswith("{"):
        json.loads(told)


@pytest.mark.parametrize(
    "text",
    [
        "Set-Cookie: theme=dark; Path=/; HttpOnly",
        "Cookie: lang=en; consent=accepted-all-of-them",
        "Set-Cookie: sid=deleted; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "sid = request.cookies.get('sid')",
        "the inside=ofTheBuildingWithWords",
        "curl -u admin:password https://h",
        "curl -u $USER:'$PASSWORD_22' https://h",
        "docker run -u root:root image",
        "rsync -a host:/var/backups/2024 .",
        f"data: {base64.b64encode(b'ghp_ is how these begin, and this is a sentence').decode()}",
        "Z2hwXabcdefghijklmnop is a word",
        (
            "https://h/"
            "?q=%E6%97%A5%E6%9C%AC%E8%AA%9E%E6%97%A5%E6%9C%AC%E8%AA%9E%E6%97%A5%E6%9C%AC%E8%AA%9E"
        ),
        "https://h/?redirect=%2Fhome%2Fpassword%2Freset",
        "password: |\n  ${DB_PASSWORD}\n",
        "description: |\n  Tiger2020x is a name\n",
        "password: |\n  changeme\n",
        "https://github.com/acme/app/settings/hooks/12345678",
        "src/hooks/useSubscriptionManager.ts",
        "https://docs.acme.example/webhooks/getting-started/verify-signatures",
        "import { useHook } from '@/hooks/use-local-storage-state'",
        "https://hooks.slack.com/services/T000/B000/XXXX",
        "the password is required",
        "The password is case-sensitive and must be changed after 90 days.",
        "Das Passwort ist falsch.",
        "Das Passwort ist vergessen worden",
        "la contraseña es obligatoria",
        "la clave es entender el problema",
        "le mot de passe est obligatoire",
        "密码是必填项",
        "密码：",
        "password is bcrypt2_hashed",
    ],
)
def test_it_is_left_alone(text: str):
    assert seal(text) == SealedText(text)


def test_a_token_is_found_in_base64_whatever_stands_before_it():
    chance = Random(7)
    for length in range(40):
        before = "".join(chance.choice("abcdefgh :=") for _ in range(length))
        text = encoded(f"{before} {TOKEN} and more words behind it")
        told = seal(f"data: {text}").text
        assert not [
            at
            for at in range(len(text) - 20)
            if text[at : at + 20] in told and TOKEN[8:16].encode() in _read(text[at : at + 20])
        ]


def _read(piece: str) -> bytes:
    return b"".join(
        base64.b64decode(piece[skip : skip + (len(piece) - skip) // 4 * 4]) for skip in range(4)
    )


@pytest.mark.parametrize(
    "unit",
    ["%41", "Z2hwX", "cookie: ", "/hooks/", "password is ", "密码是", "password: |\n ", " -u a:'"],
)
@pytest.mark.slow
def test_a_long_line_of_what_begins_them_is_no_trouble(unit: str):
    text = unit * (2**17 // len(unit))
    assert seal(text).text.count("\n") == text.count("\n")
    assert find("nothing of this kind") == ()
