"""Reference resolution in English and Chinese, and when the result is a question."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from builders import an_event
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.events.session import EntitiesSeen, EntityPart, EntitySighting
from inmind.entities.entity import MAX_PARTS, Entity, EntityRules
from inmind.entities.references.candidates import MAX_CANDIDATES
from inmind.entities.references.resolve import MAX_TEXT_CHARS, resolve
from inmind.entities.references.result import Resolution
from inmind.entities.window import Entities

pytestmark = pytest.mark.spec("B7")


def window_after(*events: list[EntitySighting]) -> Entities:
    """Window after these sightings, newest last; each list is one event, best match first."""
    entities = Entities()
    for seq, things in enumerate(events, start=1):
        entities = entities.apply(an_event(EntitiesSeen(tuple(things)), seq))
    return entities


def a(type: str, name: str, id: str = "", *, action: str = "", parts: tuple[EntityPart, ...] = ()) -> EntitySighting:
    return EntitySighting(type, id or f"{type}:{name}", name, action=action, parts=parts)


def deleted(type: str, name: str) -> EntitySighting:
    return EntitySighting(type, f"{type}:{name}", how="deleted", action="delete")


ABOUT, CONTACT, HOME = a("page", "About Us"), a("page", "Contact"), a("page", "Home")
HERO = a("section", "Hero")
IMAGES = [a("image", "mountain.jpg"), a("image", "river.jpg"), a("image", "lake.jpg")]
LAMP, DESK = EntityPart("item", "11112222", "Desk Lamp"), EntityPart("item", "33334444", "Standing Desk")
ORDER = a("order", "", "#W123", parts=(LAMP, DESK))
SITE = window_after([ORDER], IMAGES, [CONTACT], [HERO], [ABOUT])
"""Most recent first: About Us, Hero, Contact, three images of one search, an order with two items."""


def resolved_names(text: str, entities: Entities = SITE) -> list[str]:
    """Names that a text resolves to; the candidates if it is ambiguous."""
    answer = resolve(text, entities)
    if answer.verdict == "ambiguous":
        return ["?", *(candidate.entity.name for candidate in answer.candidates)]
    return [entity.name for entity in answer.entities]


@each_row(
    ("text", "names"),
    [
        ("Now add a hero section to it", ["About Us"]),
        ("Delete that page", ["About Us"]),
        ("what is its title?", ["About Us"]),
        ("publish this one", ["About Us"]),
        ("the section", ["Hero"]),
        ("the other page", ["Contact"]),
        ("the second image", ["river.jpg"]),
        ("the first two images", ["mountain.jpg", "river.jpg"]),
        ("the last picture", ["lake.jpg"]),
        ("number 3 of the images", ["lake.jpg"]),
        ("publish both pages", ["About Us", "Contact"]),
        ("all three images", ["mountain.jpg", "river.jpg", "lake.jpg"]),
        ("delete these images", ["mountain.jpg", "river.jpg", "lake.jpg"]),
        ("open the previous one", ["Contact"]),
        ("no, the one before that", ["Contact"]),
        ("the earlier page", ["Contact"]),
    ],
)
def test_an_english_reference_is_resolved(text: str, names: list[str]) -> None:
    assert resolved_names(text) == names


@each_row(
    ("text", "names"),
    [
        ("把它发布", ["About Us"]),
        ("给它添加一个英雄区块", ["About Us"]),
        ("删除这个页面", ["About Us"]),
        ("把该页面改名", ["About Us"]),
        ("那个章节", ["Hero"]),
        ("另一个页面", ["Contact"]),
        ("打开第二张图片", ["river.jpg"]),
        ("前两张图片", ["mountain.jpg", "river.jpg"]),
        ("最后一张图片", ["lake.jpg"]),
        ("倒数第二张图片", ["river.jpg"]),
        ("两个页面都发布", ["About Us", "Contact"]),
        ("删除这些图片", ["mountain.jpg", "river.jpg", "lake.jpg"]),
        ("所有图片", ["mountain.jpg", "river.jpg", "lake.jpg"]),
        ("上一个", ["Contact"]),
        ("之前那个页面", ["Contact"]),
        ("这个订单的商品", ["#W123"]),
        ("把它移到Contact页面", ["About Us"]),
        ("从About Us页面删除它", ["Hero"]),
        ("那個頁面", ["About Us"]),
        ("第二張圖片", ["river.jpg"]),
        ("图片2", ["river.jpg"]),
        ("头一张图", ["mountain.jpg"]),
        ("打开前者", ["mountain.jpg"]),
    ],
)
def test_a_chinese_reference_is_resolved(text: str, names: list[str]) -> None:
    assert resolved_names(text) == names


@each_row(
    ("text", "names"),
    [
        ("open about us", ["About Us"]),
        ("the About page", ["About Us"]),
        ("the about page's title", ["About Us"]),
        ("edit 'Contact'", ["Contact"]),
        ("use mountain as the background", ["mountain.jpg"]),
        ("open the Conatct page", ["Contact"]),
        ("cancel W123", ["#W123"]),
        ("return the desk lamp", ["Desk Lamp"]),
        ("return the lamp", ["Desk Lamp"]),
        ("return 11112222, please", ["Desk Lamp"]),
        ("delete mountain.jpg and lake.jpg", ["mountain.jpg", "lake.jpg"]),
    ],
)
def test_complete_partial_and_misspelt_names_and_ids_are_found(text: str, names: list[str]) -> None:
    assert resolved_names(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [("打开关于我们", ["关于我们"]), ("关于页面的标题", ["关于我们"]), ("联系方式那个页面", ["联系方式"])],
)
def test_chinese_names_are_found_without_spaces(text: str, names: list[str]) -> None:
    assert (
        resolved_names(text, window_after([a("page", "联系方式")], [a("page", "关于我们")], [a("page", "首页")]))
        == names
    )


@each_row(
    "text",
    [
        "",
        "What's the weather?",
        "Create a page",
        "create a new page called Contact",
        "I think that we are done",
        "That's all, thanks",
        "That's great",
        "do it again",
        "is that OK?",
        "新建一个页面",
        "新建一个叫Contact的页面",
        "今天天气怎么样",
    ],
)
def test_a_text_that_refers_to_nothing_resolves_to_nothing(text: str) -> None:
    answer = resolve(text, SITE)
    assert (answer.verdict, answer.entities, answer.question) == ("none", (), "")
    assert answer.why


def test_entities_created_one_by_one_are_referenced_together() -> None:
    entities = window_after([HOME], [a("page", "One", action="create")], [a("page", "Two", action="create")])
    assert resolved_names("publish them", entities) == ["Two", "One"]
    assert resolved_names("publish them", window_after(IMAGES, [HOME])) == ["mountain.jpg", "river.jpg", "lake.jpg"]
    assert resolved_names("what is their address", window_after([a("hotel", "Ritz")], [a("hotel", "Astoria")])) == [
        "Astoria"
    ]


@pytest.mark.parametrize(
    "text", ["rename it to Contact", "change the title of the page to Contact", "call it Contact", "把它改名为Contact"]
)
def test_a_new_name_is_not_a_reference(text: str) -> None:
    assert resolved_names(text) == ["About Us"]


def test_an_unknown_page_is_not_the_current_page() -> None:
    assert resolved_names("open the pricing page") == ["?", "About Us", "Contact"]
    assert resolved_names("pay that invoice") == []


def test_an_earlier_name_still_finds_an_entity() -> None:
    renamed = window_after([a("page", "About Us", "p1")], [a("page", "Our Team", "p1")], [HOME])
    answer = resolve("open About Us", renamed)
    assert answer.entity is not None
    assert (answer.entity.id, answer.entity.name) == ("p1", "Our Team")
    assert "before" in answer.why


@each_row(
    ("text", "reason"),
    [
        ("open the pricing page", '"pricing" was in its earlier name'),
        ("open the team page", '"team" is in its name'),
        ('open "Pricing"', '"Pricing" was in its earlier name'),
        ('open "Team"', '"Team" is in its name'),
    ],
)
def test_the_reason_names_an_earlier_name_if_only_that_has_the_words(text: str, reason: str) -> None:
    renamed = window_after([a("page", "Pricing Plans", "p1")], [a("page", "Our Team", "p1")], [HOME])
    answer = resolve(text, renamed)
    assert answer.entity is not None
    assert (answer.entity.name, answer.why) == ("Our Team", reason)


def test_a_part_is_returned_as_an_entity_with_its_parent() -> None:
    part = resolve("the standing desk", SITE).entity
    assert part is not None
    assert (part.type, part.id, part.parent) == ("item", "33334444", ("order", "#W123"))


def test_the_items_of_an_order_are_found_by_their_noun() -> None:
    assert resolved_names("return the items") == ["Desk Lamp", "Standing Desk"]
    assert resolved_names("return the item") == ["?", "Desk Lamp", "Standing Desk"]


def test_a_type_of_two_words_is_found_by_both_words_and_by_the_last() -> None:
    wallet = window_after([a("payment_method", "Visa")], [HOME])
    assert resolved_names("remove that payment method", wallet) == ["Visa"]
    assert resolved_names("remove that method", wallet) == ["Visa"]


def test_synonyms_registered_by_a_host_are_understood() -> None:
    rules = EntityRules(types={"vessel": ["boat"]})
    assert (
        resolve("where is that boat", window_after([a("vessel", "Aurora")], [HOME]), rules=rules).entities[0].name
        == "Aurora"
    )


@each_row(
    ("text", "names"),
    [
        ("remind me on the 3rd", []),
        ("it is on the second shelf", ["About Us"]),
        ("publish each page", ["About Us", "Contact"]),
        ("what is its price?", ["About Us"]),
        ("the image you found", ["mountain.jpg"]),
        ("do it", []),
        ("it's broken", ["About Us"]),
        ("put it at the top", ["About Us"]),
        ("the ones on the left", ["?", "mountain.jpg", "river.jpg", "lake.jpg"]),
        ("the page that I want", ["About Us"]),
        ("Is that in stock?", ["About Us"]),
        ("a page that has images", []),
        ("both invoices", []),
    ],
)
def test_words_that_look_like_references_are_distinguished(text: str, names: list[str]) -> None:
    assert resolved_names(text) == names


class TestSeveralReferencesInOneText:
    def test_a_name_outranks_a_pronoun(self) -> None:
        assert resolved_names("I like it. Go to the Contact page") == ["Contact"]

    def test_the_object_of_the_verb_is_the_result_and_its_target_is_listed(self) -> None:
        answer = resolve("move it to the Contact page", SITE)
        assert answer.entity is not None
        assert answer.entity.name == "About Us"
        assert [(r.text, r.entity and r.entity.name) for r in answer.references] == [
            ("it", "About Us"),
            ("the Contact page", "Contact"),
        ]

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("delete it from the About page", ["Hero"]),
            ("put that image on the about page", ["mountain.jpg"]),
            ("is it on the Contact page?", ["About Us"]),
        ],
    )
    def test_the_source_or_target_of_a_move_is_not_the_result(self, text: str, names: list[str]) -> None:
        assert resolved_names(text) == names

    def test_a_pronoun_is_ambiguous_if_only_its_container_is_known(self) -> None:
        assert resolved_names("delete it from the About page", window_after([ABOUT])) == ["?", "About Us"]

    def test_the_target_of_a_chinese_addition_has_another_type(self) -> None:
        assert resolved_names("给它加一张图片", window_after([ABOUT], IMAGES[:1])) == ["About Us"]

    def test_a_pronoun_does_not_mean_an_entity_named_in_its_clause(self) -> None:
        answer = resolve("add it to the About page", SITE)
        assert [r.entity and r.entity.name for r in answer.references] == ["Hero", "About Us"]

    def test_a_pronoun_means_the_entity_named_in_the_previous_clause(self) -> None:
        answer = resolve("Open Contact and rename it", SITE)
        assert [r.entity and r.entity.name for r in answer.references] == ["Contact", "Contact"]

    def test_the_target_of_an_addition_has_another_type(self) -> None:
        assert resolved_names("add another section to it", window_after([ABOUT], [HERO])) == ["About Us"]

    def test_the_object_of_a_preposition_is_not_the_main_reference(self) -> None:
        assert resolved_names("delete the images from the About page") == ["mountain.jpg", "river.jpg", "lake.jpg"]
        assert resolved_names("replace mountain.jpg with the third image") == ["mountain.jpg"]

    def test_references_joined_by_and_are_combined(self) -> None:
        jackets = window_after([a("jacket", "gray"), a("jacket", "red and white"), a("jacket", "black")])
        assert resolved_names("I'll take the gray one and the red and white one.", jackets) == ["gray", "red and white"]


class TestDeletedEntities:
    def test_after_a_deletion_it_means_the_only_other_of_that_type(self) -> None:
        answer = resolve("rename it", window_after([HERO], [CONTACT], [ABOUT], [deleted("page", "About Us")]))
        assert answer.entity is not None
        assert answer.entity.name == "Contact"
        assert answer.confidence < 0.6
        assert "deleted" in answer.why

    def test_after_a_deletion_several_candidates_are_ambiguous(self) -> None:
        remaining = window_after([HOME], [CONTACT], [ABOUT], [deleted("page", "About Us")])
        assert resolved_names("rename it", remaining) == ["?", "Contact", "Home"]
        assert resolved_names("rename that page", remaining) == ["?", "Contact", "Home"]

    def test_after_a_deletion_another_type_is_ambiguous(self) -> None:
        assert resolved_names("rename it", window_after([HERO], [ABOUT], [deleted("page", "About Us")])) == [
            "?",
            "Hero",
        ]

    def test_after_the_last_deletion_nothing_is_meant(self) -> None:
        assert resolve("rename it", window_after([ABOUT], [deleted("page", "About Us")])).verdict == "none"

    def test_an_entity_seen_after_the_deletion_is_meant(self) -> None:
        assert resolved_names("rename it", window_after([CONTACT], [ABOUT], [deleted("page", "About Us")], [HOME])) == [
            "Home"
        ]

    @each_row(
        "text",
        [
            "restore it",
            "bring it back",
            "bring that page back",
            "undelete that page",
            "the deleted page",
            "the page I just deleted",
            "删除的那个页面",
            "恢复它",
        ],
    )
    def test_words_for_deletion_mean_deleted_entities(self, text: str) -> None:
        entities = window_after([ABOUT], [CONTACT], [deleted("page", "Contact")], [deleted("page", "About Us")], [HOME])
        assert resolved_names(text, entities) == ["About Us"]

    @pytest.mark.parametrize("text", ["undo that", "undo it", "撤销它"])
    def test_undo_means_only_the_last_deleted_entity(self, text: str) -> None:
        entities = window_after([CONTACT], [ABOUT], [deleted("page", "About Us")])
        assert resolved_names(text, entities) == ["About Us"]
        assert resolved_names(text, entities.apply(an_event(EntitiesSeen((HOME,)), 4))) == ["Home"]

    def test_a_name_finds_a_deleted_entity_and_the_reason_names_the_deletion(self) -> None:
        answer = resolve("open Contact", window_after([CONTACT], [ABOUT], [deleted("page", "Contact")]))
        assert answer.entity is not None
        assert answer.entity.deleted
        assert "deleted" in answer.why

    def test_of_two_with_one_name_the_one_not_deleted_is_meant(self) -> None:
        entities = window_after(
            [a("page", "Draft", "p1"), a("page", "Draft", "p2")], [EntitySighting("page", "p1", how="deleted")]
        )
        answer = resolve("open Draft", entities)
        assert answer.entity is not None
        assert answer.entity.id == "p2"


def after_use(type: str, name: str) -> EntitySighting:
    return EntitySighting(type, f"{type}:{name}", how="used")


class TestPositionsInAList:
    """Positions are counted in the list as it was shown, regardless of later events."""

    @each_row("touched", [*IMAGES, *(after_use("image", image.name) for image in IMAGES)], ids=str)
    @each_row(
        ("text", "names"),
        [
            ("the first image", ["mountain.jpg"]),
            ("the second image", ["river.jpg"]),
            ("the third one", ["lake.jpg"]),
            ("the last two images", ["river.jpg", "lake.jpg"]),
            ("第二张图片", ["river.jpg"]),
            ("all three images", ["mountain.jpg", "river.jpg", "lake.jpg"]),
            ("delete these images", ["mountain.jpg", "river.jpg", "lake.jpg"]),
        ],
    )
    def test_positions_stay_after_an_entry_was_opened_or_named(
        self, touched: EntitySighting, text: str, names: list[str]
    ) -> None:
        assert resolved_names(text, window_after(IMAGES, [touched])) == names

    def test_the_pronoun_it_means_the_used_entry(self) -> None:
        entities = window_after(IMAGES, [IMAGES[1]])
        assert resolved_names("open it", entities) == ["river.jpg"]
        assert resolve("open it", entities).confidence == 0.9

    def test_naming_two_entries_in_another_order_makes_no_new_list(self) -> None:
        entities = window_after(IMAGES, [after_use("image", "lake.jpg"), after_use("image", "mountain.jpg")])
        assert resolved_names("the second image", entities) == ["river.jpg"]

    def test_two_named_entities_outside_any_list_are_counted_in_that_order(self) -> None:
        entities = window_after([HOME], [after_use("page", "X"), after_use("page", "Y")])
        assert [entity.id for entity in resolve("the second page", entities).entities] == ["page:Y"]

    def test_positions_are_counted_in_the_newest_list_of_the_type(self) -> None:
        assert resolved_names("the second image", window_after(IMAGES, [IMAGES[2], IMAGES[0]])) == ["mountain.jpg"]
        assert resolved_names("the second image", window_after(IMAGES, [ABOUT, CONTACT])) == ["river.jpg"]
        assert resolved_names("the second one", window_after(IMAGES, [ABOUT, CONTACT])) == ["Contact"]

    def test_descriptive_words_limit_the_counted_entries(self) -> None:
        shirts = [a("shirt", "red plain"), a("shirt", "blue"), a("shirt", "red striped")]
        assert resolved_names("the second red shirt", window_after(shirts, [shirts[2]])) == ["red striped"]

    def test_an_entry_stored_as_a_part_keeps_its_position_when_used(self) -> None:
        rest = tuple(EntityPart("image", f"img-{n}", f"{n}.jpg", from_same_list=True) for n in range(4, 9))
        long = [a("image", "mountain.jpg", parts=rest), *IMAGES[1:]]
        for touched in (EntitySighting("image", "img-6", how="used"), EntitySighting("image", "img-6", "6.jpg")):
            entities = window_after(long, [touched])
            assert resolved_names("the fifth image", entities) == ["5.jpg"]
            assert resolved_names("the sixth image", entities) == ["6.jpg"]
        assert resolve("open it", window_after(long, [EntitySighting("image", "img-6", "6.jpg")])).confidence == 0.9

    def test_items_of_an_order_keep_their_positions_when_one_is_used(self) -> None:
        for touched in (EntitySighting("item", DESK.id, how="used"), EntitySighting("item", DESK.id, DESK.name)):
            entities = window_after([ORDER], [touched])
            assert resolved_names("return the first item", entities) == ["Desk Lamp"]
            assert resolved_names("return the second item", entities) == ["Standing Desk"]

    def test_each_order_has_a_first_item(self) -> None:
        other = a("order", "", "#W456", parts=(DESK, LAMP))
        assert resolved_names("return the first item", window_after([ORDER], [other])) == ["Standing Desk"]
        again = [EntitySighting("order", "#W123", how="used")], [EntitySighting("item", DESK.id, how="used")]
        assert resolved_names("return the first item", window_after([ORDER], [other], *again)) == ["Desk Lamp"]

    def test_they_does_not_mean_the_parts_after_one_was_opened(self) -> None:
        customer = a("user", "Ada", "ada_1", parts=(EntityPart("order", "#W123"), EntityPart("order", "#W456")))
        assert resolved_names("cancel them", window_after([customer], [ORDER])) == ["#W123"]
        assert resolved_names("cancel the second order", window_after([customer], [ORDER])) == ["#W456"]

    def test_a_position_that_a_deletion_changed_is_ambiguous(self) -> None:
        entities = window_after(IMAGES, [deleted("image", "river.jpg")])
        assert resolved_names("the first image", entities) == ["mountain.jpg"]
        assert resolved_names("the second image", entities) == ["?", "lake.jpg"]
        assert resolved_names("the third image", entities) == ["lake.jpg"]
        entities = window_after(IMAGES, [deleted("image", "mountain.jpg")])
        assert resolved_names("the second image", entities) == ["?", "river.jpg", "lake.jpg"]
        assert resolved_names("the last image", entities) == ["lake.jpg"]
        assert '"mountain.jpg" of the last list was deleted' in resolve("the second image", entities).why

    def test_a_deleted_entry_stored_as_a_part_keeps_its_position(self) -> None:
        rest = tuple(EntityPart("image", f"image:{n}.jpg", f"{n}.jpg", from_same_list=True) for n in (4, 5, 6))
        entities = window_after([a("image", "mountain.jpg", parts=rest), *IMAGES[1:]], [deleted("image", "5.jpg")])
        assert resolved_names("the fourth image", entities) == ["4.jpg"]
        assert resolved_names("the fifth image", entities) == ["?", "6.jpg"]

    def test_the_last_one_may_be_the_last_used(self) -> None:
        assert resolved_names("the last image", window_after(IMAGES)) == ["lake.jpg"]
        assert resolved_names("the last image", window_after(IMAGES, [IMAGES[1]])) == ["?", "river.jpg", "lake.jpg"]
        assert resolved_names("the last image", window_after(IMAGES, [IMAGES[2]])) == ["lake.jpg"]
        assert resolve("the last page", window_after([ABOUT], [CONTACT])).why == "the most recent"

    def test_entries_of_one_list_have_the_same_age(self) -> None:
        assert resolved_names("the oldest page", window_after([ABOUT, CONTACT], [ABOUT])) == [
            "?",
            "Contact",
            "About Us",
        ]

    def test_an_entry_outside_the_window_is_ambiguous(self) -> None:
        remaining = window_after(IMAGES, [IMAGES[1]])
        remaining = remaining.evict([entity for entity in remaining if entity.name != "river.jpg"])
        assert resolved_names("the second image", remaining) == ["river.jpg"]
        assert resolved_names("the third image", remaining) == ["?", "lake.jpg"]
        assert resolved_names("delete these images", remaining) == ["river.jpg"]

    def test_a_list_stays_after_its_type_became_known(self) -> None:
        nameless = [EntitySighting("reference", f"id-{n}00", how="used") for n in (1, 2)]
        entities = window_after(nameless, [a("page", "Two", "id-200")])
        assert resolved_names("the second one", entities) == ["Two"]


class TestNumbers:
    """Small numbers are ids only together with a type or a hash."""

    PRS = window_after([a("pr", "Fix login", "12"), a("pr", "Bump deps", "13")])

    @pytest.mark.parametrize("text", ["close #13", "close PR 13", "close PR #13", "is #13 done?"])
    def test_a_hash_or_the_type_makes_a_number_an_id(self, text: str) -> None:
        assert resolved_names(text, self.PRS) == ["Bump deps"]

    @pytest.mark.parametrize("text", ["wait 13 minutes", "add 13 more", "color #131313", "see C#13"])
    def test_a_bare_number_is_not_a_reference(self, text: str) -> None:
        assert resolved_names(text, self.PRS) == []

    def test_three_digits_are_an_id_also_for_entries_stored_as_parts(self) -> None:
        rest = (EntityPart("pr", "125", "Add docs", from_same_list=True),)
        entities = window_after([EntitySighting("pr", "112", "Fix login", how="listed", parts=rest)])
        assert resolved_names("merge PR 125", entities) == resolved_names("merge #125", entities) == ["Add docs"]

    def test_an_id_never_seen_is_reported(self) -> None:
        assert resolve("close #14", self.PRS).why == "#14 was never seen"

    def test_the_number_of_a_deleted_entity_is_not_a_position(self) -> None:
        entities = window_after(
            [a("pr", name, id) for id, name in (("2", "Fix login"), ("3", "Bump deps"), ("4", "Docs"))]
        )
        entities = entities.apply(an_event(EntitiesSeen((EntitySighting("pr", "3", how="deleted"),)), 9))
        answer = resolve("close PR 3", entities)
        assert (answer.verdict, answer.why) == ("none", '"Bump deps" was deleted')

    def test_the_third_image_is_not_an_order_with_that_number(self) -> None:
        entities = window_after([a("order", "Lamps", "3")], IMAGES)
        assert resolved_names("open image #3", entities) == ["lake.jpg"]
        assert resolved_names("open #3", entities) == ["Lamps"]


class TestAmbiguity:
    def test_after_a_search_it_means_the_best_match_with_less_confidence(self) -> None:
        listed, alone = window_after([ABOUT, CONTACT]), window_after([CONTACT], [ABOUT])
        assert resolved_names("open it", listed) == resolved_names("open it", alone) == ["About Us"]
        assert resolve("open it", listed).confidence < resolve("open it", alone).confidence

    def test_a_short_list_gives_less_confidence_than_a_long_one(self) -> None:
        rest = (EntityPart("image", "img-4", "delta.jpg", from_same_list=True),)
        short, long = window_after(IMAGES), window_after([a("image", "mountain.jpg", parts=rest), *IMAGES[1:]])
        for text in ("open it", "open that image", "打开它"):
            assert resolved_names(text, short) == resolved_names(text, long) == ["mountain.jpg"]
            assert resolve(text, short).confidence < resolve(text, long).confidence
            assert "any of them fits" in resolve(text, short).why

    def test_the_page_after_a_short_list_is_ambiguous(self) -> None:
        answer = resolve("open the page", window_after([ABOUT, CONTACT]))
        assert answer.question == "Which page: About Us or Contact?"
        assert answer.entity is None

    def test_the_question_for_a_chinese_text_is_chinese(self) -> None:
        assert (
            resolve("打开页面", window_after([ABOUT, CONTACT])).question == "是哪个页面：「About Us」还是「Contact」？"
        )

    def test_part_of_several_names_is_ambiguous(self) -> None:
        blogs = window_after([a("post", "Winter Sale 2023")], [a("post", "Winter Sale 2024")])
        answer = resolve("publish the winter sale post", blogs)
        assert answer.question == "Which post: Winter Sale 2024 or Winter Sale 2023?"
        assert resolved_names("publish the winter sale 2023 post", blogs) == ["Winter Sale 2023"]

    def test_equal_names_are_distinguished_by_id_in_the_question_and_by_a_noun_next_to_them(self) -> None:
        twins = window_after([a("page", "News", "p1")], [a("post", "News", "b1")])
        assert resolve("open News", twins).question == "Which one: News (post b1) or News (page p1)?"
        assert [entity.id for entity in resolve("open the News page", twins).entities] == ["p1"]

    def test_names_that_differ_only_in_case_are_distinguished_by_type(self) -> None:
        alike = window_after([a("project", "apollo", "apollo")], [a("customer", "Apollo", "c1")])
        assert resolve("open apollo", alike).question == "Which one: Apollo (customer c1) or apollo (project)?"

    def test_a_noun_next_to_a_name_outranks_a_longer_match(self) -> None:
        mail = EntityPart("email", "ops@acme.com")
        accounts = window_after([a("account", "Acme Corp International", "acc_1", parts=(mail,))])
        assert [entity.id for entity in resolve("open Acme account", accounts).entities] == ["acc_1"]

    def test_both_of_three_is_ambiguous(self) -> None:
        three = window_after([HOME], [CONTACT], [ABOUT])
        assert resolved_names("delete both pages", three) == ["?", "About Us", "Contact", "Home"]
        assert resolved_names("两个页面都删除", three) == ["?", "About Us", "Contact", "Home"]

    def test_the_other_one_of_three_is_ambiguous(self) -> None:
        assert resolved_names("the other image") == ["?", "river.jpg", "lake.jpg"]
        assert resolved_names("the other two images") == ["river.jpg", "lake.jpg"]

    def test_a_position_beyond_the_list_resolves_to_nothing(self) -> None:
        answer = resolve("the ninth image", SITE)
        assert answer.verdict == "none"
        assert "only 3" in answer.why

    def test_a_long_list_can_be_counted_beyond_its_entities(self) -> None:
        rest = (EntityPart("image", "img-4", "delta.jpg", from_same_list=True),)
        entities = window_after([a("image", "mountain.jpg", parts=rest), *IMAGES[1:]])
        assert resolved_names("the fourth image", entities) == ["delta.jpg"]
        for text in ("delete every image", "delete all images", "删除所有图片"):
            assert resolved_names(text, entities) == ["mountain.jpg", "river.jpg", "lake.jpg", "delta.jpg"]

    @pytest.mark.parametrize("text", ["the last image", "delete all images", "delete these images", "最后一张图片"])
    def test_the_end_of_a_truncated_list_is_ambiguous(self, text: str) -> None:
        rest = tuple(EntityPart("image", f"img-{n}", f"{n}.jpg", from_same_list=True) for n in range(MAX_PARTS + 1))
        entities = window_after([a("image", "mountain.jpg", parts=rest), *IMAGES[1:]])
        assert entities[0].parts_left_out
        assert resolve(text, entities).verdict == "ambiguous"

    @each_row("text", ["删除产品页面", "删除定价页面", "删除Pricing页面", "删除 pricing 页面", "删除那个产品页面"])
    def test_a_chinese_description_that_fits_nothing_is_ambiguous(self, text: str) -> None:
        assert resolved_names(text, window_after([a("page", "首页")])) == ["?", "首页"]

    @each_row("text", ["删除页面", "请帮我打开页面", "检查一下页面", "刚打开的页面", "我的页面"])
    def test_a_chinese_verb_is_not_a_description(self, text: str) -> None:
        assert resolved_names(text, window_after([a("page", "首页")])) == ["首页"]

    def test_chinese_words_of_a_name_describe_it(self) -> None:
        assert resolved_names("删除产品页面", window_after([a("page", "产品列表")], [a("page", "首页")])) == [
            "产品列表"
        ]


class TestExclusion:
    @each_row("text", ["not that page", "neither of them", "not Contact", "不是这个", "不要这个页面"])
    def test_an_excluded_entity_is_not_meant(self, text: str) -> None:
        answer = resolve(text, SITE)
        assert (answer.verdict, answer.entities) == ("none", ())
        assert "excluded by the text" in answer.why

    def test_the_other_entities_are_meant(self) -> None:
        assert resolved_names("delete all images except the first one") == ["river.jpg", "lake.jpg"]
        assert resolved_names("delete all pages except Contact") == ["About Us"]
        assert resolved_names("not that page, the other one") == ["Contact"]

    def test_a_question_is_not_an_exclusion(self) -> None:
        assert resolved_names("是不是这个页面") == ["About Us"]


class TestByAge:
    PAGES = window_after([HOME], [CONTACT], [ABOUT])

    @each_row(
        ("text", "names"),
        [
            ("the first page", ["Home"]),
            ("the second page", ["Contact"]),
            ("the first page I opened", ["Home"]),
            ("the page I made first", ["Home"]),
            ("the oldest page", ["Home"]),
            ("the newest page", ["About Us"]),
            ("the latest page", ["About Us"]),
            ("the most recent page", ["About Us"]),
            ("the last page I opened", ["About Us"]),
        ],
    )
    def test_without_a_list_entities_are_counted_by_first_sighting(self, text: str, names: list[str]) -> None:
        assert resolved_names(text, self.PAGES) == names

    def test_the_newest_is_ambiguous_if_an_older_one_was_used_since(self) -> None:
        early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
        home = Entity("p1", "page", "Home", first_seen=early, last_seen=late)
        team = Entity("p2", "page", "Team", first_seen=late, last_seen=late)
        assert resolved_names("the newest page", Entities((home, team))) == ["?", "Home", "Team"]
        assert resolved_names("the oldest page", Entities((home, team))) == ["Home"]

    def test_the_oldest_of_one_list_is_ambiguous(self) -> None:
        assert resolved_names("the oldest image") == ["?", "mountain.jpg", "river.jpg", "lake.jpg"]


class TestNounWithNumber:
    @pytest.mark.parametrize("text", ["image 3", "open image #3", "the image 3", "image number 3"])
    def test_a_number_after_a_noun_is_a_position(self, text: str) -> None:
        assert resolved_names(text) == ["lake.jpg"]

    def test_a_number_after_a_noun_is_an_id_if_an_entity_has_it(self) -> None:
        pages = window_after([a("page", "Home", "2"), a("page", "Team", "1")])
        assert resolved_names("delete page 1", pages) == ["Team"]
        assert resolve("delete page 1", pages).references[0].kind == "id"

    def test_a_number_after_a_noun_is_ambiguous_without_a_list(self) -> None:
        assert resolved_names("page 1") == ["?", "About Us", "Contact"]


class TestPreviousMessage:
    def test_it_means_the_entity_that_the_assistant_just_named(self) -> None:
        answer = resolve("Yes, open it", window_after([ABOUT, CONTACT]), previous_text="How about the Contact page?")
        assert answer.entity is not None
        assert answer.entity.name == "Contact"

    def test_options_are_counted_in_the_order_they_were_offered(self) -> None:
        answer = resolve("the first one", SITE, previous_text="Which page: Contact or About Us?")
        assert answer.entity is not None
        assert answer.entity.name == "Contact"


class TestSearchedEntities:
    def test_search_is_used_only_if_nothing_in_the_window_fits(self) -> None:
        searches: list[str] = []

        def search() -> Iterator[Entity]:
            searches.append("search")
            yield Entity("p9", "page", "Pricing")

        assert resolve("open Contact", SITE, searched=search()).verdict == "resolved"
        assert searches == []
        answer = resolve("open Pricing", SITE, searched=search())
        assert searches == ["search"]
        assert answer.entity is not None
        assert answer.entity.id == "p9"
        assert answer.confidence < 0.9
        assert "outside the window" in answer.why

    def test_a_description_is_searched_before_asking(self) -> None:
        deep = [Entity("p9", "page", "Pricing")]
        answer = resolve("open the pricing page", SITE, searched=deep)
        assert answer.entities == tuple(deep)

    @pytest.mark.parametrize("text", ["delete the page", "delete that page", "删除页面", "the first page"])
    def test_a_searched_entity_known_only_by_type_is_ambiguous(self, text: str) -> None:
        one, two = Entity("p8", "page", "Pricing"), Entity("p9", "page", "Team")
        entities = window_after([ABOUT], [deleted("page", "About Us")])
        for deep in ([one], [one, two]):
            answer = resolve(text, entities, searched=deep)
            assert answer.verdict == "ambiguous"
            assert [candidate.entity for candidate in answer.candidates] == deep
            assert "outside the window" in answer.why
            assert "in the window" not in answer.why

    @pytest.mark.parametrize("text", ["restore it", "restore the deleted page"])
    def test_a_searched_deleted_entity_is_ambiguous(self, text: str) -> None:
        deleted_page = Entity("p9", "page", "Pricing", deleted=True)
        answer = resolve(text, SITE, searched=[deleted_page])
        assert answer.question == "Do you mean Pricing?"
        assert resolve(text, SITE).verdict == "ambiguous"

    def test_a_pronoun_does_not_mean_a_searched_entity(self) -> None:
        assert resolve("open it", Entities(), searched=[Entity("p9", "page", "Pricing")]).verdict == "none"


def test_a_resolution_reads_as_a_sentence() -> None:
    assert str(resolve("open Contact", SITE)) == 'page:Contact, "Contact" (90%: "Contact" is its name)'
    assert str(resolve("hello", SITE)) == "nothing (no reference to an entity)"


SCRAPS = st.sampled_from(
    "it that the this these both all other first second last two one page pages image section About Contact Us and "
    "a an restore deleted before not except undo oldest newest 3 rename to , . 's #W123 \udcff “ \" "
    "它 这个 第二 张 图片 页面 另一个 都 删除 的 那 两个".split()
)


@given(
    text=st.one_of(st.text(), st.lists(SCRAPS, max_size=20).map(" ".join), st.lists(SCRAPS, max_size=20).map("".join))
)
def test_any_text_has_a_consistent_resolution(text: str) -> None:
    is_consistent(resolve(text, SITE, previous_text=text, searched=SITE))


def is_consistent(answer: Resolution) -> None:
    assert 0 <= answer.confidence <= 1
    assert len(answer.candidates) <= MAX_CANDIDATES
    assert (answer.verdict == "resolved") == bool(answer.entities)
    assert (answer.verdict == "ambiguous") == bool(answer.question)
    assert answer.why
    assert str(answer)
    confidences = [candidate.confidence for candidate in answer.candidates]
    assert confidences == sorted(confidences, reverse=True)
    for reference in answer.references:
        assert answer.text[slice(*reference.span)] == reference.text


@pytest.mark.exhaustive
@each_row(
    "scrap",
    [
        "it ",
        "the ",
        "第二",
        "rename ",
        "a page ",
        "Contact ",
        '"',
        "this that ",
        "另一",
        "\n",
        "汉",
        "not ",
        "ok that ",
    ],
)
def test_only_the_beginning_of_a_huge_text_is_read(scrap: str) -> None:
    huge = scrap * (100_000 // len(scrap))
    assert resolve(huge, SITE).references == resolve(huge[:MAX_TEXT_CHARS], SITE).references


def test_a_deleted_entity_is_named_in_the_reason() -> None:
    answer = resolve("rename the page", window_after([ABOUT], [deleted("page", "About Us")]))
    assert (answer.verdict, answer.why) == ("none", '"About Us" was deleted, and no other page is known')


class TestAllBut:
    PAGES = window_after([a("page", "Team")], [HOME])

    @pytest.mark.parametrize(
        "text", ["every page but the home one", "publish all pages but Home", "all pages but for Home"]
    )
    def test_all_but_one_means_the_others(self, text: str) -> None:
        assert resolved_names(text, self.PAGES) == ["Team"]

    def test_any_but_one_excludes_that_one(self) -> None:
        assert resolved_names("any page but the home one", self.PAGES) == []

    def test_a_new_clause_after_but_excludes_nothing(self) -> None:
        assert "Home" in resolved_names("I like every page but the home one is slow", self.PAGES)

    @pytest.mark.parametrize("text", ["that one, not the first", "not the first, that one"])
    def test_a_reference_to_an_excluded_entity_is_ambiguous(self, text: str) -> None:
        assert resolved_names(text, window_after(IMAGES)) == ["?", "river.jpg", "lake.jpg"]

    def test_excluding_the_only_entity_means_nothing(self) -> None:
        assert resolved_names("that one, not the Home page", window_after([HOME])) == []


class TestUnknownChineseNoun:
    @each_row("text", ["退那个台灯", "那件衣服", "没有那个意思", "那些台灯", "把那个台灯退了", "那个台灯的价格"])
    def test_an_unknown_noun_after_a_demonstrative_means_nothing(self, text: str) -> None:
        answer = resolve(text, SITE)
        assert (answer.verdict, answer.entities) == ("none", ())
        assert "is known" in answer.why

    @each_row(
        "text", ["删除那个", "那个很好看", "这个怎么样", "把这个打印出来", "这个发布一下", "那个删了吧", "这个可以吗"]
    )
    def test_a_verb_or_an_adjective_is_not_a_noun(self, text: str) -> None:
        assert resolved_names(text) == ["About Us"]

    def test_an_unknown_noun_is_reported_completely(self) -> None:
        assert resolve("那个功能不错", SITE).why == "no 功能 is known"

    def test_a_name_after_a_demonstrative_is_a_name(self) -> None:
        assert resolved_names("退那个台灯", window_after([a("item", "台灯")], [HOME])) == ["台灯"]

    def test_descriptive_words_are_looked_for_in_names(self) -> None:
        coats = window_after([a("coat", "红色"), a("coat", "蓝色")], [HOME])
        assert resolved_names("要那件蓝色的", coats) == ["蓝色"]
        assert resolved_names("要那件绿色的", window_after([ABOUT])) == ["?", "About Us"]


@each_row("text", ["关于我们页面", "打开关于我们页面", "打开设置页面", "删除联系我们页面", "那个定价页面"])
def test_chinese_words_that_could_be_a_name_are_not_dropped(text: str) -> None:
    assert resolved_names(text, window_after([ABOUT], [CONTACT])) == ["?", "Contact", "About Us"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("把第一张图放到 About Us 页面", ["mountain.jpg"]),
        ("把第一张图放到About Us页面", ["mountain.jpg"]),
        ("把第一张图设为 About Us 页面的封面", ["mountain.jpg"]),
        ("把 Contact 页面的标题改掉", ["Contact"]),
    ],
)
def test_the_object_marked_by_ba_is_the_main_reference(text: str, names: list[str]) -> None:
    assert resolved_names(text) == names


def test_the_target_of_ba_stays_among_the_references() -> None:
    answer = resolve("把第一张图放到 About Us 页面", SITE)
    assert [r.entity and r.entity.name for r in answer.references] == ["mountain.jpg", "About Us"]


@pytest.mark.parametrize("text", ["the previous one", "上一个"])
def test_the_previous_one_is_not_in_the_list_that_was_just_shown(text: str) -> None:
    assert resolved_names(text, window_after(IMAGES)) == ["?", "mountain.jpg", "river.jpg", "lake.jpg"]
    assert resolved_names(text, window_after([a("image", "sea.jpg")], IMAGES)) == ["sea.jpg"]


def test_an_unknown_id_is_named_in_the_reason() -> None:
    answer = resolve("delete page-99", SITE)
    assert (answer.verdict, answer.why) == ("none", "page-99 was never seen")
