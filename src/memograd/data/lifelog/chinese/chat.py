"""Names and relations in Chinese, sentences around facts, and talk that is worth nothing.

Only data; see `forms`.
"""

from __future__ import annotations

from memograd.data.lifelog.chinese.attributes import CITIES, HOBBIES, JOBS, LIKES
from memograd.data.lifelog.forms import Forms, Frames, Parts, Role, Said, Trifle

WOMEN = Forms(
    (
        "林悦", "王芳", "陈静", "李雪梅", "赵倩", "周晓燕", "吴佳怡", "徐丽", "孙婷婷", "马兰",
        "朱琳", "胡雅琴", "郭敏", "何秀英", "高颖", "罗欣", "郑小红", "梁慧", "谢玉洁", "宋佳",
        "唐薇", "许晴", "邓丽华", "冯媛",
    ),
    ("韩梅", "曹雨桐", "彭思思", "曾莉", "萧然然", "田甜", "董洁", "潘虹", "袁媛", "蔡文静",
        "蒋欣怡",
     "余娜"),
)  # fmt: skip
MEN = Forms(
    (
        "张伟", "刘强", "杨帆", "黄志明", "吴磊", "徐浩", "孙建国", "马超", "朱军", "胡斌",
        "郭涛", "何平", "高翔", "罗杰", "郑凯", "梁宇", "谢东", "宋明", "唐俊", "许文博",
        "邓超群", "冯刚", "陈立", "李思远",
    ),
    ("韩松", "曹阳", "彭飞", "曾亮", "萧峰", "田野", "董成", "潘岳", "袁朗", "蔡恒", "蒋大为",
        "余波"),
)  # fmt: skip
PETS = Forms(
    (
        "豆豆",
        "球球",
        "咪咪",
        "旺财",
        "小黑",
        "布丁",
        "可乐",
        "毛毛",
        "团子",
        "花花",
        "奶茶",
        "点点",
    ),
    ("饺子", "汤圆", "皮皮", "雪球", "土豆", "元宝"),
)
ROLES = (
    Role("姐姐", "adult", "f", surname=True), Role("哥哥", "adult", "m", surname=True), Role("妈妈",
        "adult", "f"),
    Role("爸爸", "adult", "m", surname=True), Role("表弟", "adult", "m"), Role("表妹", "adult",
        "f"),
    Role("同事", "adult"), Role("邻居", "adult"), Role("好友", "adult"),
    Role("室友", "adult"), Role("姑姑", "adult", "f", surname=True), Role("舅舅", "adult", "m"),
    Role("老同学", "adult"), Role("女儿", "child", "f", surname=True), Role("儿子", "child", "m",
        surname=True),
    Role("侄女", "child", "f", surname=True), Role("外甥", "child", "m"), Role("狗", "pet"),
    Role("猫", "pet"),
    Role("兔子", "pet"), Role("鹦鹉", "pet"),
)  # fmt: skip


