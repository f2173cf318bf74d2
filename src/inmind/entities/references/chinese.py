"""The references in a Chinese text.

Chinese marks neither plural nor article, so a reference shows by its demonstrative, its number and its measure word
(那张图片, 第二个页面), and a bare noun is as definite as the verb in front of it lets it be: 删除页面 is about a page
that is there, 新建页面 is not. What stands between that verb and the noun describes it (删除定价页面), and since no
space says where the verb ends, the usual verbs are known here. Behind another verb we ask once too often, and that is
the cheaper mistake.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from inmind.entities.references.phrase import Phrase, Pick

NOUNS: dict[str, tuple[str, ...]] = {
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
"""What the common types are called."""

_MEASURE = "[个張张篇条份件项位封本部家间只款趟班笔幅段节页辆套首处名台座行列块则支棵]"
_DIGITS = {"一": 1, "二": 2, "两": 2, "俩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_NUMBER = "(?:[一二三四五六七八九十]|[0-9]{1,2})"
_SOME = "(?:[两俩二三四五六七八九十]|[0-9]{1,2})"
_MAKES = re.compile("(?:新建|创建|新增|添加|增加|加|建|写|新|一" + _MEASURE + ")(?:了|个|的|一个)?$")
_REVIVES = re.compile("恢复|还原|撤销删除|找回")
_UNDOES = re.compile("撤销|撤回")

# What is no description of the noun that it stands before: verbs, particles, pronouns, words of time and politeness.
_PALE = (
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
_NO_DESCRIPTION = re.compile("|".join(sorted(_PALE.split(), key=len, reverse=True)))
# What may follow 那个 besides, and is no noun: how it is, what is done with it.
_SAID_OF_IT = (
    "很 太 真 最 更 比 较 没 行 好 可 贵 便宜 大 小 多 少 高 低 长 短 合适 适合 错 挺 非常 特别 有 应 值 属于 包含 "
    "包括 开 关 坏 丢 如何 怎 谁 嘛 呀 啦 哦 而 但 因 并 且 以 来 去 卖 拿 送 寄 取 走 停 存 撤 传 读 听 试 算 留 保 "
    "调 缩 变 成 出 入 上 下 起 转 推 拉 分 合 排 清 归 刷 重 复 打 剪 裁 居 右 左 一 两 已 正 仍 似 像 看 样 之 其 "
    "才 刚 也 均 全 同 除 另 或 挪 弄 搞 搬 贴 粘 锁 启 禁 隐 显 固 收 加 减 补 填 签 审 批 置 干 急 吃 喝 穿 戴 交 接 "
    "运 执 标 定 划 点 双击 单击 确 认 作 当 离 靠 值 算了"
)
_NO_NOUN = re.compile("|".join(sorted({*_PALE.split(), *_SAID_OF_IT.split()}, key=len, reverse=True)))
_POINTS = re.compile(f"[这那](?:一?{_MEASURE}|些)$")
_VERBAL = re.compile("一下|掉|成|着|过")
_LONGEST_STRANGER = 6
_US = re.compile("我们|你们|他们|咱们")
_ACTS = "打开|删除|删掉|查看|修改|编辑|更新|发布|进入|访问|返回|回到|复制|隐藏|移除"
_NAMED_BY_VERB = re.compile(
    f"(?:{_ACTS})((?:设置|搜索|下载|上传|支付|测试|购买|介绍|说明|设计|分享|预订|预定|预约|联系)+)$"
)
_BEFORE_NOUN = re.compile("[\u3400-\u9fffA-Za-z0-9_-]+ ?$")
_LONGEST_DESCRIPTION = 24
_LATIN = re.compile("[A-Za-z0-9_-]+")

# Traditional characters of the words here, each with its simplified one: a text keeps its length.
_SIMPLIFIED = str.maketrans(
    "個頁這張圖條項節輛處臺塊則間筆網區記錄訂單戶顧檔郵電訊預約貨會議動賓館廳飯賬號帳評論視頻問題聯係繫鏈鍵組標籤備註發遞裝車倉庫務體詞資夾刪後兩倆們復還銷舊創寫剛當現應該對為給將請幫與從",
    "个页这张图条项节辆处台块则间笔网区记录订单户顾档邮电讯预约货会议动宾馆厅饭账号帐评论视频问题联系系链键组标签备注发递装车仓库务体词资夹删后两俩们复还销旧创写刚当现应该对为给将请帮与从",
)
_HAN = re.compile("[\u3400-\u9fff]")


def is_chinese(text: str) -> bool:
    return _HAN.search(text) is not None


def read(text: str, nouns: Collection[str]) -> list[Phrase]:
    """The references in a text, in its order. `nouns` are the types that are known; those in Chinese are read too."""
    if not is_chinese(text):
        return []
    own = {noun.translate(_SIMPLIFIED): noun for noun in nouns if is_chinese(noun)}
    simple = text.translate(_SIMPLIFIED)
    found: list[Phrase] = []
    for phrase in _phrases(simple, own):
        before = found[-1] if found else None
        if before and before.noun and before.span[1] == phrase.span[0] and phrase.is_bare:
            found[-1] = _compound(before, phrase)
        elif before and phrase.is_bare and (one := _described(simple, phrase, before)):
            found[-1] = one
        else:
            found.append(_with_description(simple, phrase, before) if phrase.is_bare else phrase)
    revives, undoes = _REVIVES.search(simple) is not None, _UNDOES.search(simple) is not None
    return [replace(phrase, deleted=phrase.deleted or revives, undone=undoes) for phrase in found]


def _compound(one: Phrase, other: Phrase) -> Phrase:
    """In a row of nouns the last is what it is about, and the others describe it: 产品页面 is a page."""
    span = (one.span[0], other.span[1])
    return replace(
        one, span=span, nouns=other.nouns, noun=other.noun, words=(*one.words, one.noun), many=one.many or other.many
    )


def _described(text: str, phrase: Phrase, before: Phrase) -> Phrase | None:
    """A demonstrative and a bare noun as one, if only what describes the noun stands between them: 那个定价页面."""
    between = text[before.span[1] : phrase.span[0]]
    points = before.kind == "pronoun" and before.pointing and _POINTS.search(text, *before.span)
    if not points or not between or not _BEFORE_NOUN.fullmatch(between) or _NO_DESCRIPTION.search(between):
        return None
    span = (before.span[0], phrase.span[1])
    return replace(before, span=span, nouns=phrase.nouns, noun=phrase.noun, words=tuple(_words(between)))


def _with_description(text: str, phrase: Phrase, before: Phrase | None) -> Phrase:
    """A bare noun with the words in front of it that say which one: 定价页面, Pricing 页面."""
    start = max(before.span[1] if before else 0, phrase.span[0] - _LONGEST_DESCRIPTION)
    run = _BEFORE_NOUN.search(text, start, phrase.span[0])
    if run is None or phrase.new:
        return phrase
    said = run[0].rstrip(" ").removesuffix("的")
    cut = _where_description_begins(said)
    words = tuple(_words(said[cut:]))
    if not words or (before and run.start() + cut == before.span[1]):
        return phrase
    return replace(phrase, span=(run.start() + cut, phrase.span[1]), words=words)


def _where_description_begins(said: str) -> int:
    """Behind the last word that describes nothing; but 关于我们 is a name, and so is the 设置 of 打开设置页面."""
    pale = list(_NO_DESCRIPTION.finditer(said))
    cut = pale[-1].end() if pale else 0
    if cut < len(said):
        return cut
    if named := _NAMED_BY_VERB.search(said):
        return named.start(1)
    before = pale[-2].end() if len(pale) > 1 else 0
    return before if pale and _US.fullmatch(pale[-1][0]) and before < pale[-1].start() else cut


def _stranger(text: str, start: int, end: int, nouns: re.Pattern[str]) -> tuple[str, bool]:
    """The noun right behind a demonstrative that is none of our types, 台灯 in 那个台灯; and whether it only describes.

    What may be a verb or an adjective is none, nor is what describes a noun that we know.
    """
    stop = end
    while stop < len(text) and _HAN.match(text, stop) and not nouns.match(text, stop):
        pale = _NO_NOUN.match(text, stop)
        if pale and (stop != end + 1 or len(pale[0]) > 1 or pale[0] in "的了吗呢吧是不也都就很"):
            break  # a noun has two characters, mostly: the 能 of 功能 is no verb
        stop += 1
    said, behind = text[end:stop], text[stop : stop + 1]
    if not said or len(said) > _LONGEST_STRANGER or nouns.match(text, stop) or _VERBAL.match(text, stop):
        return "", False
    if text[max(0, start - 1) : start] in {"把", "将"} and not _HAN.match(behind):
        return "", False  # 把这个打印出来: it ends in its verb
    describes = behind == "的" and (not _HAN.match(text, stop + 1) or _NO_NOUN.match(text, stop + 1) is not None)
    return said, describes


def _words(said: str) -> Iterator[str]:
    """What to look for in names: Latin words, and each two characters that stand together."""
    for part in re.findall(f"{_LATIN.pattern}|{_HAN.pattern}+", said):
        if not _HAN.match(part) or len(part) == 1:
            yield part.lower()
        else:
            yield from (one + other for one, other in pairwise(part))


def _phrases(text: str, own: Mapping[str, str]) -> Iterator[Phrase]:
    clear = _clear(tuple(sorted(own)))
    for match in _pattern(tuple(sorted(own))).finditer(text):
        span, strange, words = match.span(), "", ()
        said = _noun(match[0].rstrip("0123456789#＃ "), own)
        behind = text[match.end() : match.end() + 8]
        every = "都" in behind or "全部" in behind
        made = _MAKES.search(text, max(0, match.start() - 6), match.start()) is not None
        pick: Pick = "recent"
        place = count = 0
        many = deleted = new = pointing = numbered = whole = False
        match match.lastgroup:
            case "dead":
                deleted = True
            case "numbered":
                pick, place, numbered = "place", _count(match["k"]), True
            case "former":
                pick, place = "place", -1 if match[0][0] == "后" else 1
            case "nth":
                pick, place = "place", _count(match["n"])
            case "back":
                pick, place = "place", -_count(match["b"])
            case "ends":
                pick, place, count = "place", 1 if match["e"] in {"前", "头"} else -1, _count(match["m"])
                many = True
            case "last":
                pick, place = "place", -1
            case "other":
                pick, many = "other", "其" in match[0] and not re.search(_MEASURE, match[0])
            case "previous":
                pick = "previous"
            case "pair":
                many, count, pointing = True, _count(match["p"]), match[0][0] in "这那全"
                new, whole = not pointing and made, every or match[0][0] == "全"
            case "several":
                many = pointing = True
                strange, describes = ("", False) if said else _stranger(text, *span, clear)
                span, words = (span[0], span[1] + len(strange)), tuple(_words(strange)) if describes else ()
            case "whole":
                many = True
            case "new":
                new = True
            case "this":
                pointing, many = True, every
            case "they":
                many = pointing = True
            case "it":
                pointing = True
                points = match[0][0] in "刚这那" and len(match[0]) > 1
                strange, describes = _stranger(text, *span, clear) if points else ("", False)
                span, words = (span[0], span[1] + len(strange)), tuple(_words(strange)) if describes else ()
            case _:  # a bare noun
                new, many = made, every
        yield Phrase(
            span=span,
            nouns=_types(said or ("" if words else strange), own),
            noun=said or ("" if words else strange),
            words=words,
            pick=pick,
            place=place,
            numbered=numbered,
            count=count,
            whole=whole,
            many=many,
            pointing=pointing,
            deleted=deleted,
            new=new,
        )


# The ways to refer, the longer first. N is a noun, B one that is clear by itself, M a measure word, H any character, #
# a number and % one above one. A reference ends in its noun, if it has one and no number behind it, and the way is the
# name of its group.
_WAYS = {
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
def _pattern(own: tuple[str, ...]) -> re.Pattern[str]:
    nouns = sorted({*NOUNS, *own}, key=len, reverse=True)
    spelt = {
        "N": _any_of(nouns),
        "B": _any_of([noun for noun in nouns if len(noun) > 1]),
        "M": _MEASURE,
        "H": _HAN.pattern,
        "#": _NUMBER,
        "%": _SOME,
    }
    ways = (f"(?P<{way}>{re.sub('[NBMH#%]', lambda sign: spelt[sign[0]], said)})" for way, said in _WAYS.items())
    return re.compile("|".join(ways))


@lru_cache(maxsize=64)
def _clear(own: tuple[str, ...]) -> re.Pattern[str]:
    """The nouns that are clear by themselves."""
    return re.compile(_any_of([noun for noun in {*NOUNS, *own} if len(noun) > 1]))


def _types(noun: str, own: Mapping[str, str]) -> tuple[str, ...]:
    return NOUNS.get(noun) or ((own.get(noun, noun),) if noun else ())


def _any_of(nouns: Collection[str]) -> str:
    return f"(?:{'|'.join(re.escape(noun) for noun in nouns)})"


def _noun(said: str, own: Collection[str]) -> str:
    """The noun that a reference ends in."""
    ends = (said[start:] for start in range(max(0, len(said) - _LONGEST), len(said)))
    return next((end for end in ends if end in NOUNS or end in own), "")


_LONGEST = 12


def _count(said: str) -> int:
    return int(said) if said.isascii() else _DIGITS.get(said, 0)
