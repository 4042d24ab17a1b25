"""Recognizes credential files by name; they are never read."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache

_HARMLESS = re.compile(
    r"[._-](example|sample|template|tmpl|dist|defaults?|schema|in)$|\.(md|rst|pub|py|pyi|js|"
    r"ts|tsx|go|rs|java|kt|rb|php|cs|c|h|html)$"
)
"""Examples and descriptions of credential files; public halves of keys."""

_BACKUP = re.compile(
    r"(?:~|\.(?:bak|bk|bkp|backup|old|orig|save|saved|copy|prev|tmp|rej|disabled|sw[a-p]|"
    r"[0-9]{1,3}|(?:19|20)[0-9]{6}))+$"
)
"""Suffixes of backup copies."""

_FILES: tuple[tuple[str, str], ...] = (
    (
        "settings of an environment",
        """
        .env .env.* *.env .envrc .flaskenv .dev.vars env.production env.prod env.staging env.live env.local env.development
        env.dev env.test
        """,  # noqa: E501
    ),
    (
        "a private key",
        """
        id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk *.pem *.key *.ppk *.p8 *.asc.key identity.age *.agekey
        *_rsa *_ed25519 *_ecdsa ssh_host_*_key deploy_key deploy-key *_deploy_key *-deploy-key *_deploy-key
        """,  # noqa: E501
    ),
    (
        "a store of keys",
        """
        *.p12 *.pfx *.jks *.keystore *.bks *.kdb *.kdbx *.keychain *.keychain-db *.gpg-key secring.gpg *.wallet wallet.dat
        """,  # noqa: E501
    ),
    (
        "logins of hosts",
        """
        .netrc _netrc .pgpass pgpass.conf .my.cnf .mylogin.cnf .htpasswd htpasswd .git-credentials .curlrc .dbshell
        """,  # noqa: E501
    ),
    (
        "credentials",
        """
        credentials credentials.* *_credentials *-credentials *_credentials.* *-credentials.* credential credentials-*
        .credentials*
        """,  # noqa: E501
    ),
    (
        "passwords",
        """
        passwords passwords.txt passwords.csv passwords.tsv passwords.xls passwords.xlsx passwords.ods password.txt passwd.txt
        *_passwords.txt *-passwords.txt *_passwords.csv *-passwords.csv
        """,  # noqa: E501
    ),
    (
        "tokens of a registry",
        """
        .npmrc .yarnrc.yml .pypirc .gem/credentials .cargo/credentials* auth.json .composer/auth.json nuget.config
        """,  # noqa: E501
    ),
    ("logins of a registry", ".docker/config.json .dockercfg .dockerconfigjson"),
    ("access to a cluster", "kubeconfig *.kubeconfig kubeconfig.* .kube/config"),
    (
        "secrets",
        """
        secrets.yml secrets.yaml secrets.json secrets.toml secrets.ini secrets.env secret.yml secret.yaml secret.json
        *.secrets .secrets .secrets.* *-secrets.yaml *-secrets.yml *.secret secrets.* vault.yml vault.yaml .vault-token
        .vault_pass* master.key credentials.yml.enc
        """,  # noqa: E501
    ),
    (
        "the state of an infrastructure",
        """
        terraform.tfstate terraform.tfstate.* *.tfstate *.tfstate.backup terraform.tfvars *.auto.tfvars .terraformrc
        terraform.rc
        """,  # noqa: E501
    ),
    (
        "an account of a cloud",
        """
        service-account*.json service_account*.json serviceaccount*.json client_secret*.json *firebase-adminsdk*.json
        gcp-key*.json sa-key*.json
        application_default_credentials.json accesstokens.json azureprofile.json gcloud/credentials.db gcloud/access_tokens.db
        .boto .s3cfg rclone.conf .aws/credentials .aws/config .azure/*.json .oci/config
        """,  # noqa: E501
    ),
    (
        "a login of a program",
        """
        gh/hosts.yml .config/hub .ngrok2/ngrok.yml .msmtprc .fetchmailrc .pgadmin.pass logins.json key4.db key3.db
        signons.sqlite .rhosts .esmtprc filezilla.xml recentservers.xml sitemanager.xml
        """,  # noqa: E501
    ),
    (
        "what was typed into a shell",
        """
        .bash_history .zsh_history .sh_history .psql_history .mysql_history .python_history .node_repl_history .sqlite_history
        .rediscli_history
        """,  # noqa: E501
    ),
)

_SYSTEM_FILES = (
    "passwords of a system",
    frozenset({"shadow", "gshadow", "shadow-", "master.passwd", "sam"}),
)
_SYSTEM_FOLDERS = frozenset({"etc", "config"})
"""Folders in which these words name a system's file."""

_FOLDERS = frozenset({".ssh", ".gnupg", ".password-store"})
_PLAIN_IN_FOLDERS = frozenset({"config", "known_hosts", "known_hosts.old", "authorized_keys"})


def secret_file(path: str) -> str | None:
    """Why this is a credential file; None if its name does not say so. Case and the kind of slash
    are ignored."""
    parts = [part for part in _SEPARATORS.split(path.casefold().rstrip("/\\ .\0")) if part]
    if not parts:
        return None
    names, folders = _without_backup(parts[-1]), parts[:-1]
    return (
        None
        if any(map(_HARMLESS.search, names))
        else next(filter(None, (_why(name, folders) for name in names)), None)
    )


def _without_backup(name: str) -> tuple[str, ...]:
    """The name, and the names of what it may be a copy of: vim's `.name.swp` has a dot that may be
    part of the name."""
    plain = _BACKUP.sub("", name.removeprefix(".#").strip("#"))
    if not plain or plain == name:
        return (name,)
    return (name, plain, plain.removeprefix("."))


def _why(name: str, folders: list[str]) -> str | None:
    if not _FOLDERS.isdisjoint(folders) and name not in _PLAIN_IN_FOLDERS:
        return "a private key"
    if folders and folders[-1] in _SYSTEM_FOLDERS and name in _SYSTEM_FILES[1]:
        return _SYSTEM_FILES[0]
    match = _patterns().fullmatch(f"{folders[-1] if folders else ''}/{name}")
    return _FILES[int(match.lastgroup[1:])][0] if match is not None and match.lastgroup else None


_SEPARATORS = re.compile(r"[/\\]+")


@cache
def _patterns() -> re.Pattern[str]:
    """All patterns as one, over a file's name with its folder; the matching group gives the
    reason."""
    whys = []
    for place, (_, names) in enumerate(_FILES):
        globs = (name if "/" in name else f"*/{name}" for name in names.split())
        whys.append(f"(?P<w{place}>{'|'.join(map(translate, globs))})")
    return re.compile("|".join(whys))