FRAMES = Frames(
    said=Forms(
        (
            "对了，{clause}。",
            "跟你说一声，{clause}。",
            "我有没有提过，{clause}？",
            "有个新消息，{clause}。",
            "哦，还有，{clause}。",
        ),
        ("顺便告诉你，{clause}。", "我想说的是，{clause}。", "好像一直没说，{clause}。"),
    ),
    text=Forms(
        (
            "{speaker}说，{clause}。",
            "{speaker}提到，{clause}。",
            "据{speaker}说，{clause}。",
            "{speaker}告诉对方，{clause}。",
        ),
        ("{speaker}透露，{clause}。", "来自{speaker}的消息：{clause}。"),
    ),
    hidden=Forms(
        (
            "这一周累坏了，碗还堆着没洗。",
            "公交又晚点，我在雨里站了半天。",
            "不好意思回复晚了，邮箱里乱成一团。",
            "我真想一口气睡三天。",
            "哈哈，你总能把我逗笑。",
            "厨房总算收拾好了，花了半天工夫。",
            "邻居又在装修，吵得我都听不见自己说话。",
            "先来杯咖啡，再说别的。",
        ),
        (
            "今天事事不顺，真是那种日子。",
            "我正捧着茶坐在窗边发呆。",
            "刚才手机差点在半路上没电。",
            "哎呀，时间过得真快。",
        ),
    ),
    again=Forms(
        ("我说过的，{clause}。", "好像跟你讲过，{clause}。", "你也知道，{clause}。"),
        ("之前告诉过你，{clause}。", "你可能还记得，{clause}。"),
    ),
    corrected=Parts(
        (
            Said("不对，我说错了，{clause}。", "{speaker}更正说，{clause}。"),
            Said("抱歉，我记混了，其实{clause}。", "{speaker}刚才记混了，其实{clause}。"),
            Said("更正一下，不是{old}，{clause}。", "不是先前说的{old}，{clause}。"),
            Said("等等，我刚才说{old}，那是口误，{clause}。", "{old}是口误，{clause}。"),
        ),
        (
            Said("刚才的不算，{clause}。", "{speaker}收回了刚才的话，{clause}。"),
            Said(
                "我糊涂了，什么{old}，{clause}。",
                "{speaker}一时糊涂说成{old}，正确的是，{clause}。",
            ),
        ),
    ),
    hearsay=Parts(
        (
            Said(
                "{gossip}到处跟人说{clause}，根本不是真的。", "{gossip}到处说{clause}，这不是真的。"
            ),
            Said("有个离谱的谣言，说{clause}，你可别信。", "有谣言说{clause}，是假的。"),
            Said("{gossip}以为{clause}，不过这种事他总弄错。", "{gossip}误以为{clause}。"),
            Said("我听{gossip}说{clause}，可谁也没证实过。", "{gossip}声称{clause}，没有人证实。"),
        ),
        (
            Said(
                "你信吗，{gossip}发誓说{clause}，纯属胡扯。", "{gossip}发誓说{clause}，纯属胡扯。"
            ),
            Said("{gossip}怕是做梦梦见{clause}。", "{speaker}说，{gossip}怕是做梦梦见{clause}。"),
        ),
    ),
    gossip=Forms(
        ("面包店里有人", "小卖部老板", "一个老街坊", "理发师", "聚会上的一个人", "门卫"),
        ("楼下的大妈", "某个同事的哥哥", "出租车司机"),
    ),
    forget_topic=Parts(
        (
            Said("请忘掉{topic}。", "{speaker}要求忘掉{topic}。"),
            Said("别再记着{topic}了，请删掉。", "{speaker}要求删掉{topic}。"),
            Said("能不能抹掉之前说的，就是{topic}？", "{speaker}请求抹掉之前说的，就是{topic}。"),
        ),
        (
            Said("把{topic}从你的记录里划掉吧。", "{speaker}要把{topic}从记录里划掉。"),
            Said("我希望你不要记住{topic}。", "{speaker}不希望{topic}被记住。"),
        ),
    ),
    forget_clause=Parts(
        (
            Said("请忘掉这件事，就是{clause}。", "{speaker}要求忘掉这件事，{clause}。"),
            Said("我不该告诉你{clause}，请删掉。", "{speaker}要求删掉这一条，{clause}。"),
        ),
        (Said("帮个忙，别记着{clause}。", "{speaker}不愿让人记着{clause}。"),),
    ),
    introduced=Forms(
        ("{whose}{role}叫{name}", "{whose}{role}名叫{name}", "{whose}{role}名字是{name}"),
        ("{name}是{whose}{role}", "{whose}{role}唤作{name}"),
    ),
    ask_name=Forms(
        ("{whose}{role}叫什么名字？", "{who}的{role}叫什么？"), ("怎么称呼{whose}{role}？",)
    ),
    ask_both=Forms(("{one}还有，{two}",), ("{one}另外，{two}",)),
    ask_first=Forms(("{one}和{two}，哪个在前？",), ("{one}与{two}，哪件事更早？",)),
)

