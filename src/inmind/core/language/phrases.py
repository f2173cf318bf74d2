"""Patterns and words of tasks, choices and courtesies in English and Chinese.

A pattern is compiled on first use with `compile_cached`; what it means for a message is decided where it is used.
"""

from __future__ import annotations

OPENING_THANKS = r"(?i)[\W_]*(?:(?:great|perfect|ok|okay|good|好的?)\W+)?(?:thanks|thank you|thx|cheers|谢谢|多谢)"
LONG_WORD = r"[^\W\d_]{4,}"
COMMON_WORDS = frozenset(
    "about also could create find from have help like make need please prepare thanks that them then this want will "
    "with would write".split()
)

# Verbs of a piece of work with a result of its own. "Add", "change", "run" or "build" are mostly steps of a larger one.
_WORK = (
    r"(?:(?:book|buy)(?!\s+the\b)|draft|find|fix|help(?:\s+me)?(?:\s+(?:with|to))?|organi[sz]e|plan|prepare|research|schedule|"
    r"search\s+for|translate|write|(?:check|look\s+(?:at|into)|review)(?=\s+(?:my|our)\b))\b"
    r"(?!\s+(?:as|for|in|into|on|to|with)\b)"
)
NEXT_CUES = r"(?i)\b(?:now|next|thing|matter|request|forget|mind|on to)\b|现在|接下来|下面|算了|件事"
NEXT = (
    r"(?i)[\W_]*(?:(?:alright|cool|good|great|ok|okay|perfect|so|thanks|thank you|well|yes)\b[\W_]*){0,4}"
    r"(?:now|next(?:\s+up)?(?=\s*[,:;–—-]|\s+(?:please|can|could|i|let)\b)|"
    r"(?:and\s+)?(?:another|one\s+(?:last|more|other))\s+(?:matter|request|thing)\s*[,:;–—-]|"
    r"(?:moving\s+)?on\s+to\s+(?:another|the\s+next)(?:\s+(?:item|one|point|thing))?\s*[,:;–—-]|"
    r"(?:forget|never\s*mind)(?:\s+(?:about\s+)?(?:it|that|this))?\s*[,;–—-](?=\s*let\b))[\W_]*"
    r"(?:(?:please|pls|(?:can|could|will|would)\s+you|let['’]?s|let\s+us|"
    r"i(?:['’]d|\s+would)?\s+(?:like|need|want)(?:\s+you)?(?:\s+to)?)\b[\W_]*){0,3}"
    rf"{_WORK}|"
    r"[\W_]*(?:(?:好的?|行|可以|嗯|谢谢你?|那么?|对了)[\W_]*){0,4}(?:现在|接下来|下面|算了|"
    r"(?:另外|还有)?(?:有)?(?:另|另外)?一件事情?\s*[:：，,])[\W_]*(?:(?:请你?|麻烦你?|帮我|给我|我们|咱们|我[想要]|来)[\W_]*){0,4}"
    r"(?:写(?![完好入到出下])|预?订|找|准备|修(?![改完好])复?|安排|规划|计划|起草|翻译(?!成)|研究|看看我)"
)
# What refers to the work at hand, and the parts that any work has.
REFERENCE = (
    r"(?i)\b(?:above|again|also|another|api|backend|below|both|chapter|class|component|conclusion|config|database|docs?|"
    r"documentation|endpoints?|everything|findings|first|footer|form|frontend|functions?|header|here|interface|"
    r"introduction|it|its|last|lexer|logic|menu|methods?|modules?|more|next|ones?|others?|output|paragraphs?|parser|"
    r"previous|quer(?:y|ies)|readme|remaining|rest|results?|same|schema|second|sections?|steps?|summary|tests?|their|"
    r"them|there|these|they|third|this|those|title|too|ui)\b|"
    r"(?:^\W*|\b(?:about|at|by|for|from|in|of|on|to|with)\s+)that\b|\bthat\W*$|"
    r"[它这该此其]|那[个些里]|上面|刚才|刚刚|继续|再|剩下|下一|第[一二三四五]|测试|文档|函数|标题|结果|页面|接口|模块"
)
GENERIC_WORDS = frozenset(
    "about bug can code could error example file function help i i'd instead issue like line list me my need now our "
    "page part please problem some table text thing two want would you your 吗".split()
)
CHINESE_COMMON_WORDS = r"[一两几][个份篇张条下些首家封]|关于|我的?|给|吗|错误|问题|代码|文件"


