"""Settings have documented names, and a misspelled one is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inmind.core.paths import CONFIG
from inmind.core.settings import Settings, load_settings
from inmind.errors import InvalidInput


@pytest.mark.spec("G15")
def test_the_defaults_match_the_design() -> None:
    settings = Settings()
    assert settings.dream.enabled is True
    assert settings.dream.interval_minutes == 120
    assert settings.dream.min_crystals == 5
    assert settings.consolidation.interval_minutes == 30
    assert settings.search.sources == ("memory", "sessions")


@pytest.mark.spec("G15")
def test_a_config_file_overrides_defaults_and_arguments_override_both(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text("[dream]\ninterval_minutes = 60\nmin_crystals = 3\n[affect]\nenabled = false\n")
    settings = load_settings(tmp_path, {"dream.interval_minutes": 15})
    assert (settings.dream.interval_minutes, settings.dream.min_crystals) == (15, 3)
    assert settings.affect.enabled is False


def test_names_can_be_dotted_or_nested(tmp_path: Path) -> None:
    dotted = load_settings(tmp_path, {"search.sources": ["memory"], "dream.enabled": False})
    assert dotted == load_settings(tmp_path, {"search": {"sources": ["memory"]}, "dream": {"enabled": False}})


@pytest.mark.parametrize(
    ("overrides", "field", "expected"),
    [
        ({"dream.enable": True}, "settings.dream.enable", "dream.enabled"),
        ({"dream.enabled": "yes"}, "settings.dream.enabled", "true or false"),
        ({"dream.interval_minutes": 0}, "settings.dream.interval_minutes", "more than 0"),
        ({"dream.interval_minutes": -1}, "settings.dream.interval_minutes", "a number"),
        ({"dream.interval_minutes": float("nan")}, "settings.dream.interval_minutes", "a number"),
        ({"dream.min_crystals": 2.5}, "settings.dream.min_crystals", "a whole number"),
        ({"dream.min_crystals": True}, "settings.dream.min_crystals", "a whole number"),
        ({"search.sources": []}, "settings.search.sources", "memory"),
        ({"search.sources": ["dreams"]}, "settings.search.sources", "memory"),
        ({"model.provider": "other"}, "settings.model.provider", "openai"),
        ({"model.name": 3}, "settings.model.name", "a text"),
        ({"model.window": -1}, "settings.model.window", "a whole number"),
        (["dream"], "settings", "a mapping"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_name(
    tmp_path: Path, overrides: object, field: str, expected: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_settings(tmp_path, overrides)
    assert refused.value.field == field
    assert expected in refused.value.expected


@pytest.mark.parametrize("text", [b"[dream\n", b"\xff\xfe", b"dream = 3\n"])
def test_a_broken_config_file_is_reported(tmp_path: Path, text: bytes) -> None:
    (tmp_path / CONFIG).write_bytes(text)
    with pytest.raises(InvalidInput):
        load_settings(tmp_path)


@pytest.mark.spec("J3", "F54")
def test_a_pipe_or_a_folder_instead_of_the_config_file_is_refused(tmp_path: Path) -> None:
    for make in (os.mkfifo, os.mkdir):
        make(tmp_path / CONFIG)
        with pytest.raises(InvalidInput, match="expected a plain file of TOML"):
            load_settings(tmp_path)
        (tmp_path / CONFIG).rename(tmp_path / make.__name__)
    (tmp_path / CONFIG).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="expected a plain file of TOML"):
        load_settings(tmp_path)


@pytest.mark.spec("J6")
@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"model.api_key": "sk-s3cr3t"}, "model.key_env names the environment variable"),
        ({"OPENAI_TOKEN": "sk-s3cr3t"}, "model.key_env names the environment variable"),
        ({"model": {"auth": {"secret": "sk-s3cr3t"}}}, "a known setting"),
        ({"model": {"name": {"key": "sk-s3cr3t"}}}, "a value, not a table"),
        ({"model.key_env": "sk-s3cr3t"}, "the name of a variable, never a key"),
        ({"model.daily_token": 5}, "did you mean model.daily_tokens?"),
    ],
)
def test_possible_secrets_are_not_shown(tmp_path: Path, overrides: object, expected: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_settings(tmp_path, overrides)
    assert expected in str(refused.value)
    assert "s3cr3t" not in f"{refused.value} {refused.value.value!r}"
