"""Finds references in Chinese text.

Chinese marks neither plural nor article. A reference is recognised by its demonstrative, number and measure word
(那张图片, 第二个页面). A bare noun is definite depending on the verb before it: 删除页面 refers to an existing
page, 新建页面 does not. Words between the verb and the noun describe it (删除定价页面); as no space ends the verb,
common verbs are listed here. After another verb the resolver asks, which is the cheaper error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from inmind.entities.references.phrase import Phrase, Pick

NOUN_TYPES: dict[str, tuple[str, ...]] = {
    noun: tuple(types.split())
    for types, several in {
        "page": "页面 网页 页",
        "section": "章节 区块 板块 模块 段落 部分 小节",
        "image media": "图片 图像 照片 相片 插图 图",
        "media": "媒体 素材",
        "post article": "文章 帖子 博文 博客 帖",
        "task todo": "任务 待办 待办事项",
        "collection": "集合 合集 收藏夹",
        "entry": "条目 词条 记录",
        "order": "订单",
        "user customer": "用户 客户 顾客",
        "file document": "文件 文档",
        "folder directory": "文件夹 目录",
        "email mail message": "邮件 电子邮件 邮箱",
        "message": "消息 信息 短信",
        "flight": "航班",
        "booking reservation": "预订 预定 预约",
        "item product": "商品 产品 货品 物品",
        "meeting event appointment": "会议",
        "event": "事件 活动 日程",
        "hotel": "酒店 宾馆 旅馆",
        "house": "房子 住处 民宿",
        "restaurant": "餐厅 饭店 餐馆",
        "room": "房间",
        "account": "账户 账号 帐户 帐号",
        "comment": "评论 留言",
        "video": "视频",
        "project": "项目 工程",
        "branch": "分支",
        "issue ticket bug": "问题 工单 缺陷",
        "contact": "联系人",
        "table": "表格 数据表",
        "link": "链接",
        "button": "按钮",
        "component": "组件",
        "menu": "菜单",
        "tag label": "标签",
        "note": "笔记 备注",
        "invoice": "发票 账单",
        "package parcel": "包裹 快递",
        "payment_method": "付款方式 支付方式",
        "address": "地址",
        "car": "车 汽车 车辆",
        "movie film": "电影",
        "song track": "歌曲 歌",
        "ticket": "票 车票 机票",
        "repository repo": "仓库 代码库",
        "server": "服务器",
        "person": "人",
    }.items()
    for noun in several.split()
}
"""Chinese nouns for common types."""

_MEASURE = "[个張张篇条份件项位封本部家间只款趟班笔幅段节页辆套首处名台座行列块则支棵]"
_DIGITS = {"一": 1, "二": 2, "两": 2, "俩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_NUMBER = "(?:[一二三四五六七八九十]|[0-9]{1,2})"
_PLURAL_NUMBER = "(?:[两俩二三四五六七八九十]|[0-9]{1,2})"
_CREATE_VERB_BEFORE = re.compile("(?:新建|创建|新增|添加|增加|加|建|写|新|一" + _MEASURE + ")(?:了|个|的|一个)?$")
_RESTORE_PHRASE = re.compile("恢复|还原|撤销删除|找回")
_UNDO_PHRASE = re.compile("撤销|撤回")

# Words that do not describe the noun after them: verbs, particles, pronouns, words of time and politeness.
_NOT_DESCRIPTIVE_WORDS = (
    "删除 删掉 删去 删 移除 移动 移到 移 打开 关闭 查看 看看 看 修改 编辑 更新 更改 改 发布 发送 发 保存 "
    "复制 重命名 命名 添加 增加 加入 加 新建 创建 建立 建 生成 制作 做 写 设置 设计 设为 放到 放在 放 "
    "替换 换成 换 上传 下载 分享 显示 隐藏 展示 列出 搜索 查找 寻找 找到 找 检查 测试 优化 翻译 总结 取消 "
    "预订 预定 订 购买 买 退 付 支付 使用 用 选择 选 恢复 还原 撤销 找回 归档 导出 导入 合并 拆分 访问 "
    "进入 返回 回到 喜欢 需要 想要 要 想 完成 开始 处理 提交 告诉 介绍 说明 描述 问 给 把 将 被 让 叫 请 "
    "帮 帮忙 在 从 到 往 向 对 对于 跟 和 与 及 或 是 有 没有 不 也 都 就 再 还 又 先 然后 现在 刚才 刚刚 "
    "当前 目前 今天 昨天 之前 以前 前面 一下 一些 这 那 哪 每 各 某 些 个 的 了 着 过 我 你 您 他 她 它 "
    "我们 你们 他们 它们 咱们 吗 呢 吧 啊 什么 怎么 为什么 多少 几 整个 所有 全部 任何 新 旧 老 里 所 只 "
    "能 可以 会 应该 必须 继续 直接 马上 立即"
)
_NOT_DESCRIPTIVE = re.compile("|".join(sorted(_NOT_DESCRIPTIVE_WORDS.split(), key=len, reverse=True)))
# Other words that may follow 那个 and are not nouns: adjectives and verbs.
_PREDICATE_WORDS = (
    "很 太 真 最 更 比 较 没 行 好 可 贵 便宜 大 小 多 少 高 低 长 短 合适 适合 错 挺 非常 特别 有 应 值 属于 包含 "
    "包括 开 关 坏 丢 如何 怎 谁 嘛 呀 啦 哦 而 但 因 并 且 以 来 去 卖 拿 送 寄 取 走 停 存 撤 传 读 听 试 算 留 保 "
    "调 缩 变 成 出 入 上 下 起 转 推 拉 分 合 排 清 归 刷 重 复 打 剪 裁 居 右 左 一 两 已 正 仍 似 像 看 样 之 其 "
    "才 刚 也 均 全 同 除 另 或 挪 弄 搞 搬 贴 粘 锁 启 禁 隐 显 固 收 加 减 补 填 签 审 批 置 干 急 吃 喝 穿 戴 交 接 "
    "运 执 标 定 划 点 双击 单击 确 认 作 当 离 靠 值 算了"
)
_NOT_A_NOUN = re.compile(
    "|".join(sorted({*_NOT_DESCRIPTIVE_WORDS.split(), *_PREDICATE_WORDS.split()}, key=len, reverse=True))
)
_DEMONSTRATIVE_END = re.compile(f"[这那](?:一?{_MEASURE}|些)$")
_VERB_SUFFIX = re.compile("一下|掉|成|着|过")
_MAX_UNKNOWN_NOUN_CHARS = 6
_PLURAL_PERSON = re.compile("我们|你们|他们|咱们")
_ACTION_VERBS = "打开|删除|删掉|查看|修改|编辑|更新|发布|进入|访问|返回|回到|复制|隐藏|移除"
_VERB_AS_NAME = re.compile(
    f"(?:{_ACTION_VERBS})((?:设置|搜索|下载|上传|支付|测试|购买|介绍|说明|设计|分享|预订|预定|预约|联系)+)$"
)
_RUN_BEFORE_NOUN = re.compile("[\u3400-\u9fffA-Za-z0-9_-]+ ?$")
_MAX_DESCRIPTION_CHARS = 24
_LATIN = re.compile("[A-Za-z0-9_-]+")

# Traditional characters of these words with their simplified form. The mapping keeps the length of a text.
_SIMPLIFIED = str.maketrans(
    "個頁這張圖條項節輛處臺塊則間筆網區記錄訂單戶顧檔郵電訊預約貨會議動賓館廳飯賬號帳評論視頻問題聯係繫鏈鍵組標籤備註發遞裝車倉庫務體詞資夾刪後兩倆們復還銷舊創寫剛當現應該對為給將請幫與從",
    "个页这张图条项节辆处台块则间笔网区记录订单户顾档邮电讯预约货会议动宾馆厅饭账号帐评论视频问题联系系链键组标签备注发递装车仓库务体词资夹删后两俩们复还销旧创写刚当现应该对为给将请帮与从",
)
_HAN = re.compile("[\u3400-\u9fff]")


def is_chinese(text: str) -> bool:
    return _HAN.search(text) is not None


def find_phrases(text: str, nouns: Collection[str]) -> list[Phrase]:
    """Return the references of a text in order. `nouns` are the known types."""
    if not is_chinese(text):
        return []
    host_nouns = {noun.translate(_SIMPLIFIED): noun for noun in nouns if is_chinese(noun)}
    simplified = text.translate(_SIMPLIFIED)
    phrases: list[Phrase] = []
    for phrase in _iter_phrases(simplified, host_nouns):
        before = phrases[-1] if phrases else None
        if before and before.noun and before.span[1] == phrase.span[0] and phrase.is_bare:
            phrases[-1] = _join_nouns(before, phrase)
        elif before and phrase.is_bare and (joined := _join_demonstrative(simplified, phrase, before)):
            phrases[-1] = joined
        else:
            phrases.append(_with_description(simplified, phrase, before) if phrase.is_bare else phrase)
    restores, undoes = _RESTORE_PHRASE.search(simplified) is not None, _UNDO_PHRASE.search(simplified) is not None
    return [replace(phrase, deleted=phrase.deleted or restores, undo=undoes) for phrase in phrases]


def _join_nouns(first: Phrase, second: Phrase) -> Phrase:
    """Join adjacent nouns: the last is the type, the others describe it: 产品页面 is a page."""
    span = (first.span[0], second.span[1])
    return replace(
        first,
        span=span,
        nouns=second.nouns,
        noun=second.noun,
        words=(*first.words, first.noun),
        plural=first.plural or second.plural,
    )


def _join_demonstrative(text: str, phrase: Phrase, before: Phrase) -> Phrase | None:
    """Join a demonstrative and a noun with only a description between them: 那个定价页面."""
    between = text[before.span[1] : phrase.span[0]]
    is_demonstrative = (
        before.kind == "pronoun" and before.demonstrative and _DEMONSTRATIVE_END.search(text, *before.span)
    )
    if (
        not is_demonstrative
        or not between
        or not _RUN_BEFORE_NOUN.fullmatch(between)
        or _NOT_DESCRIPTIVE.search(between)
    ):
        return None
    span = (before.span[0], phrase.span[1])
    return replace(before, span=span, nouns=phrase.nouns, noun=phrase.noun, words=tuple(_search_words(between)))


def _with_description(text: str, phrase: Phrase, before: Phrase | None) -> Phrase:
    """Add the words before a bare noun that describe it: 定价页面, Pricing 页面."""
    start = max(before.span[1] if before else 0, phrase.span[0] - _MAX_DESCRIPTION_CHARS)
    run = _RUN_BEFORE_NOUN.search(text, start, phrase.span[0])
    if run is None or phrase.indefinite:
        return phrase
    description = run[0].rstrip(" ").removesuffix("的")
    start_of_description = _description_start(description)
    words = tuple(_search_words(description[start_of_description:]))
    if not words or (before and run.start() + start_of_description == before.span[1]):
        return phrase
    return replace(phrase, span=(run.start() + start_of_description, phrase.span[1]), words=words)


def _description_start(text: str) -> int:
    """Return the start of the description: after the last word that does not describe.

    关于我们 is a name, and so is the 设置 of 打开设置页面.
    """
    skipped = list(_NOT_DESCRIPTIVE.finditer(text))
    start = skipped[-1].end() if skipped else 0
    if start < len(text):
        return start
    if name_match := _VERB_AS_NAME.search(text):
        return name_match.start(1)
    before = skipped[-2].end() if len(skipped) > 1 else 0
    return before if skipped and _PLURAL_PERSON.fullmatch(skipped[-1][0]) and before < skipped[-1].start() else start


def _unknown_noun(text: str, start: int, end: int, nouns: re.Pattern[str]) -> tuple[str, bool]:
    """Return the unknown noun after a demonstrative, and whether it is only a description.

    An example is 台灯 in 那个台灯. A word that may be a verb or adjective is not a noun, nor is a word that describes a
    known noun.
    """
    stop = end
    while stop < len(text) and _HAN.match(text, stop) and not nouns.match(text, stop):
        skipped = _NOT_A_NOUN.match(text, stop)
        if skipped and (stop != end + 1 or len(skipped[0]) > 1 or skipped[0] in "的了吗呢吧是不也都就很"):
            break  # most nouns have two characters: the 能 of 功能 is not a verb
        stop += 1
    noun, next_char = text[end:stop], text[stop : stop + 1]
    if not noun or len(noun) > _MAX_UNKNOWN_NOUN_CHARS or nouns.match(text, stop) or _VERB_SUFFIX.match(text, stop):
        return "", False
    if text[max(0, start - 1) : start] in {"把", "将"} and not _HAN.match(next_char):
        return "", False  # 把这个打印出来: the verb follows
    describes = next_char == "的" and (not _HAN.match(text, stop + 1) or _NOT_A_NOUN.match(text, stop + 1) is not None)
    return noun, describes


def _search_words(text: str) -> Iterator[str]:
    """Yield the words to look for in names: Latin words, and each pair of adjacent characters."""
    for part in re.findall(f"{_LATIN.pattern}|{_HAN.pattern}+", text):
        if not _HAN.match(part) or len(part) == 1:
            yield part.lower()
        else:
            yield from (one + other for one, other in pairwise(part))


def _iter_phrases(text: str, host_nouns: Mapping[str, str]) -> Iterator[Phrase]:
    unambiguous = _unambiguous_nouns(tuple(sorted(host_nouns)))
    for match in _phrase_pattern(tuple(sorted(host_nouns))).finditer(text):
        span, unknown, words = match.span(), "", ()
        noun = _last_noun(match[0].rstrip("0123456789#＃ "), host_nouns)
        following = text[match.end() : match.end() + 8]
        is_all = "都" in following or "全部" in following
        is_created = _CREATE_VERB_BEFORE.search(text, max(0, match.start() - 6), match.start()) is not None
        pick: Pick = "recent"
        position = count = 0
        plural = deleted = indefinite = demonstrative = numbered = exhaustive = False
        match match.lastgroup:
            case "dead":
                deleted = True
            case "numbered":
                pick, position, numbered = "place", _parse_count(match["k"]), True
            case "former":
                pick, position = "place", -1 if match[0][0] == "后" else 1
            case "nth":
                pick, position = "place", _parse_count(match["n"])
            case "back":
                pick, position = "place", -_parse_count(match["b"])
            case "ends":
                pick, position, count = "place", 1 if match["e"] in {"前", "头"} else -1, _parse_count(match["m"])
                plural = True
            case "last":
                pick, position = "place", -1
            case "other":
                pick, plural = "other", "其" in match[0] and not re.search(_MEASURE, match[0])
            case "previous":
                pick = "previous"
            case "pair":
                plural, count, demonstrative = True, _parse_count(match["p"]), match[0][0] in "这那全"
                indefinite, exhaustive = not demonstrative and is_created, is_all or match[0][0] == "全"
            case "several":
                plural = demonstrative = True
                unknown, describes = ("", False) if noun else _unknown_noun(text, *span, unambiguous)
                span, words = (span[0], span[1] + len(unknown)), tuple(_search_words(unknown)) if describes else ()
            case "whole":
                plural = True
            case "new":
                indefinite = True
            case "this":
                demonstrative, plural = True, is_all
            case "they":
                plural = demonstrative = True
            case "it":
                demonstrative = True
                may_have_noun = match[0][0] in "刚这那" and len(match[0]) > 1
                unknown, describes = _unknown_noun(text, *span, unambiguous) if may_have_noun else ("", False)
                span, words = (span[0], span[1] + len(unknown)), tuple(_search_words(unknown)) if describes else ()
            case _:  # a bare noun
                indefinite, plural = is_created, is_all
        yield Phrase(
            span=span,
            nouns=_noun_types(noun or ("" if words else unknown), host_nouns),
            noun=noun or ("" if words else unknown),
            words=words,
            pick=pick,
            position=position,
            numbered=numbered,
            count=count,
            exhaustive=exhaustive,
            plural=plural,
            demonstrative=demonstrative,
            deleted=deleted,
            indefinite=indefinite,
        )


# Forms of a reference, longer ones first. N is a noun, B an unambiguous noun, M a measure word, H any character, # a
# number and % a number above one. A reference ends with its noun, unless a number follows it. Each form is a group.
_PHRASE_FORMS = {
    "dead": "(?:刚才|刚刚|刚|被|已经|已|我|之前)*+(?:删除|删掉|删|移除)了?的(?:这|那)?一?M?N?",
    "new": "(?:一|几|若干|某|新的?一?)M[^，。；！？]{0,20}?N|新的?N",
    "numbered": "N ?(?:\\x23|＃)?(?P<k>[0-9]{1,2})(?![0-9]|M)",
    "former": "前者|后者|头一MN?|首[张个篇条份件项位封]N",
    "nth": "(?:这|那)?第(?P<n>#)M?N?",
    "back": "倒数第(?P<b>#)M?N?",
    "ends": "(?P<e>(?<![之以当目])前|头|最后)(?P<m>%)(?:MN?|N)",
    "last": "最后的?(?:那|一)?(?:MN?|N)",
    "other": "另外?的?(?:那|一)?(?:MN?|N)|(?:其他|其它|其余)的?(?:那|一)?M?N?|别的M?N?",
    "previous": "(?:上|(?<![之以当目])前)一?MN?|(?:之前|先前|以前|前面|早先)的?(?:这|那)?一?(?:MN?|N)",
    "pair": "(?:这|那|全部)?(?<![0-9])(?P<p>%)(?:M|者)N?",
    "several": "(?:这|那)(?:些|几M)N?",
    "whole": "(?:所有|全部)的?N",
    "this": "(?:刚才|刚刚)?的?(?:这|那|(?<!应)该|(?<![因如])此|本)一?M?N"
    "|[这那]一?MH{1,8}?的N|(?:刚才|刚刚|当前|现在)的?N",
    "they": "(?:它们|他们|她们|两者|二者)(?:俩)?|(?<!H)都(?=H)",
    "it": "(?:刚才|刚刚)?(?:这|那)一?M|它|(?<!H)(?:这|那)(?!H)",
    "bare": "B",
}


@lru_cache(maxsize=64)
def _phrase_pattern(host_nouns: tuple[str, ...]) -> re.Pattern[str]:
    nouns = sorted({*NOUN_TYPES, *host_nouns}, key=len, reverse=True)
    placeholders = {
        "N": _alternatives(nouns),
        "B": _alternatives([noun for noun in nouns if len(noun) > 1]),
        "M": _MEASURE,
        "H": _HAN.pattern,
        "#": _NUMBER,
        "%": _PLURAL_NUMBER,
    }
    forms = (
        f"(?P<{name}>{re.sub('[NBMH#%]', lambda sign: placeholders[sign[0]], form)})"
        for name, form in _PHRASE_FORMS.items()
    )
    return re.compile("|".join(forms))


@lru_cache(maxsize=64)
def _unambiguous_nouns(host_nouns: tuple[str, ...]) -> re.Pattern[str]:
    """Match the nouns of more than one character."""
    return re.compile(_alternatives([noun for noun in {*NOUN_TYPES, *host_nouns} if len(noun) > 1]))


def _noun_types(noun: str, host_nouns: Mapping[str, str]) -> tuple[str, ...]:
    return NOUN_TYPES.get(noun) or ((host_nouns.get(noun, noun),) if noun else ())


def _alternatives(nouns: Collection[str]) -> str:
    return f"(?:{'|'.join(re.escape(noun) for noun in nouns)})"


def _last_noun(text: str, host_nouns: Collection[str]) -> str:
    """Return the noun that a reference ends with."""
    ends = (text[start:] for start in range(max(0, len(text) - _MAX_NOUN_CHARS), len(text)))
    return next((end for end in ends if end in NOUN_TYPES or end in host_nouns), "")


_MAX_NOUN_CHARS = 12


def _parse_count(text: str) -> int:
    return int(text) if text.isascii() else _DIGITS.get(text, 0)
