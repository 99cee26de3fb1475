"""Names and relations in Chinese. Only data; see `forms`."""

from __future__ import annotations

from memograd.data.lifelog.forms import Forms, Role

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
