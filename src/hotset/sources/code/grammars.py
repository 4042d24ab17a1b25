"""Grammars for tree-sitter, from the package that brings them along: unpacked once into a folder of
ours, never downloaded.

The package would unpack into a cache that it shares with others, and would load whatever it finds
there. A grammar is machine code: here it goes into a private folder, and is loaded only if it is,
byte for byte, what the package's list says.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import platform
import tarfile
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotset.errors import HotsetError
from hotset.files.private_folder import private_folder
from hotset.files.write import write_atomically

if TYPE_CHECKING:
    from tree_sitter import Language

_PACKAGE = "semble_grammars"
_SYSTEMS = {"darwin": "macos", "linux": "linux"}
_MACHINES = {"arm64": "arm64", "aarch64": "arm64", "x86_64": "x86_64", "amd64": "x86_64"}
_loaded: list[ctypes.CDLL] = []
"""Kept for as long as the process lives: grammars point into them."""


class NoGrammar(HotsetError):
    """This machine has no grammar for a language; its files are cut by their lines."""


def identity() -> str:
    """Changes when the same text could be parsed otherwise."""
    return f"{version('semble-grammars')} {version('tree-sitter')}"


@cache
def grammar(name: str, folder: Path | None = None) -> Language:
    """A grammar, unpacked into `folder`; without one, or where it cannot be written, into one that
    lasts as long as needed.

    Raises `NoGrammar`.
    """
    from tree_sitter import Language  # noqa: PLC0415

    listed = _read_package_list()
    try:
        entry = listed["languages"][name]
    except KeyError:
        raise NoGrammar(f"no grammar for {name}") from None
    if folder is not None and (kept := _find_unpacked(entry, folder)) is not None:
        return Language(_load_capsule(kept, entry["symbol"]))
    content = _read_archive(listed["archive"], entry)
    if folder is not None and (kept := _write_grammar(content, entry, folder)) is not None:
        return Language(_load_capsule(kept, entry["symbol"]))
    with tempfile.TemporaryDirectory(prefix="hotset-grammars-") as passing:
        kept = Path(passing) / entry["file"]
        kept.write_bytes(content)
        return Language(
            _load_capsule(kept, entry["symbol"])
        )  # what is loaded stays loaded when its file is gone


@cache
def _read_package_list() -> Any:
    """The package's list for this machine."""
    system, machine = platform.system().lower(), platform.machine().lower()
    here = (
        resources.files(_PACKAGE)
        / "grammars"
        / f"{_SYSTEMS.get(system, system)}-{_MACHINES.get(machine, machine)}"
    )
    try:
        listed = json.loads((here / "manifest.json").read_text("utf-8"))
    except OSError as error:
        raise NoGrammar(f"{_PACKAGE} has no grammars for {system} on {machine}") from error
    return listed | {"archive": str(here / listed["archive"])}


def _find_unpacked(entry: Any, folder: Path) -> Path | None:
    path = folder / version("semble-grammars") / entry["file"]
    try:
        right = hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    except OSError:
        return None
    return path if right else None


def _read_archive(archive: str, entry: Any) -> bytes:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            member = tar.extractfile(entry["file"])
            content = member.read() if member is not None else b""
    except (OSError, KeyError, tarfile.TarError) as error:
        raise NoGrammar(f"{_PACKAGE} is damaged: install it again") from error
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise NoGrammar(f"{_PACKAGE} is damaged: install it again")
    return content


def _write_grammar(content: bytes, entry: Any, folder: Path) -> Path | None:
    """Several processes may do so at once: each writes a file of its own and moves it into
    place."""
    try:
        here = private_folder(private_folder(folder) / version("semble-grammars"))
        path = here / str(entry["file"])
        write_atomically(path, content)
    except HotsetError:
        return None
    return path


def _load_capsule(path: Path, symbol: str) -> object:
    try:
        library = ctypes.CDLL(str(path))
        found = getattr(library, symbol)
    except (OSError, AttributeError) as error:
        raise NoGrammar(f"{path.name} cannot be loaded here") from error
    _loaded.append(library)
    found.restype = ctypes.c_void_p
    wrap = ctypes.pythonapi.PyCapsule_New
    wrap.restype = ctypes.py_object
    wrap.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return wrap(found(), b"tree_sitter.Language", None)