_TRAIN_TALK = (
    Said("早上好！昨晚睡得怎么样？", "{speaker}问昨晚睡得怎么样。", either=True),
    Said("哈哈，我也是！", "{speaker}：哈哈，我也是！", either=True),
    Said("周末过得怎么样？", "{speaker}问周末过得怎么样。", either=True),
    Said("真好，替你高兴。", "{speaker}觉得真好。", either=True),
    Said("有什么好电影推荐吗？", "{speaker}请人推荐电影。"),
    Said("多谢，帮了我大忙。", "{speaker}道了谢。"),
    Said("你说我今晚做什么菜好？", "{speaker}问今晚做什么菜。"),
    Said("知道明天天气怎么样吗？", "{speaker}问起天气。"),
    Said("没想到这么快又到周末了。", "{speaker}没想到这么快又到周末。", either=True),
    Said("聊点开心的吧。", "{speaker}想换个话题。"),
    Said("哇，真的吗？", "{speaker}：哇，真的吗？", either=True),
    Said("回头再聊！", "{speaker}道了别。", either=True),
    Said("能给我讲讲复利是怎么算的吗？", "{speaker}请人讲解复利。"),
    Said("给我讲个笑话吧。", "{speaker}想听笑话。"),
    Said("嗯，让我想想。", "{speaker}要想一想。"),
    Said("一升水等于几杯？", "{speaker}问一升水等于几杯。"),
    Said("有些人真是不可理喻。", "{speaker}：有些人真是不可理喻。"),
    Said("真好奇当{v}是什么感觉。", "{speaker}好奇当{v}是什么感觉。", JOBS),
    Said("你觉得{v}值得去吗？", "{speaker}问{v}值不值得去。", CITIES),
    Said("要是能住在{v}该多好啊。", "{speaker}幻想住在{v}。", CITIES),
    Said("你认识会{v}的人吗？", "{speaker}问有没有人会{v}。", HOBBIES),
    Said("大家到底觉得{v}哪里好？", "{speaker}问大家觉得{v}哪里好。", LIKES),
    Said("星座运势说我会搬去{v}，真可笑。", "{speaker}笑谈星座运势说要搬去{v}。", CITIES),
    Said("要是中了彩票，我就歇一年。", "{speaker}说中了彩票就歇一年。"),
    Said("刚才我们聊到哪儿了？", "{speaker}问刚才聊到哪儿了。", either=True),
    Said("祝好运！", "{speaker}：祝好运！", either=True),
    Said("帮我把“谢谢”翻成意大利语，好吗？", "{speaker}请人翻译一句意大利语。"),
    Said("给我写首关于大海的小诗吧。", "{speaker}想要一首关于大海的诗。"),
    Said("你说得对，我不该想太多。", "{speaker}同意不该想太多。"),
    Said("书上说{v}是座古城。", "{speaker}看到书上说{v}是座古城。", CITIES),
)
_TEST_TALK = (
    Said("又见面了，近来好吗？", "{speaker}问近来好不好。", either=True),
    Said("可不是嘛，说到心坎里了。", "{speaker}：可不是嘛，说到心坎里了。", either=True),
    Said("今晚有什么安排吗？", "{speaker}问今晚有什么安排。", either=True),
    Said("开长途听什么播客好？", "{speaker}请人推荐播客。"),
    Said("感激不尽！", "{speaker}：感激不尽！", either=True),
    Said("衬衫上的红酒渍怎么洗掉？", "{speaker}问怎么洗红酒渍。"),
    Said("下次见，保重。", "{speaker}说了再会。", either=True),
    Said("谁都有这样的日子吧。", "{speaker}：谁都有这样的日子吧。", either=True),
    Said("怎样才能成为{v}呢，我常想。", "{speaker}琢磨怎样才能成为{v}。", JOBS),
    Said("听说{v}总下雨，是吗？", "{speaker}问{v}是不是总下雨。", CITIES),
    Said("{v}是不是特别费钱？", "{speaker}问{v}是不是费钱。", HOBBIES),
    Said("该有人为{v}写首歌。", "{speaker}觉得该有人为{v}写首歌。", LIKES),
    Said("下辈子我想生在{v}。", "{speaker}想象下辈子生在{v}。", CITIES),
    Said("埃菲尔铁塔有多高？", "{speaker}问埃菲尔铁塔有多高。"),
    Said("给我列五道简单的汤。", "{speaker}想要五道简单的汤。"),
    Said("说实话，我也不清楚。", "{speaker}：说实话，我也不清楚。", either=True),
)

SMALL_TALK = Parts(_TRAIN_TALK, _TEST_TALK)

FOODS = (
    "三明治", "牛肉面", "剩饭", "凉拌菜", "两根香蕉", "蛋炒饭", "烧饼", "番茄汤", "煎蛋", "冷比萨",
    "饺子", "米线",
)  # fmt: skip
SHOWS = (
    "问答节目",
    "老武侠片",
    "新闻",
    "美食节目",
    "足球赛",
    "自然片",
    "半部侦探片",
    "动画片",
    "访谈节目",
)

TRIFLES = Parts(
    (
        Trifle("{who}今天午饭吃了{v}", FOODS),
        Trifle("{who}那边下了一上午雨"),
        Trifle("{who}昨晚看了{v}", SHOWS),
        Trifle("{who}早上没赶上公交"),
        Trifle("{who}今天有点困"),
        Trifle("{who}在邮局排了二十分钟队"),
        Trifle("{who}上午喝了三杯咖啡"),
        Trifle("{who}把牛奶洒在桌上了"),
        Trifle("{who}今天等电梯等了好久"),
        Trifle("{who}刚吃了{v}", FOODS),
        Trifle("{who}回家路上堵得厉害"),
        Trifle("{who}早上睡过头了"),
    ),
    (
        Trifle("{who}今天在路上随便吃了{v}", FOODS),
        Trifle("{who}出门时风很大"),
        Trifle("{who}看着{v}睡着了", SHOWS),
        Trifle("{who}今天脚趾撞到了门"),
        Trifle("{who}早上发现没牛奶了"),
        Trifle("{who}哈欠打了一整天"),
    ),
)
