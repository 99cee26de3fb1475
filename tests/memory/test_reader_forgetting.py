"""Requests to forget: natural ones in both languages are understood, talk of forgetting is not."""

from __future__ import annotations

from datetime import datetime

import pytest

from memograd.memory import RawTurn
from memograd.memory.reader import Fact, RuleReader

REQUESTS = [
    ("Please forget that I live in Boston.", "User lives in Boston"),
    ("Please forget my phone number.", "User's phone number"),
    ("Could you forget what I told you about my salary?", "User's salary"),
    ("Can you delete my address from your memory?", "User's address"),
    ("Don't remember my birthday anymore.", "User's birthday"),
    ("Please stop remembering where I work.", "Where User works"),
    ("You can forget about my trip to Rome.", "User's trip to Rome"),
    ("I'd like you to forget my ex's name.", "User's ex's name"),
    ("I want you to erase everything I said about my divorce.", "User's divorce"),
    ("What I said about my boss, please forget it.", "User's boss"),
    ("Never mind what I said about the new job.", "The new job"),
    ("Ignore what I told you earlier about my diet.", "User's diet"),
    ("Disregard what I said about moving to Denver.", "Moving to Denver"),
    ("Scratch what I said about the dog.", "The dog"),
    ("Please remove the note about my knee surgery.", "User's knee surgery"),
    ("I take back what I said about my sister.", "User's sister"),
    ("Would you mind deleting my password hint?", "User's password hint"),
    ("Strike my shoe size from your notes.", "User's shoe size"),
    ("Please don't retain my bank details.", "User's bank details"),
    ("Don't store my credit card number, please.", "User's credit card number"),
    ("You don't need to remember my old locker code any more.", "User's old locker code"),
    ("No need to remember which gym I go to.", "Which gym User goes to"),
    ("Wipe what you know about my health.", "User's health"),
    ("Let's pretend I never told you about my surprise party.", "User's surprise party"),
    ("Pretend I never mentioned my tattoo.", "User's tattoo"),
    ("Forget I ever said that I smoke.", "User smokes"),
    ("Please forget the fact that I'm allergic to nuts.", "User is allergic to nuts"),
    ("I'd rather you didn't remember my weight.", "User's weight"),
    ("It would be great if you could forget my old nickname.", "User's old nickname"),
    ("My home address should be removed from your memory, please.", "User's home address"),
    ("Please clear everything about my ex-husband.", "User's ex-husband"),
    ("Get rid of what you saved about my car.", "User's car"),
    ("I don't want you to remember my religion.", "User's religion"),
    ("Don't keep a record of my medication.", "User's medication"),
    ("Drop what I told you about the lottery win.", "The lottery win"),
    ("Kindly erase my landlord's number.", "User's landlord's number"),
    ("Could you please forget that my sister is pregnant?", "User's sister is pregnant"),
    ("The thing I told you about my neighbour, please delete that.", "User's neighbour"),
    ("About my blood type: please forget it.", "User's blood type"),
    ("Oh, please forget where my son goes to school.", "Where User's son goes to school"),
    ("I should not have told you about my debts. Please delete that.", "User's debts"),
    ("I wish I hadn't said that my brother drinks. Erase it, please.", "User's brother drinks"),
    ("My flat number is 12. Please forget that.", "User's flat number is 12"),
    ("I no longer want my address to be stored.", "User's address"),
    ("I want my old nickname deleted from your notes.", "User's old nickname"),
    ("Could my shoe size be forgotten, please?", "User's shoe size"),
    ("What I told you about my exam no longer counts.", "User's exam"),
    ("Take my locker number off your list.", "User's locker number"),
    ("请忘掉我住在北京。", "用户住在北京"),
    ("我不该告诉你我欠债的事，请删掉。", "用户欠债的事"),
    ("我不想再让你知道我住在哪里。", "用户住在哪里"),
    ("我想把我的住址从你的记忆里删掉。", "用户的住址"),
    ("忘了吧，我的旧住址。", "用户的旧住址"),
    ("李娜的电话请删掉。", "李娜的电话"),
    ("我的旧手机号，已经没用了，删了吧。", "用户的旧手机号"),
    ("你就当没听过我离婚的事。", "离婚的事"),
    ("我之前说的升职，就当没这回事。", "升职"),
    ("我住在西安。请把这个忘掉。", "用户住在西安"),
    ("别再记着李娜的生日了。", "李娜的生日"),
    ("请忘了我的电话号码。", "用户的电话号码"),
    ("别记我的住址了。", "用户的住址"),
    ("把我的生日删掉吧。", "用户的生日"),
    ("请把我的工资从记忆里删除。", "用户的工资"),
    ("我之前说的体检结果不算数。", "体检结果"),
    ("能不能把我说过的前男友的事忘掉？", "前男友的事"),
    ("你可以忘掉我的车牌号了。", "用户的车牌号"),
    ("不用再记我在哪儿上班了。", "用户在哪儿上班"),
    ("不要再记着我的血型了，谢谢。", "用户的血型"),
    ("我的身份证号别记了。", "用户的身份证号"),
    ("我的旧邮箱不用记了，请删掉。", "用户的旧邮箱"),
    ("麻烦你删除关于我离婚的记录。", "用户离婚"),
    ("关于我妹妹的病情，请忘掉。", "用户的妹妹的病情"),
    ("我收回刚才说的搬家计划。", "搬家计划"),
    ("就当我没说过升职的事。", "升职的事"),
    ("当我没提过我的体重。", "用户的体重"),
    ("我上次跟你说的银行卡号，请你忘掉。", "银行卡号"),
    ("请不要保存我的密码提示。", "用户的密码提示"),
    ("请清除你记得的关于我前妻的一切。", "用户的前妻"),
    ("希望你能忘记我的外号。", "用户的外号"),
    ("我希望你不要再记得我住哪里。", "用户住哪里"),
    ("我不想让你记住我的年龄。", "用户的年龄"),
    ("帮我把孩子学校的信息删了。", "孩子学校"),
    ("帮我抹掉之前告诉你的房租。", "房租"),
    ("可以请你把我老板的名字忘掉吗？", "用户的老板的名字"),
    ("把我对花生过敏这件事忘了吧。", "用户对花生过敏"),
    ("刚才说的收入作废。", "收入"),
    ("我的体重你就别记着了。", "用户的体重"),
    ("那条关于我手术的记录可以删了。", "用户手术"),
    ("之前告诉过你的门锁密码，现在请忘记它。", "门锁密码"),
    ("你不必记得我的鞋码。", "用户的鞋码"),
    ("从你的记忆里抹去我的宗教信仰。", "用户的宗教信仰"),
    ("请撤回我关于跳槽的说法。", "跳槽"),
    ("我说过喜欢香菜，那句话当我没说。", "喜欢香菜"),
    ("我之前说我住在上海，不算数。", "用户住在上海"),
    ("别再记着我的住址了，请删掉。", "用户的住址"),
]  # fmt: skip