def _definition_patterns(field: str = "name", **kinds: str) -> str:
    """Patterns of nodes whose name and body are in fields of their own."""
    return "".join(
        f"({node} {field}: (_) @name body: (_)? @body) @{kind.rstrip('_')}\n"
        for kind, nodes in kinds.items()
        for node in nodes.split()
    )


_IS_A_FUNCTION = "[(arrow_function body: (_) @body) (function_expression body: (_) @body)]"

_JAVASCRIPT = (
    _definition_patterns(
        function="function_declaration generator_function_declaration",
        class_="class_declaration",
        method="method_definition",
    )
    + f"""
(variable_declarator name: (identifier) @name value: {_IS_A_FUNCTION}) @function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @class
(assignment_expression left: (member_expression) @name right: {_IS_A_FUNCTION}) @function
(pair key: (_) @name value: {_IS_A_FUNCTION}) @method
(program (lexical_declaration . (variable_declarator name: (identifier) @name) .) @variable)
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (export_statement (lexical_declaration . (variable_declarator name: (identifier) @name) .) @variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(export_statement declaration: (_ name: (_) @name)) @around
(export_statement (lexical_declaration . (variable_declarator name: (_) @name) .)) @around
(lexical_declaration . (variable_declarator name: (_) @name) .) @around
(variable_declaration . (variable_declarator name: (_) @name) .) @around
"""  # noqa: E501
)

_TYPESCRIPT = _JAVASCRIPT + _definition_patterns(
    class_="abstract_class_declaration",
    interface="interface_declaration",
    type="type_alias_declaration",
    enum="enum_declaration",
    namespace="internal_module module",
    method="abstract_method_signature",
    function="function_signature",
)


def _prototypes(node: str, names: str, *around: str) -> str:
    """What is declared and defined elsewhere. `around` are the ways in which a pointer or a
    reference wraps its result."""
    function = f"(function_declarator declarator: [{names}] @name)"
    wrapped = [function, *(way.replace("$", function) for way in around)]
    return "".join(f"({node} {each}) @function\n" for each in wrapped)


_POINTED = (
    "(pointer_declarator declarator: $)",
    "(pointer_declarator declarator: (pointer_declarator declarator: $))",
)

_C = (
    _definition_patterns("declarator", function="function_definition", type="type_definition")
    + _definition_patterns(macro="preproc_function_def")
    + """
(struct_specifier name: (_) @name body: (_) @body) @struct
(union_specifier name: (_) @name body: (_) @body) @union
(enum_specifier name: (_) @name body: (_) @body) @enum
"""
)

_CPP_NAMES = (
    "(identifier) (field_identifier) (qualified_identifier) (operator_name) (destructor_name)"
)

