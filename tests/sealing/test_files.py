"""Which files are never read, by their names."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hotset.sealing import secret_file


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.local", ".env.production", "app/.env", ("prod."
            "env"), ".envrc", "id_rsa", "keys/id_ed25519", "server.pem",
        "tls/server.key", "a.p12", "a.pfx", "a.jks", ("a."
            "kdbx"), ".netrc", "_netrc", ".pgpass", "credentials",
        "credentials.json", "aws_credentials.csv", ("/home/u/.aws/"
            "credentials"), ".aws/config", ".npmrc", ".pypirc",
        ".docker/config.json", ".kube/config", "kubeconfig", ("dev."
            "kubeconfig"), ".htpasswd", "terraform.tfstate",
        "terraform.tfstate.backup", "prod.tfstate", ("secrets."
            "yml"), "secrets.yaml", "k8s/db-secrets.yaml",
        "client_secret_1.json", "service-account-key.json", ("."
            "git-credentials"), ".ssh/deploy", "/etc/shadow", ".bash_history",
        ".cargo/credentials.toml", "env.production", "ssh_host_rsa_key", "deploy_key", ("passwords."
            "txt"),
        "firebase-adminsdk-x.json", "shop-firebase-adminsdk-k3j.json", "deploy_rsa",
    ],
)  # fmt: skip
def test_a_credential_file_is_known_by_its_name_in_any_case_and_with_any_separator(path):
    for spelled in (
        path,
        path.upper(),
        path.title(),
        path.replace("/", "\\"),
        f"C:\\Users\\u\\{path}",
        f"./a b/{path}",
    ):
        assert secret_file(spelled), spelled


@pytest.mark.parametrize(
    "path",
    [
        ".env.example", ".env.sample", ".env.template", ("env."
            "py"), "environment.yml", "id_rsa.pub", "secrets.py",
        "src/credentials.ts", "key.py", "keys.md", ("docker/"
            "config.json"), "config.json", "package.json", "shadow",
        "shadow.css", "tokens.py", "settings.toml", (".ssh/"
            "config"), "docs/credentials.md", "monkey", "keynote", "README", "",
        "/", "a/b/", "credentials/loader.go", "kube/config.go", "pem.c",
    ],
)  # fmt: skip
def test_a_file_that_is_about_credentials_or_shows_how_they_look_is_none(path):
    assert secret_file(path) is None


@pytest.mark.parametrize(
    "path",
    [
        ".env~", "id_rsa.bak", "id_ed25519.old", ("local."
            "env.bak"), "server.key.orig", ".netrc.save", ".env.1", "a/.id_rsa.swp",
        "..env.swp", "#id_rsa#", ".#.env", "credentials.bak.20240101", "deploy_key.old~",
    ],
)  # fmt: skip
def test_a_copy_that_is_kept_beside_a_credential_file_is_one(path):
    assert secret_file(path)
    assert secret_file(path.upper())


@pytest.mark.parametrize(
    "path",
    [
        "main.py~",
        "notes.old",
        "man/git.1",
        ".env.example.bak",
        "id_rsa.pub.old",
        ".ssh/known_hosts.old",
        "~",
        "a.bak",
        ".swp",
    ],
)
def test_a_copy_of_any_other_file_is_none(path):
    assert secret_file(path) is None


@given(st.text())
def test_any_path_gets_an_answer(path):
    assert secret_file(path) in {secret_file(path), None}
