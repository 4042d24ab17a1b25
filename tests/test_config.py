"""What an operator chose: layers, origins, and settings that cannot be used."""

from __future__ import annotations

import pytest

from hotset.config import load, project_root
from hotset.errors import BadConfig


@pytest.fixture
def config(tmp_path):
    """Loads with a file, an environment and flags of the test's own."""

    def make(file: str = "", environ: dict[str, str] | None = None, **flags):
        path = tmp_path / "config.toml"
        path.write_text(file)
        env = {"HOTSET_CONFIG": str(path), "HOTSET_HOME": str(tmp_path / "home"), **(environ or {})}
        return load(project=flags.pop("project", str(tmp_path)), environ=env, **flags)

    return make


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(config):
    file, env = 'openai_url = "http://file/v1"', {"HOTSET_OPENAI_URL": "http://env/v1"}

    found = [
        config(file, env, openai_url="http://flag/v1"),
        config(file, env),
        config(file),
        config(),
    ]

    assert [each.upstreams["openai"].url for each in found] == [
        "http://flag/v1",
        "http://env/v1",
        "http://file/v1",
        "https://api.openai.com/v1",
    ]
    assert [each.origins["openai_url"] for each in found][:2] == ["--openai-url", "HOTSET_OPENAI_URL"]
    assert found[2].origins["openai_url"].endswith("config.toml")
    assert found[3].origins["openai_url"] == "default"


@pytest.mark.parametrize(
    ("name", "given", "used"),
    [
        ("openai", "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("openai", "http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("openai", "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
        ("anthropic", "https://gateway.example/v1", "https://gateway.example"),
        ("anthropic", "https://gateway.example/claude/", "https://gateway.example/claude"),
    ],
)
def test_a_base_url_may_be_given_with_or_without_its_version(config, name, given, used):
    assert config(**{f"{name}_url": given}).upstreams[name].url == used


@pytest.mark.parametrize(
    "url",
    ["ftp://host/v1", "api.openai.com/v1", "http://", "http://host/v1?x=1", "http://user:pass@host/v1", "http://host:99999/v1"],
)
def test_a_url_that_cannot_be_used_is_refused_with_its_name_and_origin(config, url):
    with pytest.raises(BadConfig, match=r"openai_url \(HOTSET_OPENAI_URL\)"):
        config(environ={"HOTSET_OPENAI_URL": url})


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("openai_url = [", "not TOML"),
        ("openai_url = [1]", "must be text"),
        ("port = 70000", "from 0 to 65535"),
        ('port = "http"', "from 0 to 65535"),
        ("[upstreams.Bad_Name]\nurl = 'http://x'", "lower-case"),
        ("[upstreams.groq]\nurls = 'http://x'", "needs a url"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(config, file, says):
    with pytest.raises(BadConfig, match=says):
        config(file)


def test_further_upstreams_have_names(config):
    found = config('port = 5000\n[upstreams.groq]\nurl = "https://api.groq.com/openai/v1"')

    assert found.upstreams["groq"].url == "https://api.groq.com/openai/v1"
    assert found.port == 5000


def test_the_machines_http_proxy_is_used_as_any_client_would_but_never_for_loopback(config):
    env = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "api.anthropic.com", "HOTSET_OPENAI_URL": "https://gw.example/v1"}

    found = config('[upstreams.local]\nurl = "https://127.0.0.1:1/v1"', env)

    assert {name: upstream.proxy for name, upstream in found.upstreams.items()} == {
        "openai": "http://proxy:3128",
        "anthropic": None,
        "local": None,
    }


@pytest.mark.row("V17")
def test_each_project_has_a_folder_of_its_own_and_its_files_choose_nothing(config, tmp_path):
    folders = []
    for parent in ("one", "two"):
        root = tmp_path / parent / "app"
        (root / "src" / "deep").mkdir(parents=True)
        (root / ".git").mkdir()
        (root / "config.toml").write_text('openai_url = "http://evil.example/v1"')
        (root / "hotset.toml").write_text('openai_url = "http://evil.example/v1"')
        found = config(project=str(root / "src" / "deep"))
        assert found.project == project_root(root / "src") == root
        assert found.upstreams["openai"].url == "https://api.openai.com/v1"
        folders.append(found.folder)

    assert folders[0] != folders[1]
    assert all(folder.name.startswith("app-") for folder in folders)


def test_the_data_folder_can_be_named(config, tmp_path):
    assert config(data=str(tmp_path / "here")).folder == tmp_path / "here"
    assert config(environ={"HOTSET_DATA": str(tmp_path / "there")}).folder == tmp_path / "there"
