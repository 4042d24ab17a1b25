"""The language of a text."""

import pytest

from hotset.text.human_language import is_latin, language_of, pairs_of_letters


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Mach im Wohnzimmer das Licht an", "german"),
        ("Löscht Dateien für immer", "german"),
        ("Recherche des messages reçus dans la boîte", "french"),
        ("Busca mensajes recibidos en el buzón", "spanish"),
        ("Mostra i voli da Roma a Milano della prossima settimana", "italian"),
        ("Quero reservar um hotel em Lisboa", "portuguese"),
        ("Boek voor mij een kamer met ontbijt in Utrecht", "dutch"),
        ("commit history", ""),
        ("Show me flights to Los Angeles", ""),
        ("Los Angeles", ""),
        ("Roll the die; AI of the van was on.", ""),
        ("帮我发一封邮件", ""),
        ("", ""),
    ],
)
def test_the_language_of_a_text(text, language):
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("read the file", True),
        ("Löscht Dateien für immer", True),
        ("把这段话翻成法语", False),
        ("打开 config.yaml 看看里面写了什么", False),
        ("この画像を小さくして", False),
        ("удали старые файлы", False),
        ("translate 你好 into plain English, please", True),
        ("12345", True),
        ("", True),
    ],
)
def test_whether_a_text_is_in_latin_letters(text, latin):
    assert is_latin(text) is latin


def test_pairs_are_made_of_runs_of_letters_without_spaces():
    assert pairs_of_letters("发邮件 to 王") == {"发邮", "邮件", "王"}
    assert pairs_of_letters("plain words") == frozenset()
