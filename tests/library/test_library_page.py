"""The page about the library tells what works: its code runs, block after block."""

from __future__ import annotations

import re
from pathlib import Path

import anthropic
import openai
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


@pytest.mark.row("X2")
def test_the_code_on_the_page_runs(tmp_path, monkeypatch, upstream, capsys):
    up = upstream()
    (tmp_path / "README.md").write_text("hello")
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "HOTSET_DATA": str(tmp_path / "data"),
        "OPENAI_BASE_URL": up.openai_url,
        "ANTHROPIC_BASE_URL": up.anthropic_url,
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
    }.items():
        monkeypatch.setenv(name, value)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 8
    scope: dict[str, object] = {}
    made: list[object] = []
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)
        made += scope.values()
    for client in made:
        if isinstance(client, anthropic.Anthropic | openai.OpenAI):
            client.close()  # or its connection would be found open in another test
    told = capsys.readouterr().out
    assert "Message 1 said: Hello!" in told
    assert "What does README.md say?" in told
    assert "1 hot" in told
