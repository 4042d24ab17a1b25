"""Kinds of software work, and the words by which prompts and memories name them.

"Add the requests library" and "Install with uv, never pip" share no word; both are about
dependencies. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hotset.text.stems import stem

_LISTS: Mapping[str, str] = {
    "dependency": """
        dependency dep deps package packages library lib libs crate gem module modules npm pnpm yarn
        pip uv poetry cargo requirements lockfile install upgrade bump vendored pull pin pinned
        version-range zod lodash framework sdk plugin plugins""",
    "release": """
        release ship shipping publish version tag bump changelog rollout cut store registry pypi npm
        notes semver artifact signed out""",
    "deploy": """
        deploy deployment staging stage prod production rollout rollback cluster pipeline apply
        online live host hosting server kubernetes helm terraform environment preview""",
    "test": """
        test tests pytest jest vitest playwright cypress suite unit e2e spec coverage fixture mock
        snapshot flaky ci assertion golden regression""",
    "check": """
        lint linter format formatter formatting prettier eslint biome ruff black typecheck mypy tsc
        clippy vet check checks style""",
    "commit": """
        commit push branch merge rebase squash pr prs pull-request git main master trunk message
        hook stash amend cherry-pick""",
    "review": "review reviewer approve approval sign-off codeowner merge pr",
    "prose": """
        docs documentation readme article write writing written text prose guide tutorial changelog
        docstring wording copy sentence paragraph chapter blog post email letter newsletter
        announcement translate translation english spelling""",
    "strings": """
        string strings label labels hint message messages text texts copy i18n intl l10n locale
        translation translations literal tooltip placeholder caption empty-state button title
        sentence visible shown user-facing wording""",
    "time": """
        date dates time timestamp timestamps datetime timezone utc clock day days month created_at
        updated_at expires duration calendar daylight""",
    "money": """
        price prices pricing amount amounts money currency cents cent decimal discount tax vat fee
        invoice invoices total refund payment payments cost charge rounding euro dollar float
        floats""",
    "secret": """
        secret secrets key keys token tokens password passwords credential credentials vault .env
        apikey api-key leaked certificate private""",
    "schema": """
        database db table tables column columns schema migration migrations migrate field fields
        alembic enum nullable foreign-key constraint""",
    "query": "sql query queries orm select join index database db postgres mysql sqlite raw",
    "api": """
        api endpoint endpoints route routes rest graphql request response http status webhook
        handler client payload version v1 v2 public contract""",
    "interface": """
        button page screen modal css layout component components frontend header footer form dialog
        sidebar menu view widget list row rows tab icon theme react vue svelte""",
    "colour": "colour color colours colors hex palette dark darker red blue green theme tokens",
    "image": "image images photo picture svg png jpg jpeg logo asset assets icon icons figure",
    "logging": "log logs logging logger print trace metrics monitoring console debug",
    "errors": """
        error errors exception exceptions panic raise throw unwrap result catch exit code codes
        message failure unreachable status""",
    "config": "config configuration settings setting option options flag flags yaml toml env",
    "generated": "generated generate gen codegen generator openapi protobuf proto stubs",
    "removal": "delete deletes remove drop prune clean cleanup purge wipe old expire retention",
    "naming": """
        name names naming rename prefix suffix convention called call snake_case camelcase kebab
        identifier deprecate deprecated prop""",
    "build": """
        build builds compile compiler bundle webpack vite make cmake gradle binary image docker
        dockerfile target toolchain""",
    "version": """
        version versions python node go rust java kotlin swift gcc c++ django rails minimum msrv
        support supported old new syntax feature since lts compatible""",
    "platform": """
        windows linux macos android ios browser safari firefox chrome ie mobile tablet phone
        powershell msi exe""",
    "speed": """
        slow fast performance latency cache caching speed optimize optimise profile benchmark
        benchmarks measure memory allocation malloc""",
    "person": "who ask owner owns contact on-call oncall page responsible lead tell notify",
    "schedule": """
        when deadline schedule weekly daily friday monday tuesday wednesday thursday saturday
        sunday cron nightly night until calendar meeting freeze""",
    "privacy": """
        privacy personal pii gdpr consent anonymous anonymise anonymize email name names customer
        customers patient patients export""",
    "backup": "backup backups restore dump retention archive copy keep kept",
    "place": "where put folder directory path store stored lives location goes belongs into",
    "access": "login auth authentication permission permissions role roles admin session tenant",
    "command": "command commands subcommand cli option argument arguments cmd --flag",
    "random": "random seed rng shuffle deterministic reproducible",
    "model": "model models train training dataset split fold metric evaluation evaluate score",
    "hardware": "gpu cuda board flash firmware serial register uart sensor device usb",
    "restart": "restart start up down running container service daemon port localhost",
}
_WORD = re.compile(r"[a-z.@#-]*[a-z][\w.+#-]*[\w+#]|[a-z]", re.IGNORECASE)


def _table() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, words in _LISTS.items():
        for word in words.split():
            found.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


_CONCEPTS = _table()
NAMES = tuple(_LISTS)


def concepts_of(text: str) -> frozenset[str]:
    """The kinds of work that a text names."""
    words = {word.lower() for word in _WORD.findall(text)}
    return frozenset(
        name for word in words for name in _CONCEPTS.get(stem(word), _CONCEPTS.get(word, ()))
    )