QUERIES: Mapping[str, str] = {
    "python": _definition_patterns(function="function_definition", class_="class_definition")
    + """
(module (expression_statement (assignment left: (identifier) @name)) @variable)
(type_alias_statement left: (type) @name) @type
(decorated_definition definition: (_ name: (_) @name)) @around
(_ name: (_) @name body: (block . (expression_statement (string) @doc)))
""",
    "javascript": _JAVASCRIPT
    + f"(field_definition property: (_) @name value: {_IS_A_FUNCTION}) @method\n",
    "typescript": _TYPESCRIPT
    + f"(public_field_definition name: (_) @name value: {_IS_A_FUNCTION}) @method\n",
    "tsx": _TYPESCRIPT
    + f"(public_field_definition name: (_) @name value: {_IS_A_FUNCTION}) @method\n",
    "go": _definition_patterns(
        function="function_declaration", method="method_declaration", type="type_spec type_alias"
    )
    + """
(method_declaration receiver: (_) @receiver name: (_) @name)
(type_declaration . (type_spec name: (_) @name) .) @around
(source_file (const_declaration (const_spec (identifier) @name) @constant))
(source_file (const_declaration . (const_spec (identifier) @name) .) @around)
(source_file (var_declaration (var_spec name: (identifier) @name) @variable))
(source_file (var_declaration (var_spec name: (identifier) @name)) @around)
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @variable)))
(method_elem name: (_) @name) @method
""",
    "rust": _definition_patterns(
        function="function_item function_signature_item",
        struct="struct_item",
        enum="enum_item",
        union="union_item",
        trait="trait_item",
        type="type_item",
        constant="const_item static_item",
        macro="macro_definition",
    )
    + """
(impl_item type: (_) @name body: (_)? @body) @impl
(mod_item name: (_) @name body: (_) @body) @module
""",
    "java": _definition_patterns(
        class_="class_declaration",
        interface="interface_declaration annotation_type_declaration",
        enum="enum_declaration",
        record="record_declaration",
        method="method_declaration",
        constructor="constructor_declaration",
    ),
    "c": _C + _prototypes("declaration", "(identifier)", *_POINTED),
    "cpp": _C
    + _prototypes("declaration", _CPP_NAMES, *_POINTED, "(reference_declarator $)")
    + _prototypes("field_declaration", _CPP_NAMES, *_POINTED, "(reference_declarator $)")
    + _definition_patterns(
        namespace="namespace_definition", type="alias_declaration", concept="concept_definition"
    )
    + """
(class_specifier name: (_) @name body: (_) @body) @class
(template_declaration (_ name: (_) @name)) @around
(template_declaration (function_definition declarator: (_) @name)) @around
""",
    "ruby": _definition_patterns(method="method singleton_method", class_="class", module="module")
    + "(assignment left: (constant) @name) @constant\n",
    "php": _definition_patterns(
        function="function_definition",
        method="method_declaration",
        class_="class_declaration",
        interface="interface_declaration",
        trait="trait_declaration",
        enum="enum_declaration",
    )
    + "(namespace_definition name: (_) @name body: (_) @body) @namespace\n",
    "csharp": _definition_patterns(
        class_="class_declaration",
        interface="interface_declaration",
        struct="struct_declaration",
        record="record_declaration",
        enum="enum_declaration",
        method="method_declaration",
        constructor="constructor_declaration",
        property="property_declaration",
        type="delegate_declaration",
        function="local_function_statement",
        namespace="namespace_declaration",
    ),
    "kotlin": """
(class_declaration name: (_) @name [(class_body) (enum_class_body)]? @body) @class
(object_declaration name: (_) @name (class_body)? @body) @object
(function_declaration name: (_) @name (function_body)? @body) @function
(type_alias type: (_) @name) @type
(source_file (property_declaration (variable_declaration (identifier) @name)) @variable)
(class_body (property_declaration (variable_declaration (identifier) @name)) @property)
""",
    "swift": _definition_patterns(
        class_="class_declaration",
        protocol="protocol_declaration",
        function="function_declaration protocol_function_declaration",
        type="typealias_declaration",
    ),
    "scala": _definition_patterns(
        class_="class_definition",
        object="object_definition",
        trait="trait_definition",
        enum="enum_definition",
        function="function_definition",
        type="type_definition",
    ),
    "dart": _definition_patterns(
        class_="class_definition", enum="enum_declaration", function="function_signature"
    ),
    "lua": _definition_patterns(function="function_declaration")
    + (
        "(assignment_statement (variable_list name: (_) @name) (expression_list value: "
        "(function_definition))) @function\n"
    ),
    "bash": _definition_patterns(function="function_definition"),
    "sql": """
(create_table [(keyword_table) (keyword_exists)] . (object_reference) @name) @table
(create_view [(keyword_view) (keyword_exists)] . (object_reference) @name) @view
(create_materialized_view [(keyword_view) (keyword_exists)] . (object_reference) @name) @view
(create_function (keyword_function) . (object_reference) @name (function_body)? @body) @function
(create_trigger [(keyword_trigger) (keyword_exists)] . (object_reference) @name) @trigger
(create_index column: (_) @name) @index
(create_type (keyword_type) . (object_reference) @name) @type
(alter_table [(keyword_table) (keyword_exists)] . (object_reference) @name) @table
""",
    "json": "(document (object (pair key: (string) @name) @key))\n",
}

_VALUES = "(preproc_def name: (_) @name value: (_)) @macro\n"

DEEPER: Mapping[str, str] = {
    "json": "(document (object (pair value: (object (pair key: (string) @name) @key))))\n",
    "c": _VALUES,
    "cpp": _VALUES,
}
"""What is listed beside it as long as it is not too much: the header of a chip has thousands of
values, and a few structures."""
