"""Chinese words, and the Japanese ones that share their characters."""

from __future__ import annotations

from inmind.core.language.tables import Language, ReferenceForms, numbered, words

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
    first_person="我|私|僕|俺",
    second_person="你|您|あなた",
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
    reference_forms=_REFERENCES,
)
