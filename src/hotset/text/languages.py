"""Detects the language of a file: by name, then extension, then first line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

TEXT = "text"
"""Files without a known grammar."""


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    """The common name; an entry's kind."""
    grammar: str = ""
    """Its name in tree-sitter; empty if its structure is read from lines alone."""
    comment: tuple[str, ...] = ()
    """Beginnings of lines that comment on or decorate what is below them."""


_HASH = ("#",)
# also attributes of C# and annotations of Java, Kotlin and TypeScript
_SLASHES = ("//", "/*", "*", "@", "[")

PLAIN = Language(TEXT)

LANGUAGES: Mapping[str, Language] = {
    each.name: each
    for each in (
        PLAIN,
        Language("python", "python", ("#", "@")),
        Language("javascript", "javascript", _SLASHES),
        Language("jsx", "javascript", _SLASHES),
        Language("typescript", "typescript", _SLASHES),
        Language("tsx", "tsx", _SLASHES),
        Language("go", "go", ("//", "/*", "*")),
        Language("rust", "rust", ("//", "/*", "*", "#[")),
        Language("java", "java", _SLASHES),
        Language("c", "c", ("//", "/*", "*")),
        Language("cpp", "cpp", ("//", "/*", "*", "[[", "template")),
        Language("ruby", "ruby", _HASH),
        Language("php", "php", (*_SLASHES, "#")),
        Language("csharp", "csharp", _SLASHES),
        Language("kotlin", "kotlin", _SLASHES),
        Language("swift", "swift", _SLASHES),
        Language("scala", "scala", _SLASHES),
        Language("dart", "dart", _SLASHES),
        Language("lua", "lua", ("--",)),
        Language("bash", "bash", _HASH),
        Language("sql", "sql", ("--", "/*", "*")),
        Language("json", "json"),
        Language("markdown"),
        Language("yaml", comment=_HASH),
        Language("toml", comment=_HASH),
        Language("ini", comment=("#", ";")),
        Language("html"),
        Language("css", comment=("/*", "*")),
        Language("xml"),
        Language("rst"),
        Language("make", comment=_HASH),
        Language("dockerfile", comment=_HASH),
        Language("protobuf", comment=("//",)),
        Language("graphql", comment=_HASH),
        Language("terraform", comment=("#", "//")),
        Language("vue"),
        Language("svelte"),
        Language("elixir", comment=("#", "@")),
        Language("haskell", comment=("--",)),
        Language("r", comment=_HASH),
        Language("julia", comment=_HASH),
        Language("perl", comment=_HASH),
        Language("powershell", comment=_HASH),
        Language("zig", comment=("//",)),
        Language("cmake", comment=_HASH),
        Language("nix", comment=_HASH),
    )
}

_ENDINGS = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs",
    "jsx": "jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp tpp cu cuh ino",
    "ruby": "rb rake gemspec ru",
    "php": "php phtml php5 inc",
    "csharp": "cs csx",
    "kotlin": "kt kts",
    "swift": "swift",
    "scala": "scala sc",
    "dart": "dart",
    "lua": "lua",
    "bash": "sh bash zsh ksh bats",
    "sql": "sql ddl psql pgsql",
    "json": "json jsonc json5 geojson webmanifest ipynb",
    "markdown": "md markdown mdx mdown mkd",
    "yaml": "yaml yml",
    "toml": "toml",
    "ini": "ini cfg conf properties editorconfig",
    "html": "html htm xhtml jinja j2 jinja2 djhtml erb ejs hbs",
    "css": "css scss sass less",
    "xml": "xml xsd xsl xslt svg plist csproj props targets",
    "rst": "rst",
    "make": "mk mak",
    "protobuf": "proto",
    "graphql": "graphql gql",
    "terraform": "tf tfvars hcl",
    "vue": "vue",
    "svelte": "svelte",
    "elixir": "ex exs",
    "haskell": "hs",
    "r": "r",
    "julia": "jl",
    "perl": "pl pm t",
    "powershell": "ps1 psm1 psd1",
    "zig": "zig",
    "cmake": "cmake",
    "nix": "nix",
}
_BY_ENDING = {ending: name for name, endings in _ENDINGS.items() for ending in endings.split()}
_BY_NAME = {
    "makefile": "make",
    "gnumakefile": "make",
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "cmakelists.txt": "cmake",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "podfile": "ruby",
    "vagrantfile": "ruby",
    "jenkinsfile": "java",
    "pkgbuild": "bash",
    ".bashrc": "bash",
    ".zshrc": "bash",
    ".profile": "bash",
}
_SHEBANG = re.compile(
    r"#![^\n]{0,100}?(?:^|[/\s])(python|node|deno|bun|ruby|php|bash|zsh|ksh|dash|sh|lua|perl|Rscript|julia)[\d.]*(?:\s|$)"
)
_BY_PROGRAM = {
    "python": "python",
    "node": "javascript",
    "deno": "typescript",
    "bun": "typescript",
    "ruby": "ruby",
    "php": "php",
    "lua": "lua",
    "perl": "perl",
    "Rscript": "r",
    "julia": "julia",
} | dict.fromkeys(("bash", "zsh", "ksh", "dash", "sh"), "bash")
_CPP_IN_A_HEADER = re.compile(
    r"^\s*(?:class\s+\w|namespace\b|template\s*<|public:|private:|using\s+\w)", re.MULTILINE
)
_LOOKED_AT = 20_000  # characters of a header searched for signs of C++


def language_of(path: str, text: str = "") -> Language:
    """The language of a file. `text` decides if the name is ambiguous."""
    name = path.rstrip("/").rpartition("/")[2].lower()
    named = _BY_NAME.get(name) or _BY_ENDING.get(name.rpartition(".")[2] if "." in name else "")
    if named is None and (shebang := _SHEBANG.match(text[:200])):
        named = _BY_PROGRAM[shebang[1]]
    if named is None and name.startswith("dockerfile."):
        named = "dockerfile"
    if named == "c" and name.endswith(".h") and _CPP_IN_A_HEADER.search(text, 0, _LOOKED_AT):
        named = "cpp"
    return LANGUAGES[named or TEXT]
