"""A language is one file of tables: rules find its words without a change of their own."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from inmind import Session
from inmind.core import language as package
from inmind.core import tool_outcome
from inmind.core.language import languages
from inmind.core.language.tables import Language, ReferenceWords, ResultWords, numbered, time_picks, words

SPANISH = Language(
    code="es",
    common_words=words("el la los las de que y en un una es por con para esa esta"),
    negations="no|nunca|sin",
    results=ResultWords(failure="fallo", refusal="no existe", not_deleted="bloqueado", no_matches="sin resultados"),
    references=ReferenceWords(
        nouns={"página": ("page",), "imagen": ("image", "media")},
        plurals={"páginas": "página", "imágenes": "imagen"},
        generic_nouns=words("cosa"),
        numbers=numbered("uno una", "dos"),
        ordinals=numbered("primera primer", "segunda segundo"),
        other=words("otra otro"),
        picks=time_picks(previous="anterior", oldest="antigua", newest="reciente"),
        deleted=words("borrada"),
        restore="restaurar",
        undo="deshacer",
        articles=words("el la los las"),
        demonstratives=words("esa ese esta este"),
        universal=words("ambas todas"),
        pair=words("ambas"),
        possessives=words("su"),
        indefinite=words("un una"),
        pronouns=words("ella"),
        plural_pronouns=words("ellas"),
        joining=words("y"),
        stop=words("es por favor"),
        speakers=words("yo tú"),
    ),
)


@pytest.fixture
def _spanish(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cached = (languages.any_word, languages.word_pattern, languages.result_words, tool_outcome.failure_pattern)
    monkeypatch.setattr(languages, "LANGUAGES", (*languages.LANGUAGES, SPANISH))
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


@pytest.mark.spec("B7")
@pytest.mark.usefixtures("_spanish")
def test_a_language_is_added_as_one_file_of_tables(session: Session) -> None:
    for number, title in enumerate(["Inicio", "Contacto"], start=1):
        page = {"id": f"page-{number}", "type": "page", "title": title}
        session.observe("get_page", {"page_id": f"page-{number}"}, page)
    latest, other = (session.resolve(text).entity for text in ("Borra esa página", "Abre la otra página, por favor"))
    assert latest is not None
    assert other is not None
    assert (latest.name, other.name) == ("Contacto", "Inicio")
    assert languages.is_negated("El botón no funciona")
    assert tool_outcome.is_failure("fallo: disco lleno")


def test_every_file_of_tables_is_a_language() -> None:
    names = (f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__))
    modules = list(map(importlib.import_module, names))
    tables = {id(value) for module in modules for value in vars(module).values() if isinstance(value, Language)}
    assert tables == set(map(id, languages.LANGUAGES))
