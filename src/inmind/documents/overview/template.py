"""The overview page of a new session.

Headings name the sections and comments explain them, so the file can be edited without a manual.
"""

from __future__ import annotations

from enum import IntEnum

from inmind.documents.overview.sections import find_headings

LANGUAGES = ("en", "zh")

_ENGLISH = """\
# Working memory

<!-- You maintain this file; it is in every request. Short lines, current state, no history.
Longer notes belong in detail/, finished work in archive/. -->

## Current task
<!-- The request, the progress so far, the next step. -->

## Key decisions
<!-- Decisions and their reasons. -->

## Known facts
<!-- Names, paths, ids, constraints that will be needed again. -->

## Open problems
<!-- Unsolved problems, and questions that wait for an answer. -->

## Recent actions
<!-- The last few steps, newest first. -->
"""

_CHINESE = """\
# 工作记忆

<!-- 这是你自己的记忆，每次请求都会看到。请写短句，只写当前状态，不写流水账。
较长的内容放进 detail/，已完成的工作放进 archive/。 -->

## 当前任务
<!-- 要做什么，进展如何，下一步是什么。 -->

## 关键决策
<!-- 决定了什么，为什么。 -->

## 已知信息
<!-- 以后还会用到的名称、路径、编号和约束。 -->

## 待解决问题
<!-- 尚未解决或在等待他人的事项。 -->

## 最近操作
<!-- 最近几步，最新的在前。 -->
"""

_TEMPLATES = {"en": _ENGLISH, "zh": _CHINESE}


class OverviewSection(IntEnum):
    """Sections of the template by position."""

    TASK = 0
    DECISIONS = 1
    FACTS = 2
    PROBLEMS = 3
    ACTIONS = 4

    def headings(self, language: str) -> list[str]:
        """Its headings in this language first, then in all others: a page may be in any of them."""
        return [_HEADINGS[one][self] for one in (language, *LANGUAGES)]


_HEADINGS = {
    language: [words for _, level, words in find_headings(page.split("\n")) if level == 2]
    for language, page in _TEMPLATES.items()
}


def template(language: str) -> str:
    return _TEMPLATES[language]
