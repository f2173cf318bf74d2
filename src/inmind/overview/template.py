"""The page a new session starts from, and the test whether anybody has written on it.

The comments guide a model that sees the file in every request; they are not content, so a page that has only
headings and comments still counts as empty, in whichever language it was begun.
"""

from __future__ import annotations

import re

LANGUAGES = ("en", "zh")

_ENGLISH = """\
# Working memory

<!-- Yours to keep: this file is shown to you in every request. Short lines, current state, no history.
Longer notes belong in detail/, finished work in archive/. -->

## Current task
<!-- What was asked, how far it is, what comes next. -->

## Key decisions
<!-- What was decided, and why. -->

## Known facts
<!-- Names, paths, ids, constraints that will be needed again. -->

## Open problems
<!-- What is unsolved or waiting for somebody. -->

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
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def template(language: str) -> str:
    return _TEMPLATES[language]


def is_maintained(text: str) -> bool:
    """Has anybody written a line here that is neither heading nor comment?"""
    lines = _COMMENT.sub("", text).splitlines()
    return any(line.strip() and not line.lstrip().startswith("#") for line in lines)
