"""What is left out by its name alone: what tools put into a project, and what holds no text."""

from __future__ import annotations

import os

from hotset.files.root import Why
from hotset.text.words import word_set

EXCLUDED_FOLDERS = word_set("""
    .git .hg .svn .jj .bzr node_modules bower_components jspm_packages .pnpm-store .yarn .venv venv .tox .nox .eggs __pycache__
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints site-packages .gradle .mvn .idea .vs .terraform
    .serverless
    .aws-sam .next .nuxt .svelte-kit .astro .angular .parcel-cache .turbo .cache .nyc_output htmlcov DerivedData Pods .dart_tool
    .bundle .stack-work dist-newstyle _build .elixir_ls .hotset .ssh .gnupg .aws .kube .docker .password-store
""")

_OUTPUT = word_set("build dist out target coverage")
"""Names that people use for sources too: such a folder is output only beside the file of the tool that fills it."""
_TOOLS = word_set("package.json pom.xml build.gradle build.gradle.kts Cargo.toml setup.py pyproject.toml CMakeLists.txt")

_LOCKS = word_set("""
    package-lock.json npm-shrinkwrap.json pnpm-lock.yaml bun.lockb packages.lock.json go.sum .ds_store thumbs.db
""")
_MADE = tuple(
    word_set("""
    .min.js .min.css .min.mjs .js.map .css.map .mjs.map .ts.map .bundle.js .chunk.js _pb2.py _pb2.pyi _pb2_grpc.py
    .pb.go .pb.cc .pb.h .g.dart .designer.cs .generated.cs .generated.ts .generated.go
    """)
)
_NO_TEXT = word_set("""
    png jpg jpeg gif webp ico bmp tif tiff psd pdf zip gz tgz bz2 xz zst 7z rar tar jar war class o a so dylib dll exe bin wasm
    pyc pyo whl egg mp3 mp4 m4a wav ogg flac avi mov mkv webm woff woff2 ttf otf eot db sqlite sqlite3 parquet feather npy npz
    pkl pickle pt pth onnx safetensors gguf h5 hdf5 tfrecord mo
""")


def folder_left_out(name: str, path: str) -> bool:
    """`path` is where it is on this machine."""
    if name in EXCLUDED_FOLDERS or name.endswith(".egg-info"):
        return True
    parent = path.removesuffix(f"/{name}")
    return name in _OUTPUT and any(os.path.lexists(f"{parent}/{tool}") for tool in _TOOLS)


def file_left_out(name: str) -> Why | None:
    low = name.lower()
    ending = low.rpartition(".")[2]
    if ending in _NO_TEXT:
        return Why.BINARY
    return Why.EXCLUDED if ending == "lock" or low in _LOCKS or low.endswith(_MADE) else None
