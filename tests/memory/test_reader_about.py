"""Whom "she" means, and that nobody is named where two may be meant."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memograd.memory import RawTurn
from memograd.memory.reader.about import person_meant
from memograd.memory.reader.setting import Setting
from memograd.memory.reader.wording import say, say_assistant
from memograd.tasks.relations.wording import DialogueReader


@pytest.mark.parametrize(
    ("sentence", "earlier", "before", "meant"),
    [
        (
            "She's from El Salvador",
            "My wife Luz bought me a cooler, the Alpicool.",
            "",
            "My wife Luz",
        ),
        ("he lets me work late", "ok", "my boss Gunnar is nice but it's small", "my boss Gunnar"),
        ("Her place is called Maple", "", "My daughter Marisol is a senior", "My daughter Marisol"),
        ("她61，退休会计", "", "我妈5月来住，想给她找点事做", "我妈"),
        ("他不吃辣", "我爸来了。", "", "我爸"),
        # Names, titles and callings of people and animals.
        ("He's starting with them", "Declan's packed in the boats.", "", "Declan"),
        ("His boy turns 10", "", "Garth called. He's put in for a transfer.", "Garth"),
        ("he's Wiremu's", "the cat's called Gherkin, put that in.", "", "Gherkin"),
        (
            "she's 29",
            "Mr Adair's told us he's retiring, his daughter Philippa's the boss.",
            "",
            "Philippa",
        ),
        ("She has put him up", "We saw the neurologist. Dr Abernethy.", "", "Dr Abernethy"),
        ("She left a sheet", "The physio won't be coming.", "My mum is old", "The physio"),
        ("她说蜜月去三亚", "", "科室同事小蒋下个月结婚", "小蒋"),
        ("她爸在苏州上班", "她刚满四岁。", "我家甜甜三岁半了", "甜甜"),
        ("她考华师", "我女朋友瑶瑶也考 ", "", "我女朋友瑶瑶"),
        # What a name does, has or is said to be shows that it is somebody's.
        ("He starts in May", "My brother Owen got the job at Rolls Royce!", "", "My brother Owen"),
        ("She'll visit me here", "Klara's van broke in Kaikoura!", "", "Klara"),
        ("She's from Monsanto", "Sílvia says they paid in potatoes.", "", "Sílvia"),
        ("He sells cars", "Dan's my brother in law.", "", "my brother in law Dan"),
        ("He has a bike", "My rival is my friend Sel, a dentist.", "", "my friend Sel"),
        ("she was in the engine", "brought home a kitten by accident.", "", "a kitten"),
        ("She weighed him", "Health visitor came.", "", "the health visitor"),
        ("She'll be in 3 nights", "Mum's hip op is the 21st.", "", "my mum"),
        ("I gave him gin", "Tom next door to me brought tomatoes.", "", "Tom"),
        ("She was early", "our baby is called Noor", "", "our baby Noor"),
        ("他住丰台", "", "我哥们大壮来了", "我哥们"),
        ("She returns soon", "Yi-Ting went to Auckland.", "", "Yi-Ting"),
        ("他到现在还怕", "给我爸发了红包，他回“儿子你多吃”。", "", "我爸"),
        ("他31岁", "陈师兄请我喝茶。", "", "陈师兄"),
        ("他叫豆包", "外孙来了，皮，五岁", "", "我外孙"),
        ("I buried him", "Brian died this morning.", "", "Brian"),
        ("Apparently she likes it", "Ann called.", "", "Ann"),
        # A pronoun behind somebody tells their sex.
        ("He does sharks", "Rankine's off, yay for her, and Dr Oye took over.", "", "Dr Oye"),
        ("He has a place", "Arjun's mother came and slept in his bed.", "", "Arjun"),
        ("She's 84", "", "Mrs Kaye fell. I walk her dog, Pip, he's wild", "Mrs Kaye"),
        # Places, days and things are nobody.
        ("her man is nice", "Anzac Day. Aunty rang.", "", "Aunty"),
        ("Her name's Bex", "A group at St Chad's, and I've made a friend!", "", "a friend"),
        ("She can't come", "Op went great, she's cross with the physios.", "", None),
        ("she's fine", "took the dog to the vet bc she ate half a sock.", "", None),
        # Somebody whom no form shows may stand in between.
        ("He floated", "Baby swimming taster today.", "Tom came.", None),
        ("他晚上能抱娃了", "老公转成白班了。", "", "我老公"),
        ("她是老师", "周末跟女朋友小鱼去了趟首博，她看瓷器。", "", "我女朋友小鱼"),
        ("他叫周野", "有个男生背了一整个西瓜上山。", "", "那个男生"),
        ("我教他放哪儿", "店里来了新人叫小岛，高中生。", "", "小岛"),
        ("它昨天掉下去了", "", "我们家猫叫煤球，黑的，它只吃鱼", "我们家猫煤球"),
        ("它一直打针", "哈日是我养了十一年的狗。", "", "哈日"),
        ("她84了", "", "隔壁王奶奶摔了，我帮她遛狗，狗叫皮皮", "王奶奶"),
        ("他推推眼镜", "教授让我定题目。", "", "教授"),
        ("他人很好", "我老公和小王都来了。", "", None),
        ("他没收", "父亲节发了个红包。", "", None),
        # Two may be meant, or nobody who was spoken of.
        ("He lives there", "Boston is nice.", "", None),
        ("She's expecting", "Isobel lives with Fergus and the twins.", "", None),
        ("他老是迟到", "小曼是早班，阿杰是晚班。", "", None),
        ("她俩是同乡", "小曼哭了。", "", None),
        ("He's a captain", "My best friend Tess is marrying Obinna.", "", None),
        ("She is tall", "My wife met my sister.", "", None),
        ("She is tall", "My son won.", "My wife was there.", None),
        ("She is tall", "", "", None),
        ("Sheila is tall", "My wife sang.", "", None),
        ("她有猫", "我老婆和我妈都来了。", "", None),
        ("她左手不能戴", "", "晓蕾和我妈举着牌子", None),
        ("他们走了", "我爸来了。", "", None),
    ],
)
def test_whom_a_pronoun_means(sentence: str, earlier: str, before: str, meant: str | None) -> None:
    assert person_meant(sentence, earlier, before) == meant


def said(text: str, about: str | None = None) -> str:
    time = datetime(2024, 5, 7, tzinfo=UTC)
    turn = RawTurn("t", "user", "", time, 1)
    return say(text, Setting(turn, ("user",), True, None, "", about)).text


def test_a_sentence_about_somebody_says_about_whom() -> None:
    assert said("She's a nurse.", "my wife Luz") == "About User's wife Luz: she's a nurse."
    assert said("She left a sheet.", "The physio") == "About the physio: she left a sheet."
    assert said("I buried him", "Brian") == "About Brian: User buried him."
    assert said("她61岁，退休会计", "我妈") == "关于用户的妈：她61岁，退休会计。"


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("I drive a truck, mostly I-80", "User drives a truck, mostly I-80."),
        ("Oh, and by the way, I've run it five times now", "User has run it five times now."),
        ("Speaking of which, I quit", "User quit."),
        ("I have the keys; ours was 7 lb", "User has the keys; their own was 7 lb."),
        ("对了，顺便提一下我换工作了", "用户换工作了。"),
        ("顺便去了趟超市", "用户说：顺便去了趟超市。"),
        ("跟你说个事 小蒋怀孕了", "用户说：小蒋怀孕了。"),
        ("哈囉，我在台北", "用户在台北。"),
        ("我换了发型，笑死我", "用户换了发型。"),
        ("Which reminds me, Ann is our boss", "Ann is User's boss."),
        ("I'm told shes a dog theyve kept", "User is told she's a dog they've kept."),
        ("And put in I got 22 kids", "User got 22 kids."),
        ("Put down what I want: 2 lb of staples", "What User wants: 2 lb of staples."),
        ("Put it in the oven, I said", "Put it in the oven, User said."),
        (
            "can you write me a text to my boss Mr Adair",
            "User asked: can you write User a text to their boss Mr Adair.",
        ),
        ("Should I go electric?", "User asked: Should User go electric?"),
        # Whoever names a relation alone means their own.
        ("Mum's hip op is soon", "User's mum's hip op is soon."),
        ("dad said no", "User's dad said no."),
        ("Mum of three boys", "User said: Mum of three boys."),
        ("Father Pat's sister sings", "User said: Father Pat's sister sings."),
        ("Mother's Day is soon", "User said: Mother's Day is soon."),
        ("儿子满十岁了", "用户的儿子满十岁了。"),
        ("妈妈们都来了", "用户说：妈妈们都来了。"),
        # What only says what to do with it.
        ("I hate figs, put that in.", "User hates figs."),
        ("I told you I hate figs didn't I", "User hates figs."),
        ("我不吃香菜，你记一下", "用户不吃香菜。"),
        # A name may begin with what is called out.
        ("哈日没了", "用户说：哈日没了。"),
        ("哈哈，我走了", "用户走了。"),
        ("那个男生叫周野", "用户说：那个男生叫周野。"),
        ("Raised six of her own", "User said: Raised six of her own."),
        ("What do I get him?", "User asked: What does User get him?"),
        ("We hadn't talked in two years", "User and others hadn't talked in two years."),
        ("I lost 8 kg in two months", "User lost 8 kg in two months."),
        ("I found out the exam is in a month", "User found out the exam is in June 2024."),
        ("2月14日至4月初是假期", "用户说：2月14日至4月初是假期。"),
    ],
)
def test_how_sentences_stand_alone(text: str, alone: str) -> None:
    assert said(text) == alone


def test_an_assistants_list_loses_its_marks() -> None:
    turn = RawTurn("t", "assistant", "", None, 1, role="assistant")
    setting = Setting(turn, ("user", "assistant"), True, None, "")
    drafts = [say_assistant(one, setting).text for one in ("- **Iron**: daily", "2. Book `B2`")]
    assert drafts == ["The assistant said: Iron: daily.", "The assistant said: Book B2."]


def test_a_relation_may_be_somebody_elses() -> None:
    turn = RawTurn("t", "user", "她84了。女儿在加拿大。", None, 1)
    setting = Setting(turn, ("user",), True, None, "")
    assert say("女儿在加拿大。", setting).text == "用户说：女儿在加拿大。"


def test_a_bare_answer_at_the_head_of_a_message_is_told_with_its_question() -> None:
    reader = DialogueReader()
    reader.worded("assistant", "A new job! Whom would you miss?", None, [])
    told = "Gunnar. He lets me bring the dog. I asked for Fridays off."
    assert reader.worded("user", told, None, ["Gunnar."]) == [
        'User, asked "A new job! Whom would you miss?", answered: Gunnar.'
    ]