# No repetition is tried twice, so a longer phrase comes before its beginning.
FILLER = (
    r"(?i)[\W\d_]*+(?:(?:a ?lot|again|agreed|ah|all (?:good|of (?:it|them))|alright|all right|and|approved|awesome|bye|"
    r"by me|carry on|cheers|confirm(?:ed)?|continue(?: the work| now)?|cool|correct|do(?: (?:it|so|that|this))?|done|"
    r"exactly(?: that)?|excellent|fine|for (?:it|that|your help|the help|me|now|today)|go ahead|go on|go|"
    r"good(?:bye)?|got it|great(?: (?:job|work))?|"
    r"have a (?:good|great|nice) (?:day|evening|night|one|time|weekend)|hmm+|i (?:agree|confirm|see)|i['’]?m ready|"
    r"(?:i want|i would like|i['’]d like) to (?=continue|go (?:on|ahead)|proceed)|"
    r"indeed|it (?:is|does)|keep (?:at it|going)|k|let['’]?s|lgtm|looks (?:good|great|right)|makes sense|more|"
    r"next(?: step)?|nice|no problem|nope|noted|no|oh|okay|ok|perfect|please|proceed|resume|right|so much|so|"
    r"sounds (?:good|great)|stop|super|sure(?: thing)?|thank you|thanks?|"
    r"that(?:['’]?s| is) (?:all|correct|fine|good|great|it|okay|ok|perfect|right)|that works|then|thx|understood|"
    r"very much|very|well|where you (?:left off|stopped)|"
    r"(?:from|with) (?:here|it|that|there|this|the (?:next(?: (?:one|step))?|rest|work))|working|works(?: for me)?|wow|"
    r"yeah|yep|yes|you (?:can|may) (?=continue|go (?:on|ahead)|proceed)|you too|you['’]?re welcome|yup)\b[\W\d_]*+)++|"
    r"[\W\d_]*+(?:(?:继续(?:做|执行|进行|下一步)?|请你?|你(?=继续)|接着(?:做|写|说|来)?|往下|下一步|开始吧|好的?|嗯+|"
    r"是的?|对的?|可以|行|没问题|谢谢你?|多谢|感谢|辛苦了|明白了?|知道了|收到|同意|就这样|很好|不错|不用了?|没有了?|"
    r"吧|啊|呢|了|ok)[\W\d_]*+)++"
)

TASK_CUES = (
    r"(?i)\b(?:task|job|assignment|objective|goal|mission|ticket|project|topic|subject|instead|switch|switching|"
    r"move on|plans?|something (?:else|different))\b|任务|目标|改做|改为|换个|换一个|转到|转向"
)
_LEAD = (
    r"[\W_]*(?:(?:ok|okay|alright|right|great|good|perfect|thanks|thank you|so|and|now|please|hi|hello|hey|actually|"
    r"well|here['’]?s|here is|here comes|i have|i['’]ve got|we have|there['’]?s|there is|your|my|our|the|a|an|next up)"
    r"\b[\W_]*){0,6}"
)
_TASK = r"(?:task|job|assignment|objective|goal|mission|ticket|project|topic)"
NEW_TASK = (
    rf"(?i){_LEAD}(?:"
    rf"(?:new|next|another|different|second|third|follow[- ]?up|other)\s+{_TASK}"
    r"(?=\s*(?:[:：,.;–—!-]\s*\w|[.!]?\s*$|for\s+(?:you|today|now)\b|(?:is|will\s+be)\s+(?:to\b|now\b|:)|now\b|#?\d))|"
    rf"(?:change|switch)\s+of\s+(?:plans?|{_TASK})\s*[:：,;–—-]\s*\w|{_TASK}\s+(?:has\s+changed|is\s+now)\b|"
    rf"{_TASK}\s+#?\d+\s*[:：–—-]|"
    r"(?:let['’]?s|let\s+us|we\s+(?:will|can|should)|i\s+want\s+(?:you\s+)?to|i['’]d\s+like\s+(?:you\s+)?to|can\s+we)?\s*"
    r"(?:now\s+)?(?:switch|change|turn|move\s+on|go\s+over|shift)\s+to\s+(?:an?(?:other)?\s+|the\s+)?"
    rf"(?:new\s+|next\s+|different\s+|other\s+)+(?:\w+\s+)?{_TASK}\b|"
    r"(?:let['’]?s|please)\s+(?:do|work\s+on|start)\s+something\s+(?:else|different|new)\b|"
    r"something\s+(?:(?:completely|entirely|quite)\s+)?(?:else|different)\s*(?:now\s*)?[:：.,;–—-]\s*\w|"
    r"(?:stop|drop|forget(?:\s+about)?|leave|set\s+aside|put\s+aside|never\s+mind)\s+(?:the|that|this|it|your|all)\b"
    rf"[^.!?]{{0,60}}\b(?:{_TASK})?\s*(?:[,;–—-]|\band\b)\s*(?:and\s+|now\s+|then\s+|please\s+)*"
    r"(?:build|create|do|draft|fix|implement|make|prepare|start|work|write)\b|"
    r"(?:(?:let['’]?s|let\s+us)\s+)?change\s+the\s+(?:subject|topic)\s*[:：,.;–—-]\s*\w)|"
    r"[\W_]*(?:(?:好的?|那|那么|现在|请|谢谢|接下来|我们|咱们|给你)[，,、\s]*)*(?:"
    r"(?:一个|个)?(?:新的?|下一个|另一个|另外一个|第[二三四五]个)\s*(?:任务|目标|项目)|换个?一?个?(?:新的?)?(?:任务|话题|项目)|"
    r"任务\s*[二三四五2-9]\s*[:：]|任务(?:变了|改为|变更)|目标(?:改为|变为|变了)|改做|不做[^，。！？]{1,20}了[，,]\s*(?:改|现在|先))"
)
OPENING_GREETING = (
    r"(?i)[\W_]*(?:hi|hiya|hello|hey+|howdy|greetings|good (?:morning|afternoon|evening|day))\b(?!\s+again)|"
    r"[\W_]*(?:你好|您好|大家好|嗨|哈喽|早上好|上午好|下午好|晚上好)"
)

