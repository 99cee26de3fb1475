"""How people tell of what happened to them in Chinese. Only data; see `forms`.

An event is told once with its day (`{when}`), its value and one detail, which `ask_more` asks for.
"""

from __future__ import annotations

from memograd.data.lifelog.forms import Forms, FormWording

EVENTS: dict[str, FormWording] = {
    "visit": FormWording(
        pool=(
            "平遥", "凤凰古城", "乌镇", "婺源", "大理", "泉州", "敦煌", "阳朔", "承德", "景德镇",
            "黄山", "西塘",
            "曲阜", "北海", "镇远", "腾冲", "延吉", "开封", "张家界", "鼓浪屿", "大同",
        ),
        details=("老同学", "两个同事", "邻居一家", "表哥", "合唱团", "大学室友", "全家人", "驴友",
            "阿姨"),
        tell=Forms(
            ("{who}{when}和{d}去了{v}玩", "{who}{when}跟{d}到{v}旅行",
                "{when}{who}和{d}一起出发去了{v}"),
            ("{when}{who}人在{v}，同行的是{d}",),
        ),
        noun=Forms(("{who}去{v}的旅行",), ("{whose}{v}之行",)),
        ask=Forms(("{who}{day}去了哪里旅行？",), ("{day}{who}人在哪个地方？",)),
        ask_more=Forms(("{who}是和谁去的{v}？",), ("{who}在{v}有谁同行？",)),
        ask_when=Forms(("{who}是哪天去{v}的？",), ("{who}人在{v}是几月几号？",)),
    ),
    "check_up": FormWording(
        pool=(
            "脚踝肿", "久咳不止", "一颗怪痣", "头晕", "中耳炎", "膝盖疼", "皮疹", "落枕", "胃灼热",
            "牙疼",
            "视力模糊", "手腕扭伤", "胸闷", "髋部疼", "喉咙痛",
        ),
        details=(
            "休息一周", "多喝水", "做核磁共振", "吃抗生素", "一个月后复查", "做拉伸", "少吃糖",
            "看专科",
            "涂药膏",
        ),
        tell=Forms(
            ("{who}{when}因为{v}去看了医生，医生让{him}{d}", "{who}{when}去医院看{v}，医生建议{d}"),
            ("{when}{who}因{v}就诊，医嘱是{d}",),
        ),
        noun=Forms(("{who}因为{v}去看医生",), ("{who}因{v}就诊",)),
        ask=Forms(("{who}{day}为什么去看医生？",), ("{day}{who}因为什么就诊？",)),
        ask_more=Forms(("{who}的{v}，医生让怎么做？",), ("{who}因{v}得到的医嘱是什么？",)),
        ask_when=Forms(("{who}因为{v}看医生是哪天？",), ("{who}因{v}就诊是几月几号？",)),
    ),
    "concert": FormWording(
        pool=(
            "丝绒水獭乐队", "月亮游行", "铜管和尚", "静港乐队", "米拉", "纸鸢合唱团", "北方电流",
            "地窖四重奏",
            "欧拉与猫头鹰", "铜雨乐队", "锡笛乐队", "蓝调时刻", "静电花园", "艾薇", "灯笼乐团",
        ),
        details=("市政厅", "露天舞台", "爵士地窖", "老酒厂", "大教堂", "港口音乐节", "大学礼堂",
            "歌剧院", "城市公园"),
        tell=Forms(
            ("{who}{when}在{d}听了{v}的演出", "{who}{when}去{d}看{v}的演唱会"),
            ("{when}{who}到{d}看了{v}的现场",),
        ),
        noun=Forms(("{who}听{v}的演出",), ("{who}看{v}的现场",)),
        ask=Forms(("{who}{day}听了谁的演出？",), ("{day}{who}看了谁的现场？",)),
        ask_more=Forms(("{who}在哪里听的{v}？",), ("{who}看{v}的现场是在什么场地？",)),
        ask_when=Forms(("{who}哪天听的{v}？",), ("{who}看{v}现场是几月几号？",)),
    ),
    "purchase": FormWording(
        pool=(
            "面包机", "天文望远镜", "皮夹克", "划船机", "地毯", "降噪耳机", "折叠自行车", "扶手椅",
            "帐篷",
            "缝纫机", "黑胶唱机", "登山鞋", "咖啡机", "衣柜", "投影仪", "雨衣", "小烤箱", "吊床",
        ),
        details=("140元", "620元", "365元", "1310元", "289元", "2540元", "125元", "799元",
            "3750元"),
        tell=Forms(
            ("{who}{when}花{d}买了{v}", "{when}{who}给自己买了{v}，一共{d}"),
            ("{who}{when}入手了{v}，花掉{d}",)
        ),
        noun=Forms(("{who}买{v}",), ("{who}入手{v}",)),
        ask=Forms(("{who}{day}买了什么？",), ("{day}{who}入手了什么？",)),
        ask_more=Forms(("{who}买{v}花了多少钱？",), ("{who}的{v}价格是多少？",)),
        ask_when=Forms(("{who}哪天买的{v}？",), ("{who}入手{v}是几月几号？",)),
    ),
    "dinner": FormWording(
        pool=(
            "老战友", "新邻居", "以前的老师", "伯伯", "乐队成员", "智利笔友", "跑步小组",
            "退休法官", "房东",
            "加拿大来的亲戚", "两个交换生", "教父教母",
        ),
        details=(
            "泰国菜馆", "屋顶酒吧", "街角比萨店", "寿司店", "老磨坊", "牛排馆", "美食市集",
            "黎巴嫩餐厅", "码头餐厅",
        ),
        tell=Forms(
            ("{who}{when}和{v}在{d}吃了晚饭", "{who}{when}约{v}去{d}吃饭"),
            ("{when}{who}同{v}在{d}聚餐",)
        ),
        noun=Forms(("{who}和{v}吃饭",), ("{who}同{v}聚餐",)),
        ask=Forms(("{who}{day}和谁吃了晚饭？",), ("{day}{who}同谁聚餐？",)),
        ask_more=Forms(("{who}和{v}在哪里吃的饭？",), ("{who}同{v}聚餐的地方是哪里？",)),
        ask_when=Forms(("{who}哪天和{v}吃的饭？",), ("{who}同{v}聚餐是几月几号？",)),
    ),
    "injury": FormWording(
        pool=(
            "手腕骨折", "脑震荡", "韧带撕裂", "拇指割伤", "肋骨挫伤", "肩膀脱臼", "手被烫伤",
            "脚趾骨折", "眼眶淤青",
            "牙齿磕裂", "大腿拉伤", "膝盖扭伤",
        ),
        details=("滑雪", "搬沙发", "踢足球", "从梯子上摔下", "做饭", "冰上滑倒", "骑车摔跤", "跳墙",
            "和狗打闹"),
        tell=Forms(
            ("{who}{when}因为{d}弄得{v}", "{when}{who}{d}，结果{v}"),
            ("{who}{when}受了伤，{v}，起因是{d}",)
        ),
        noun=Forms(("{who}{v}",), ("{who}{v}的那次受伤",)),
        ask=Forms(("{who}{day}受了什么伤？",), ("{day}{who}伤到了哪里？",)),
        ask_more=Forms(("{who}{v}是怎么弄的？",), ("{who}{v}的起因是什么？",)),
        ask_when=Forms(("{who}{v}是哪天？",), ("{who}{v}发生在几月几号？",)),
    ),
    "interview": FormWording(
        pool=(
            "水族馆", "汉登银行", "广播电台", "律师事务所", "植物园", "风筝机器人公司",
            "国家档案馆", "连锁面包房",
            "机场", "索利斯能源", "玩具博物馆", "旅游局",
        ),
        details=("很顺利", "很糟糕", "比预想的好", "马马虎虎", "一塌糊涂", "还不错", "有点拘谨",
            "非常出色", "时好时坏"),
        tell=Forms(("{who}{when}去{v}面试，感觉{d}", "{when}{who}参加了{v}的面试，{d}"),
            ("{who}{when}到{v}应聘，过程{d}",)),
        noun=Forms(("{who}去{v}面试",), ("{who}到{v}应聘",)),
        ask=Forms(("{who}{day}去哪里面试了？",), ("{day}{who}到哪里应聘？",)),
        ask_more=Forms(("{who}在{v}的面试怎么样？",), ("{who}到{v}应聘的过程如何？",)),
        ask_when=Forms(("{who}哪天去{v}面试的？",), ("{who}到{v}应聘是几月几号？",)),
    ),
    "gift": FormWording(
        pool=(
            "丝巾", "怀表", "音乐会门票", "仙人掌", "国际象棋", "手工被子", "钢笔", "拼图",
            "尤克里里", "茶具",
            "签名海报", "风筝", "菜谱", "雪景球", "相册",
        ),
        details=("奶奶", "老板", "神秘的仰慕者", "干爹", "全班同学", "阿姨", "楼上邻居", "队友",
            "交换生"),
        tell=Forms(("{who}{when}收到{d}送的{v}", "{d}{when}送了{v}给{whom}"),
            ("{when}{who}拆开了{d}的礼物，是{v}",)),
        noun=Forms(("{who}收到{v}",), ("{who}拆开礼物{v}",)),
        ask=Forms(("{who}{day}收到了什么礼物？",), ("{day}{who}拆开的礼物是什么？",)),
        ask_more=Forms(("{who}的{v}是谁送的？",), ("把{v}当礼物给{who}的是谁？",)),
        ask_when=Forms(("{who}哪天收到{v}的？",), ("{who}拆开礼物{v}是几月几号？",)),
    ),
    "lost": FormWording(
        pool=("钱包", "雨伞", "借书证", "银戒指", "运动包", "围巾", "相机", "耳环", "自行车头盔",
            "笔记本", "家门钥匙", "帽子"),
        details=("电车上", "电影院", "公园里", "机场里", "海滩上", "出租车上", "超市里", "更衣室",
            "图书馆"),
        tell=Forms(("{who}{when}在{d}丢了{v}", "{when}{who}把{v}落在{d}，没找回来"),
            ("{who}的{v}{when}在{d}不见了",)),
        noun=Forms(("{who}丢{v}",), ("{who}的{v}不见",)),
        ask=Forms(("{who}{day}丢了什么？",), ("{day}{who}什么东西不见了？",)),
        ask_more=Forms(("{who}在哪里丢的{v}？",), ("{who}的{v}是在什么地方不见的？",)),
        ask_when=Forms(("{who}哪天丢的{v}？",), ("{who}的{v}是几月几号不见的？",)),
    ),
    "exam": FormWording(
        pool=(
            "急救课程", "驾照理论考试", "法语考试", "帆船执照", "数学补考", "品酒课", "钓鱼证",
            "编程训练营",
            "会计课程", "潜水证", "钢琴考级", "律师考试",
        ),
        details=("优异的成绩", "压线的分数", "第二次尝试", "满分", "良好的成绩", "裸考"),
        tell=Forms((), ("{who}{when}以{d}通过了{v}", "{when}{who}凭{d}拿下了{v}")),
        noun=Forms((), ("{who}拿下{v}",)),
        ask=Forms((), ("{who}{day}通过了什么考试或课程？",)),
        ask_more=Forms((), ("{who}是以什么结果通过{v}的？",)),
        ask_when=Forms((), ("{who}哪天通过{v}的？",)),
    ),
    "repair": FormWording(
        pool=("锅炉", "屋顶", "洗衣机", "花园门", "冰箱", "浴室水龙头", "大门", "门铃", "洗碗机",
            "暖气片", "烟囱", "百叶窗"),
        details=("160元", "910元", "295元", "1430元", "450元", "375元"),
        tell=Forms((), ("{who}{when}花{d}修了{v}", "{when}{who}请人修好{v}，用了{d}")),
        noun=Forms((), ("{who}修{v}",)),
        ask=Forms((), ("{who}{day}修了什么？",)),
        ask_more=Forms((), ("{who}修{v}花了多少钱？",)),
        ask_when=Forms((), ("{who}哪天修的{v}？",)),
    ),
}  # fmt: skip
