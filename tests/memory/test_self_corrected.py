"""A message that corrects itself says what was meant, and others stay as they are."""

from __future__ import annotations

import pytest

from memograd import Memory
from memograd.memory.reader.self_corrected import MOST_CUES, as_meant
from memograd.memory.relations import RelationModel
from memograd.memory.relations.model import load_relation_model


@pytest.fixture(scope="module")
def model() -> RelationModel:
    return load_relation_model()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("My scan is on the 3rd, no, sorry, the 13th of May.", "My scan is on the 13th of May."),
        ("My boy is nine no sorry ten now", "My boy is ten now"),
        ("I've got four, no, I lie, five grandchildren.", "I've got five grandchildren."),
        ("We're moving to Dundee, no wait, I mean Perth, soon.", "We're moving to Perth, soon."),
        ("it's tuesday i mean wednesday at 3", "it's wednesday at 3"),
        ("It is a 20 gallon, no wait, 30, the tall one.", "It is a 30 gallon, the tall one."),
        ("Dinner is at 6 pm... no wait, it's 7 pm. Bring wine.", "Dinner is at 7 pm. Bring wine."),
        ("We live at 12 Elm Road no wait it's 14 Oak Lane, Hull.", "We live at 14 Oak Lane, Hull."),
        (
            "The network is called Hut 3... I mean Hut 5, ask Jo.",
            "The network is called Hut 5, ask Jo.",
        ),
        (
            "Choir is on Mondays in Leith, well, I say Mondays, it's Tuesdays now.",
            "Choir is on Tuesdays in Leith, now.",
        ),
        ("He sailed from 51 to 60. I wrote 60, it should be 66.", "He sailed from 51 to 66."),
        ("The bus is at 6pm. No, 7pm. From York.", "The bus is at 7pm. From York."),
        ("I'm 41. My son is 12. No, 13.", "I'm 41. My son is 13."),
        ("The car is a 2015 Golf. 2016, sorry.", "The car is a 2016 Golf."),
        (
            "I'm 1 metre 52 and need skis. Oops, that was my sister: I meant 1 metre 72. Which?",
            "I'm 1 metre 72 and need skis. Which?",
        ),
        ("I'm allergic to cashews, no hang on, pistachios, ok", "I'm allergic to pistachios, ok"),
        ("I work at a bank, no sorry, a bakery, in Hull", "I work at a bakery, in Hull"),
        ("Dentist is on wednesday at 3, wait no, thursday at 3.", "Dentist is on thursday at 3."),
        ("家里有两只乌龟，呃说错，三只，老忘", "家里有三只乌龟，老忘"),
        ("My boy is 5. wait no 6, he had cake", "My boy is 6, he had cake"),
        (
            "we close on May 3rd, no scratch that, the bank just called, May 13th. Whoop",
            "we close on May 13th. Whoop",
        ),
        (
            "her name is Marie no sorry the phone put that wrong its Mariah M A R I A H hes 9",
            "her name is Mariah hes 9",
        ),
        ("我身高一米七三，不对不对一米七六，刚量的", "我身高一米七六，刚量的"),
        ("我家有十六亩地,噢不是,十五亩,让了一亩给我哥", "我家有十五亩地,让了一亩给我哥"),
        ("女儿8岁，哦不，9岁，刚过完生日", "女儿9岁，刚过完生日"),
        ("航班是下午三点，说错了，是下午五点，在T2", "航班是下午五点，在T2"),
        ("我家承包了八亩，哦不对，九亩鱼塘", "我家承包了九亩鱼塘"),
        ("我妹妹在长沙，不对，在株洲读大学", "我妹妹在株洲读大学"),
        ("我下周去厦门出差，哦不对，是去福州", "我下周去福州出差"),
        ("我每周三，啊不是，每周四去打羽毛球", "我每周四去打羽毛球"),
        (
            "I make 19.50 an hour at the plant sorry 20.50 they gave everybody a buck in march",
            "I make 20.50 an hour at the plant, they gave everybody a buck in march",
        ),
        (
            "I retired from the mill in 2011 after 30 years. No wait, hip was 2011, I retired in"
            " 2013.",
            "I retired from the mill in 2013 after 30 years.",
        ),
        (
            "We have 3 bedrooms and the levy is R1 850, agh man, 2 bedrooms, not three.",
            "We have 2 bedrooms and the levy is R1 850, not three.",
        ),
        (
            "My grandson Alfie is in Dundee, studying dentistry. No, what am I saying, it is"
            " veterinary medicine; the dentist is his cousin.",
            "My grandson Alfie is in Dundee, studying veterinary medicine; the dentist is his"
            " cousin.",
        ),
        ("I bought two goats, no, two rams for Sallah.", "I bought two rams for Sallah."),
        ("need 30 napkins. *13 sorry fat thumbs", "need 13 napkins, fat thumbs"),
        ("hoodie in size L, navy. actaully XL, navy ok", "hoodie in size XL, navy ok"),
        (
            "My nephew Ptolomy, sorry, Bartholomew, stays with me.",
            "My nephew Bartholomew, stays with me.",
        ),
        ("我家三口人,啊不对四口,老二刚上户口", "我家四口人,老二刚上户口"),
        ("我女儿四年级，等等，五年级了", "我女儿五年级了"),
    ],
)
def test_the_value_that_is_taken_back_goes(model: RelationModel, said: str, meant: str) -> None:
    assert as_meant(model, said) == meant