ORDINARY = """
I forgot my keys at home.
Don't forget to call my mom.
I'll never forget my first trip to Rome.
I can't forget what he said.
Forget it, let's go.
Please don't forget that I'm allergic to nuts.
I always forget people's names.
My grandma is starting to forget things.
I deleted my Facebook account.
Can you delete the last paragraph of my essay?
Remove my name from the email draft.
Clear my calendar for Friday.
Did you delete my message?
How do I delete my browser history?
Can you help me forget him?
I want to forget my ex.
I try to forget about work on weekends.
He asked me to forget the whole thing.
She told me to delete the photos.
Sorry, I forgot to mention that I moved to Oslo.
Remember when I told you to forget about sugar?
I wish I could forget that movie.
Don't remind me of Monday.
Forget about dieting, I love cake.
Never mind the weather.
Ignore my typos.
I took back the shoes I bought.
Don't keep me waiting.
Forgetting my umbrella cost me an hour.
Forget the past, live today.
Please delete the third row.
I lost my wallet. Forget it.
I should not have told you so late.
别再记着那些不开心的事了。
I want my old bike gone.
Could my parcel be delivered on Monday?
I need my car washed.
No more notes today.
Let my dog out, please.
我不想让你知道。
我想把头发剪了。
我的车坏了，修不好了，卖了吧。
你的建议请再说一遍。
我吃过午饭了。那就忘了吧。
Delete my last message.
I don't remember my old address.
Nobody remembers my birthday.
You never forget how to ride a bike.
Please remember my birthday.
It was hard to erase what she said from my mind.
I dropped what I was doing and ran.
我忘了带钥匙。
别忘了明天给我妈打电话。
我忘不了第一次去罗马的旅行。
请别忘记我对花生过敏。
我把手机落在家里忘了拿。
我老是忘记别人的名字。
奶奶开始忘事了。
我把朋友圈删了。
帮我把这段文字的最后一句删掉。
我想忘掉前男友。
他让我忘掉这件事。
怎么删除我的浏览记录？
我差点忘了告诉你我搬到上海了。
我昨天把微信卸载删除了。
你还记得我住在哪里吗？
算了，不说了。
时间久了就忘了。
真希望能忘掉那部电影。
我记不住密码。
别记仇。
请记住我的生日。
我把老板的话忘得一干二净。
老师说我的作业不算数。
我收回了借出去的钱。
不要忘记我。
他把我的号码删了。
我不小心把照片删掉了。
忘了带伞，淋了一身雨。
我的钥匙忘在公司了。
我永远不会忘记你说过的话。
别忘了我的生日。
妈妈叫我别记那么多电话号码。
""".strip().splitlines()


def read(text: str, speaker: str = "user") -> list[Fact]:
    return RuleReader().read([RawTurn("t", speaker, text, datetime(2024, 5, 8, 12, 30), 1)])


@pytest.mark.parametrize(("said", "text"), REQUESTS)
def test_what_is_to_be_forgotten(said: str, text: str) -> None:
    [fact] = read(said)
    assert fact.retracts
    assert fact.text.rstrip(".。") == text


@pytest.mark.parametrize("said", ORDINARY)
def test_talk_of_forgetting_asks_for_nothing(said: str) -> None:
    assert not any(fact.retracts for fact in read(said))
