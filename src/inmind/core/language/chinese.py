"""Chinese words, and the Japanese ones that share their characters."""

from __future__ import annotations

from inmind.core.language.spans import any_of
from inmind.core.language.tables import (
    DAY,
    MONTH,
    YEAR,
    AffectPatterns,
    DateWords,
    Language,
    ReferenceForms,
    ResultWords,
    group,
    numbered,
    words,
)

_NOUNS: dict[str, tuple[str, ...]] = {
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

_MEASURE = "[个張张篇条份件项位封本部家间只款趟班笔幅段节页辆套首处名台座行列块则支棵]"
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
_PREDICATE_WORDS = (
    "很 太 真 最 更 比 较 没 行 好 可 贵 便宜 大 小 多 少 高 低 长 短 合适 适合 错 挺 非常 特别 有 应 值 属于 包含 "
    "包括 开 关 坏 丢 如何 怎 谁 嘛 呀 啦 哦 而 但 因 并 且 以 来 去 卖 拿 送 寄 取 走 停 存 撤 传 读 听 试 算 留 保 "
    "调 缩 变 成 出 入 上 下 起 转 推 拉 分 合 排 清 归 刷 重 复 打 剪 裁 居 右 左 一 两 已 正 仍 似 像 看 样 之 其 "
    "才 刚 也 均 全 同 除 另 或 挪 弄 搞 搬 贴 粘 锁 启 禁 隐 显 固 收 加 减 补 填 签 审 批 置 干 急 吃 喝 穿 戴 交 接 "
    "运 执 标 定 划 点 双击 单击 确 认 作 当 离 靠 值 算了"
)

# Traditional characters of these words with their simplified form. The mapping keeps the length of a text.
_SIMPLIFIED = str.maketrans(
    "個頁這張圖條項節輛處臺塊則間筆網區記錄訂單戶顧檔郵電訊預約貨會議動賓館廳飯賬號帳評論視頻問題聯係繫鏈鍵組標籤備註發遞裝車倉庫務體詞資夾刪後兩倆們復還銷舊創寫剛當現應該對為給將請幫與從",
    "个页这张图条项节辆处台块则间笔网区记录订单户顾档邮电讯预约货会议动宾馆厅饭账号帐评论视频问题联系系链键组标签备注发递装车仓库务体词资夹删后两俩们复还销旧创写刚当现应该对为给将请帮与从",
)
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

_REFERENCES = ReferenceForms(
    nouns=_NOUNS,
    forms=_PHRASE_FORMS,
    measure=_MEASURE,
    numbers=numbered("一", "二 两 俩", "三", "四", "五", "六", "七", "八", "九", "十"),
    creates=f"(?:新建|创建|新增|添加|增加|加|建|写|新|一{_MEASURE})(?:了|个|的|一个)?$",
    restore="恢复|还原|撤销删除|找回",
    undo="撤销|撤回",
    all_after=("都", "全部"),
    not_descriptive=words(_NOT_DESCRIPTIVE_WORDS),
    predicates=words(_PREDICATE_WORDS),
    particles="的了吗呢吧是不也都就很",
    verb_suffixes="一下|掉|成|着|过",
    demonstratives=f"[这那](?:一?{_MEASURE}|些)$",
    plural_persons=words("我们 你们 他们 咱们"),
    name_verbs=(
        "(?:打开|删除|删掉|查看|修改|编辑|更新|发布|进入|访问|返回|回到|复制|隐藏|移除)"
        "((?:设置|搜索|下载|上传|支付|测试|购买|介绍|说明|设计|分享|预订|预定|预约|联系)+)$"
    ),
    attributive="的",
    simplified=_SIMPLIFIED,
)

# Remarks of users to the agent: thanks, praise, anger and urgency.

# Words that may precede a saying.
_LEAD_IN = (
    r"(?:好的|好吧|好|嗯+|哇+|哈+|啊+|哦+|噢|哎呀?|唉|天哪|天啊|ok|行|那|真的|真是|真|实在|非常|十分|太|万分|衷心|"
    r"再次|还是|果然|终于|现在|这次|我)*"
)
_END = r"(?!\w)"
_YOU = "[你您]"

_THANKS = any_of(
    r"(?:谢谢|多谢|感谢|谢啦|谢了)(?!信|页|卡|语|词|节|函|名单|惠顾|观看|收看|光临|大家|各位|老师|妈|爸|他|她|老板|"
    r"客户|"
    rf"{_YOU}的?(?:购买|订阅|惠顾|来信|关注|下单|光临|订购|注册))",
    rf"(?:多亏|幸亏)(?:了|有)?{_YOU}|(?:辛苦|麻烦){_YOU}?[了啦](?!一|两|半|这么|好)|感激不尽|很?感激{_YOU}",
    rf"不知道该?怎么感?谢{_YOU}",
)

_GREAT = "(?:棒|厉害|牛|聪明|给力|靠谱|贴心|专业|强|赞|优秀|神)"
_PRAISE = any_of(
    rf"{_YOU}?(?:这次|今天)?(?:干|做|改|写|完成|解释|讲|弄|处理)得(?:很|真|非常|太|特别|挺|相当)?"
    rf"(?:漂亮|好|棒|不错|清楚|到位|完美|专业|出色)(?:了|啊|呀|哦|极了)?{_END}",
    rf"{_YOU}(?:真的?|太|好|可真?|实在|简直|就是|也|真是)*是?太?{_GREAT}(?:了|啊|呀|极了|死了|爆了|的|哦|呢)*{_END}",
    rf"太{_GREAT}了(?:吧|啊)?{_END}|[真好]{_GREAT}[啊呀哦]?{_END}|太(?:完美|好用|有用|有帮助)了|完美解决",
    rf"{_YOU}?(?:真是|可)?(?:帮了(?:我|我们)?(?:一个|个)?大忙|救了我)|{_YOU}(?:真是|简直是)?(?:我的)?救星",
    r"这?(?:正是|就是|正好是|完全是)我们?(?:想|需|所)?要的",
    r"(?:问题|bug|错误|报错|测试)?(?:都|已经|终于|全部?|总算|果然|顺利|完美)*(?:搞定|解决|跑通|修好|通过|"
    rf"成功)[了啦]{_END}",
    rf"(?:现在|终于)?(?:可以|能)用了{_END}",
    rf"[给为]{_YOU}点个?赞|我?[很太真]?佩服{_YOU}|有{_YOU}真好|{_YOU}[真太]?是?个?天才|"
    rf"我?(?:对{_YOU}的\w{{1,6}})(?:很|非常|十分)满意",
)

_WRONG = "(?:错|坏|砸|崩|乱|丢|没)"
_ANGER = any_of(
    rf"{_YOU}(?:怎么|咋|为什么|为啥|干嘛)(?:又|还是?|老是?|总是?|一直|每次都|都|就)\w{{0,8}}(?:{_WRONG}|忘|不(?!是)|"
    r"删|瞎|同样|一样)",
    rf"{_YOU}(?:到底|究竟)(?:有没有|会不会|能不能|在[干搞做说]|懂不懂|看没看|行不行|听[没不]听|想[干怎]|是不是)",
    rf"{_YOU}(?:真的?|太|简直|就是?|好|他妈|怎么这么|咋这么|可真|真是|是不是)*是?一?个?太?"
    r"(?:没用|废物|垃圾|蠢|笨|傻|差劲|白痴|智障|弱智|烂|脑残|不靠谱|离谱|敷衍|过分|[让令][人我][很太]?失望|没脑子|不行)"
    rf"(?:了|啊|透了|死了|吧|的|极了|货|东西)*{_END}",
    rf"我?(?:都|已经|[跟和给]{_YOU})*(?:说|讲|告诉{_YOU}|强调|提醒{_YOU}?)[过了]?(?:多少|好几|几|八百|无数|很多|三|"
    r"一百|一万)[次遍回]",
    rf"我?(?:都|已经|早就|不是)*[跟和告诉给]+{_YOU}说?过?了?(?:不要|别|不准|不许|不能)",
    rf"(?:{_YOU}|请{_YOU}?|能不能)?(?:别|不要)再[瞎乱胡骗糊敷浪犯]",
    rf"{_YOU}[又还]?在?(?:搞什么|干什么呢|干嘛呢|瞎搞|胡说|敷衍|耍我|糊弄|忽悠|逗我|浪费我)",
    rf"{_YOU}(?:又|还是|老是|总是|一直)(?:把\w{{1,10}})?\w{{0,4}}(?:{_WRONG}[了掉]|不听|忘)",
    rf"{_YOU}把\w{{1,12}}[搞弄改删写]{_WRONG}[了掉]",
    r"(?:你这|这|[写做]的)?(?:都?是|[写给]的)*[什啥]么?(?:破|垃圾|鬼|狗屁|烂)(?!邮|箱|桶|分|回|短|场|车|处|故)",
    rf"(?:真是|真|要|快)?(?:气死|烦死|逼疯)我?了{_END}|我?(?:真的|实在|快)?受[够不]了?{_YOU}",
    rf"我?对{_YOU}\w{{0,4}}(?:失望|不满|生气|无语|恼火)",
    rf"(?:闭嘴|滚|妈的|胡说八道|(?:还是|又)是?错的?){_END}|又错了|{_YOU}?(?:给我)?滚[蛋开]|一派胡言|简直是?(?:垃圾|"
    r"离谱|不可理喻|浪费时间)",
)

_DURATION = r"(?:\d{1,3}|[一二三四五六七八九十两半几]{1,3})个?半?(?:分钟|小时)"
_SYSTEM = (
    r"(?:我们的?)?(?:生产|线上|正式|现网|整个)?"
    r"(?:环境|服务器?|系统|网站|数据库|接口|后台|官网|支付|商城|平台|app|应用|集群|线上|生产)"
)
_ADVERBS = "(?:现在|全|都|又|已经|突然|刚刚?|直接|一直)*"
_EVENT = "(?:用|交|演示|开会|上线|汇报|发布|截止|考试|登机|面试)"
_URGENCY = any_of(
    rf"{_SYSTEM}\w{{0,4}}?{_ADVERBS}(?:挂|宕机?|崩溃?|炸|瘫痪|打不开|不能用|访问不了|连不上)掉?[了啦]",
    rf"{_SYSTEM}{_ADVERBS}(?:宕机|瘫痪|崩溃|无法访问)(?!后|时|的|恢复|报告|检测)",
    r"(?:用户|客户|顾客)们?(?:现在|全|都|已经)+(?:登录不了|登不上|付不了|无法|下不了|打不开|用不了|进不去)",
    r"(?:这(?:个|件事|事|边|里)?|事情|情况|时间|我这|任务)?(?:真的?|非常|特别|十分|很|超级?|挺|比较|万分|相当|太|极其|"
    r"有点)+(?:紧急|着?急|紧迫)(?!诊|救|用|忙|性|程度|\w*(?:联系|按钮|出口|时候|情况))",
    rf"紧急(?:求助|事故|(?:情况|故障)?{_END})|加急{_END}|急+{_END}|十万火急|火烧眉毛|在线等|救命{_END}|快?来不及了",
    rf"(?:我们?|客户|老板|领导)?(?:只有|只剩|还有|还剩|就|再过)?{_DURATION}(?:之内|以内|内|之后|后|就)(?:我们?|客户|"
    r"老板)?就?"
    rf"(?:要(?!是)|得|必须|需要|{_EVENT})",
    rf"(?:只有|只剩|还剩|就剩)(?:不到)?{_DURATION}了?{_END}",
    rf"(?:我们?|客户|老板)?(?:现在|今天)?(?:马上|立刻|立马)就?(?:要{_EVENT}|需要)",
    r"(?:请|麻烦)?(?:赶紧|赶快|尽快|马上|立刻|立即)(?:修复|恢复|处理|解决)(?!方案|后)",
)

_AFFECT = AffectPatterns(
    spaced=False,
    cues={
        "thanks": words("谢 多亏 幸亏 辛苦 麻烦 感激"),
        "praise": words(
            "得 你 您 太 真 好 完美 大忙 救 正是 就是 正好 完全 搞定 解决 跑通 修好 通过 成功 用了 赞 佩服 满意"
        ),
        "anger": words("你 您 说 讲 强调 提醒 再 什 啥 气死 烦死 逼疯 闭嘴 滚 妈的 错 胡 简直"),
        "urgency": words(
            "挂 宕 崩 炸 瘫痪 不开 不能用 不了 不上 不去 无法 急 紧迫 火烧 在线等 救命 来不及 分钟 小时 马上 立刻 立马 "
            "立即 赶紧 赶快 尽快"
        ),
    },
    lead_in=_LEAD_IN,
    remarks={"thanks": _THANKS, "praise": _PRAISE, "anger": _ANGER, "urgency": _URGENCY},
    clause_end=r"[，、；：,;:。.!！?？…~～\s]+",
    condition=r"如果|要是|假如|假设|万一|若|倘若|一旦|当|只要|除非|等到?|即使|想象|比如",
    reported=r"说(?!了|过|的)|写道?|回复|翻译|显示|输出|标题|内容|例如|比如|叫做|文案|台词|歌词|句子|评论|留言|改成|换成|问我",
    denial=r"[吗么嘛]$|没有$|了没$|是不是|有没有|会不会|不(?:是|太|怎么|算|够)|没那么|不着?急",
    retraction=r"但|不过|可是|然而|只是|可惜|就是还",
    refusal=r"不(?:用|了|必|需要|要|客气)|算了|没事",
    thanks_formula=_LEAD_IN + r"(?:谢谢|多谢|感谢|谢了|谢啦)(?:[你您啦了哈啊哦]|大家|各位)?",
    # After one of these results, 谢谢 is not a formula.
    request=(
        r"(?s)\A(?!.*(?:好了|可以了|解决|收到|明白|懂了|知道了|没问题|太好|成功|不错|很好|好的|^好$|^嗯|^对|是的|完美|"
        r"清楚|有用|有帮助|通过|搞定|修好|跑通|正常|厉害|棒|原来如此|学到|大忙|正是|好用|^ok))"
    ),
)

# -- dates -------------------------------------------------------------------------------------------------

_SEASONS = numbered("春", "夏", "秋", "冬", start=0)
_PARTS = numbered("初 上旬", "中旬", "底 末 下旬", start=0)
_UNITS = {
    word: unit
    for unit, several in {
        "minute": "分钟 分",
        "hour": "小时 時間",
        "day": "天 日",
        "week": "周 週 週間 星期 礼拜",
        "month": "月",
        "year": "年",
    }.items()
    for word in several.split()
}
_COUNTED = rf"(?P<count>\d{{1,3}}|[几数])[个ヶか箇カヵケ]?{group('unit', _UNITS)}"
_SEASON = r"[的の]?(?P<season>[春夏秋冬])"
_PART_OF = rf"の?{group('part', _PARTS)}"
_BACK_YEAR = r"(?P<back_year>今|去|昨|前)年"
_LAST = r"(?<![晚早马以])(?P<{}>上上|上|这|本|先々|先|今)个?"
"""For weeks and months. 晚上, 早上, 马上 and 以上 end with the same character."""
_LAST_WEEK, _LAST_MONTH, _LAST_QUARTER = (_LAST.format(f"back_{unit}") for unit in ("week", "month", "quarter"))
_WEEK = r"(?:周|星期|礼拜|週)の?"
_DAY_OF_WEEK = r"(?P<weekday>一(?![起直共些次个样定])|[二三四五六]|日(?![本语常程])|天(?!气)|[月火水木金土日](?=曜))"

_DATES = DateWords(
    numbers={
        "weekday": numbered("一 月", "二 火", "三 水", "四 木", "五 金", "六 土", "日 天", start=0),
        "season": _SEASONS,
        "part": _PARTS,
        "count": {"几": 3, "数": 3},
        "back": numbered("这 本 今", "上 先 去 昨", "上上 先々 前 一昨 おととし", "大前", start=0)
        | numbered(
            "今天 今日 今晚 今早 今朝 今夜 けさ 现在",
            "昨天 昨日 昨晚 昨夜 きのう ゆうべ",
            "前天 一昨日 おととい",
            "大前天 さきおととい",
            start=0,
        ),
    },
    units=_UNITS,
    ranges=(
        r"(?:从|自)(?P<first>.{2,12}?)[到至](?P<last>.{1,12})",
        r"(?P<first>\d{1,4}[年月][\d月日号]{0,6})(?:到|至|から|[-~])(?P<last>.{2,12})",
        r"(?:自从?|从)(?P<after>.{2,12})",
        r"(?P<before>.{2,12}?)(?:以来|から|以降)",
    ),
    days=(
        rf"{YEAR}年{MONTH}月{DAY}[日号]",
        rf"{_BACK_YEAR}[的の]?{MONTH}月{DAY}[日号]",
        rf"{_LAST_MONTH}月[的の]?{DAY}[日号]",
        rf"(?<!\d){MONTH}月{DAY}[日号]",
        r"(?P<back_day>大前天|さきおととい)",
        r"(?P<back_day>(?<!以)前天(?!天)|一昨日|おととい)",
        r"(?P<back_day>昨[天日晚夜]|きのう|ゆうべ)",
        r"(?P<back_day>今[天日晚早朝夜]|けさ)",
        rf"{_LAST_WEEK}{_WEEK}{_DAY_OF_WEEK}",
        rf"(?<![\d每毎下几])(?:周|星期|礼拜){_DAY_OF_WEEK}",
        r"(?<![毎下])(?P<weekday>[月火水木金土日])曜",
        r"(?P<half_year>半年(?:之|以)?前)",
        rf"{_COUNTED}(?P<ago>(?:之|以)?前)",
        rf"(?P<recent>最近|过去|過去|近|这|前|ここ)的?{_COUNTED}",
        r"(?P<some_days>前些天|前些日子|先日)",
        r"(?P<last_weekend>上个?周末|先週末)",
        r"(?P<weekend>[周週]末)",
        rf"{_LAST_WEEK}(?:周|星期|礼拜|週)",
    ),
    longer=(
        rf"{YEAR}年{MONTH}月{_PART_OF}",
        rf"{YEAR}年{MONTH}月",
        rf"{_BACK_YEAR}[的の]?{MONTH}月",
        rf"(?<!\d){MONTH}月{_PART_OF}",
        rf"{_LAST_MONTH}月{_PART_OF}",
        rf"(?P<latest_part>(?<![每毎\d])月{_PART_OF})",
        rf"{_LAST_MONTH}月",
        rf"(?<!\d){MONTH}月",
        rf"{YEAR}(?:年第?| ?q)(?P<quarter>[1-4])(?:季度|\b)",
        rf"{_LAST_QUARTER}季度",
        r"第(?P<quarter>[1-4])季度",
        rf"{YEAR}年{_SEASON}",
        rf"{_BACK_YEAR}{_SEASON}",
        rf"{YEAR}年{_PART_OF}",
        rf"{_BACK_YEAR}{_PART_OF}",
        r"(?P<back_year>おととし)",
        r"(?P<back_year>大前|一昨|(?<![年以之])前|今|去|昨)年",
        rf"{YEAR}年",
    ),
    range_ends=(r"(?P<back_day>现在|今)",),
)

CHINESE = Language(
    code="zh",
    spaced=False,
    negations="不|没|别|勿|禁止|無|无|未",
    hedges="可能|也许|或许|大概",
    hypotheticals="如果|要是|假设|假如|比如|例如|想象",
    reports="说|告诉|写道",
    temporary="今天|今晚|暂时|这次|刚才",
    question_starts="请问|有谁知道|为什么|如何|什么时候|哪里|哪儿",
    question_ends="[吗嗎呢么]",
    prepositions="[从在到给往向对进]",
    target_prepositions="[给往在向到对为]",
    object_markers="[把将將]",
    exclusions="(?<![是要])(?:不是|不要|并非|而非|除了)",
    conjunctions="[和与跟及]",
    clause_breaks="然后|再|并",
    naming_verbs="的|叫|叫做|名为",
    new_name="改名为|改成|改为|重命名为|命名为|名为|叫做|(?:新建|创建|新增|添加)[^。；，]{0,12}?叫",
    which_question="是哪个{noun}：{first}还是{last}？",
    confirm_question="是指{last}吗？",
    listed_name="「{}」",
    list_separator="、",
    results=ResultWords(
        failure="错误|失败",
        refusal="未找到|不存在|失败",
        not_deleted="无法|失败|不能|拒绝|确认",
        no_matches="未找到|没有找到",
    ),
    references=_REFERENCES,
    affect=_AFFECT,
    dates=_DATES,
)