@pytest.mark.parametrize(
    "said",
    [
        "No, sorry, Tuesday. I have no idea why I said Monday",
        "I mean it, three dogs is enough",
        "I love Rome, I mean who doesn't",
        "She is 40, no children",
        "I got two, sorry to hear you got none",
        "I said Friday, it's raining.",
        "Meet me at 5. Sorry. I'm late",
        "I have 3 kids. 4 of my friends came.",
        "I am off on Friday, no wait, I said it to Tom already",
        "My name is Jo, and I got an A B C book",
        "I am fond of dogs, no wait, seriously, cats rule",
        "是八亩，不是九亩",
        "他八点来的，不是，他九点走",
        "这不是我的错，是他的",
        "房租2800，不是3000",
        "我有5个，不是，你听我说，6个都坏了",
        "My number is 12, no sorry, I can't give you that",
        "I have two dogs, no, wait for me, and one cat",
        "孩子六岁，不对外上课",
        "我在长沙，不是在株洲",
        "他说错了，我没吭声",
        "I drink my tea with milk, no sugar",
        "They are Jains, so no onion, no garlic, no potato.",
        "Her name is Mia, sorry.",
        "it's a Skoda actually",
        "My dream car is a Miata; I actually drive a Fiesta",
        "friday 24th sorry, thursday is the theory resit of my mate",
        "16 sold, sorry, my 1 key sticks",
        "my neighbour at no. 8 is Mr Ferreira and at no. 12 the Holts",
        "i failed on 4 minors. no wait. 1 major and 4 minors, thats why",
        "I wrote cashews, I meant pistachios. cashews are fine",
        "Did I say 18? I meant 80 chairs.",
        "get rid of my record. I dont mean the car I mean the law stuff",
        "我女儿今年三年级，哦不是，九月才升三年级",
        "改错别字：护理部 不是 护里部",
    ],
)
def test_what_takes_nothing_back_stays(model: RelationModel, said: str) -> None:
    assert as_meant(model, said) == said


def test_of_many_cues_a_few_are_read(model: RelationModel) -> None:
    read = 0
    other_value = RelationModel.other_value

    def counted(*given: object) -> object:
        nonlocal read
        read += 1
        return other_value(*given)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RelationModel, "other_value", counted)
        for said in ("I live in Leeds, no, x, " * 500, "我在长沙，不对，" * 500):
            as_meant(model, said)
    assert read <= 2 * MOST_CUES


def test_only_what_was_meant_is_remembered(tmp_path):
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add("My scan is on the 3rd, no, sorry, the 13th of May.", user_id="ann")
        memory.add("我家承包了八亩，哦不对，九亩鱼塘", user_id="bo")
        [scan] = [one["memory"] for one in memory.get_all(user_id="ann")["results"]]
        [pond] = [one["memory"] for one in memory.get_all(user_id="bo")["results"]]
    assert "13" in scan and "3rd" not in scan.replace("13th", "") and "sorry" not in scan
    assert "九亩" in pond and "八亩" not in pond
