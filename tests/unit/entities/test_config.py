"""Validation of EntityRules."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.errors import InvalidInput
from inmind.types import EntityRules

pytestmark = pytest.mark.spec("B5")


@each_row(
    ("options", "field"),
    [
        ({"window": 0}, "entities.window"),
        ({"window": True}, "entities.window"),
        ({"window": "10"}, "entities.window"),
        ({"max_per_list": 0}, "entities.max_per_list"),
        ({"types": ["page"]}, "entities.types"),
        ({"types": {"": ["page"]}}, "entities.types"),
        ({"types": {"page": [7]}}, "entities.types.page"),
        ({"types": {"page": 7}}, "entities.types.page"),
        ({"types": {"page": [""]}}, "entities.types.page"),
        ({"id_keys": ["nr"]}, "entities.id_keys"),
        ({"id_keys": {7: "page"}}, "entities.id_keys"),
        ({"id_keys": {"nr": ""}}, "entities.id_keys.nr"),
        ({"id_keys": {"nr": None}}, "entities.id_keys.nr"),
        ({"extractors": {"crm_*": "not a function"}}, "entities.extractors.crm_*"),
        ({"extractors": [print]}, "entities.extractors"),
    ],
)
def test_invalid_rules_are_rejected_by_field(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        EntityRules(**options)
    assert (refused.value.code, refused.value.field) == ("INVALID_INPUT", field)


def test_a_noun_maps_to_its_registered_type_or_to_itself() -> None:
    rules = EntityRules(types={"customer": ["client"], "employee": "staff"})
    assert [rules.type_for(noun) for noun in ("client", "customer", "staff", "page")] == [
        "customer",
        "customer",
        "employee",
        "page",
    ]


def test_the_first_pattern_that_matches_a_tool_is_its_extractor() -> None:
    rules = EntityRules(extractors={"crm_get_*": lambda _: [], "crm_*": lambda _: []})
    matches = rules.extractor_for("crm_get_lead"), rules.extractor_for("crm_list"), rules.extractor_for("CRM_list")
    assert [match and match[0] for match in matches] == ["crm_get_*", "crm_*", None]