LIST_MARK = (
    r"\s*(?:[-*–—]\s+|[•‣·]\s*|\(?(?:\d{1,3}|[a-z])[.)]\s+|[（(]?(?:\d{1,3}|[一二三四五六七八九十]+)[)）、]\s*)"
    r"(?:\[[ x]\]\s*)?"
)
CLAUSE_END = r"[,;:，；：]\s*|\s[-–—]+\s|\s(?=(?:and|but|so|because|since|which)\s)"
EMPHASIZED = r"\A(\*\*|__|\*|_)([^*_]+)\1\Z"

# Words of an instruction for this moment only.
TEMPORARY = (
    r"\b(?:yet|this time|right now|just now|for now|(?<!from )now|at the moment|lines? \d+)\b|这次|暂时|先别|还不要"
)
# Words of someone else, or an assumption of the speaker.
REPORTED = (
    r"(?<!\bi )(?<!\bwe )(?<!\bhave )(?<!'ve )\b"
    r"(?:(?:says?|said|states?|claims?|claimed|wrote|writes|told|thinks|according to)|"
    r"(?:error|bug|problem|issue|cause|reason|failure|fault|culprit|it|that|this)\s+must\s+not)\b|"
    r"(?<![我来是再话如])说(?![明话法得了])|(?<!我)(?<!我们)(?:认为|规定)"
)
QUESTION_CLAUSE = (
    r"(?:^|[,;:，；]\s*|\s[-–—]+\s*|\b(?:and|so|but|or)\s+)(?:(?:so|and|but|also|then|now|hmm|please|well)[\s,]+)*(?:"
    r"(?:can|could|would|will|should|shall|may|must|do|does|did|is|are|am|have|has|isn['’]t|aren['’]t|don['’]t)\s+"
    r"(?:you|we|i|it|there|that|this|they|my|the|these)\b|"
    r"how\s+(?:do|can|should|would|could|to|might|is|are|does|much|many|will|did)\b|"
    r"(?:what|why|where|who|which)(?:['’]s)?\s+(?:\w+\s+)?(?:is|are|do|does|did|would|should|can|could|will|if|about)\b|"
    r"what['’]?s\b|why\s+not\b|any\s+(?:ideas|suggestions|tips|advice|thoughts)\b|i(?:['’]m|\s+am)\s+wondering\b)"
)
QUESTION = r"[?？]\W*$|[吗呢么]\W*$"
AGREEMENT = (
    r"(?i)\W*(?:yes|yep|yeah|yup|sure|ok|okay|alright|fine|agreed?|approved|absolutely|definitely|please\s+do|"
    r"(?:that\s+)?sounds\s+(?:good|great|perfect)|(?:let['’]?s\s+)?do\s+(?:it|that|so)|go\s+ahead|perfect|great|"
    r"good\s+idea|proceed|(?:that\s+)?works(?:\s+for\s+me)?|exactly|好的?|可以|行|同意|就这样|没问题|嗯|对|确认|就这么办|按你说的)"
    r"(?=\W|$|吧|啊|的|了)"
)
# A yes with one of these is none, or only half of one.
RESERVATION = (
    r"(?i)\b(?:but|however|except|no|not|never|wait|actually|instead|rather|hold\s+on|\w+n['’]?t)\b|[?？]|"
    r"但是?|不过|不要|不用|别|等等|不行"
)
# A yes does not answer these: open questions, advice for a case, examples.
NO_PROPOSAL = r"(?i)\W*(?:which|what|how|who|when|where|if)\b|.*\b(?:examples?|illustrate)\b"
PROPOSAL = (
    r"\bi(?:['’]d|\s+would)?\s+(?:strongly\s+)?(?:suggest|propose|recommend)\b|"
    r"\bi(?:['’]d|\s+would)\s+(?:go\s+(?:with|for)|use|choose|pick)\b|\bmy\s+(?:suggestion|recommendation|proposal|plan)\b|"
    r"\b(?:shall|should)\s+(?:we|i)\s+(?:go\s+with|use|switch\s+to|stick\s+(?:with|to))\b|"
    r"\blet['’]?s\s+(?:just\s+)?(?:adopt|choose|drop|go\s+(?:with|for)|keep|pick|settle\s+on|stay\s+with|"
    r"stick\s+(?:with|to)|switch\s+to|use)\b|\bwe(?:['’]ll|\s+(?:should|will))\s+(?:go\s+with|stick\s+(?:with|to)|"
    r"switch\s+to|use)\b|\b(?:i|we)(?:['’]ve|\s+have)?\s+decided\s+(?:to|on|against|that)\b|\A[\s*_]*+decision\s*:|"
    r"建议|提议|推荐(?:用|使用|采用)|我的(?:方案|想法)是|决定(?:用|采用|选|使用|改)|"
    r"(?:我们|咱们)?就(?:用|选|采用)[^，。！？]{1,30}吧"
)
# Options of an open decision, and the words between them.
BETWEEN = r"\bbetween\s+([^.!?;:]+?)(?=\s+(?:as|because|before|by|for|in|on|when)\b|[.!?;:]|$)"
EITHER_OR = (
    r"(?:[\w.+#-]+\s+){0,3}[\w.+#-]+\s*,?\s+(?:or|vs\.?|versus)\s+[\w.+#-]+(?:\s+[\w.+#-]+){0,2}|"
    r"[\w.+#-]+\s*(?:还是|或者?|和|与)\s*[\w.+#-]+"
)
OPTION_MARK = r"\s*,?\s*\b(?:and|or|vs|versus)\b\.?\s*|\s*(?:还是|或者?|和|与)\s*|,\s+"
FUNCTION_WORDS = frozenset(
    "a an and are as at be between by choice choose decide decided decision decisions do either for from go have if in "
    "is it keep let's need needed of on open or pending pick question should stay still switch tbd that the this to "
    "undecided use using versus vs we we'll what when whether which will with yet".split()
)
# The words of a choice beside the chosen alternative.
CHOICE_WORDS = frozenset(
    "a alright an choose definitely fine for go going great i i'd i'll i'm is it let's lets okay ok one option perfect "
    "pick please right settle so sure take that's the then us use we we'd we'll we're will with would yeah yep "
    "yes".split()
)
CHINESE_CHOICE_WORDS = r"我们?|咱们|那|就|还是(?=[用选])|用|选择?|采用|好的?|行|可以|嗯|请|[的了吧来定]"
CHINESE_FUNCTION_WORDS = (
    r"我们|咱们|还(?:没有?|要|得|是)|需要?|决定|待定|选择?|使用|采用|用|或者?|是否|要不要|哪个|什么|[的了吧就先在和与]"
)

# Thanks, praise and excuses before a request.
COURTESY = (
    r"(?i)\W*(?:thanks|thank you|sorry|oops)\b[^?]*$|"
    r"\W*(?:this|that|these|those|it)\b[^?]{0,40}?\b(?:looks?|is|are|sounds?|works?)\s+(?:really |very |so )?"
    r"(?:awesome|good|great|helpful|nice|perfect|useful)\b[^?]*$|\W*(?:谢谢|多谢|抱歉|不好意思)[^？]*$"
)
# Offers and good wishes at the end of a reply.
CLOSING = (
    r"(?i)\banything else\b|\blet me know\b|\bfeel free\b|\b(?:happy|glad) to (?:help|assist)\b|"
    r"\bhave a (?:great|nice|good)\b|\byou['’]?re (?:very )?welcome\b|\bgood luck\b|"
    r"\b(?:would you like|do you want) (?:me )?to (?:continue|proceed|go on)\b|"
    r"还有(?:什么|其他)|随时(?:告诉|联系)|需要我"
)
