"""What the generated people talk about: wording and questions, one `Topic` each.

Only data. A topic is told by its owner in one turn, around which the other person asks and reacts.
In the wording, `{name}` is the owner and `{other}` the partner; all other slots are filled by the
plan of the generator. Invariant: the answer of a single-hop question stands in the telling, word
for word.
"""

from __future__ import annotations

from dataclasses import dataclass

from memograd.data.generator import vocabulary


@dataclass(frozen=True)
class Ask:
    """One question about a telling.

    answer: a slot pattern. only_owner: the wording names something that only the owner has, so that
    the same question about the other person has no answer (an adversarial question).
    """

    text: str
    answer: str
    category: str = "single-hop"
    only_owner: bool = False


@dataclass(frozen=True)
class Topic:
    """One exchange: the partner prompts, the owner tells, the partner reacts, the owner closes."""

    prompts: tuple[str, ...]
    tells: tuple[str, ...]
    reacts: tuple[str, ...]
    closes: tuple[str, ...]
    asks: tuple[Ask, ...] = ()
    caption: str | None = None


@dataclass(frozen=True)
class State:
    """Something that a person has one of, and changes: told once, then told anew at each change."""

    pool: tuple[str, ...]
    first: Topic
    change: Topic
    current: str
    previous: str
    changed_when: str


@dataclass(frozen=True)
class Collection:
    """Questions that join several tellings of one topic."""

    text: str
    slot: str


WHEN = "{when_answer}"

STATES: dict[str, State] = {
    "job": State(
        pool=vocabulary.JOBS,
        first=Topic(
            prompts=("How is work treating you these days?", "What's your work life like now?"),
            tells=(
                "Busy as ever! I'm working as {a_value} and the days fly by.",
                "Work keeps me on my feet. Being {a_value} is never boring.",
                "My days are full, I still work as {a_value} and there is always too much to do.",
            ),
            reacts=(
                "I could never do that! Being {a_value} sounds demanding.",
                "That's a job I know nothing about. Do you enjoy it?",
            ),
            closes=("Most days, yes! The people make it worth it.", "It pays the bills, at least."),
        ),
        change=Topic(
            prompts=("Any news from work?", "Still in the same job, {name}?"),
            tells=(
                "Big news: I changed careers! I started as {a_value} {when}.",
                "I finally left my old job! I began working as {a_value} {when}.",
                "You won't believe it, but I'm {a_value} now. My first day was {when}.",
            ),
            reacts=(
                "Wow, congratulations! {A_value}, who would have thought?",
                "That's a big step! I'm proud of you for making that change.",
            ),
            closes=(
                "Thanks! I was nervous, but it feels right.",
                "I'm learning something new every hour.",
            ),
        ),
        current="What is {name}'s current job?",
        previous="What was {name}'s job before becoming {a_value}?",
        changed_when="When did {name} start working as {a_value}?",
    ),
    "city": State(
        pool=vocabulary.CITIES,
        first=Topic(
            prompts=("Are you at home right now?", "Are you calling from home, {name}?"),
            tells=(
                "I am! I'm still living in {value}. The rent is wild, but I like my street.",
                "At home, as always! {value} is lovely at this time of the year.",
                "Yes, in my kitchen in {value}, with the window open and the radio on.",
            ),
            reacts=(
                "I keep meaning to see {value} one day.",
                "Give my love to {value}. I'd like to visit.",
                "That sounds cozy. Do you know your neighbors?",
            ),
            closes=(
                "A few of them! We share tools and gossip.",
                "You're welcome here whenever you like.",
            ),
        ),
        change=Topic(
            prompts=("What are all those boxes behind you?", "You sound out of breath, {name}!"),
            tells=(
                "I did it, I moved to {value} {when}! I'm surrounded by boxes.",
                "I have a new address! I moved to {value} {when}, and I can't find my mugs.",
                "Moving is exhausting, but I'm in {value} now. The van arrived {when}.",
            ),
            reacts=(
                "{value}! That's a whole new start.",
                "I had no idea you were leaving! How does it feel?",
            ),
            closes=(
                "Strange and exciting. I already found a good bakery.",
                "A bit lonely so far, so please visit!",
            ),
        ),
        current="Which city does {name} live in now?",
        previous="Which city did {name} live in before moving to {value}?",
        changed_when="When did {name} move to {value}?",
    ),
    "hobby": State(
        pool=vocabulary.HOBBIES,
        first=Topic(
            prompts=("What do you do after work lately?", "How do you spend your evenings?"),
            tells=(
                "I've been spending my evenings on {value}. It clears my head.",
                "Mostly {value}! It's my main hobby and I can't get enough of it.",
            ),
            reacts=(
                "{Value}? I would never have guessed!",
                "I love that for you. Is it hard to get started?",
            ),
            closes=("Not at all, you just need patience.", "I could show you some day!"),
        ),
        change=Topic(
            prompts=("Do you still have the same hobby?", "What are you up to in your free time?"),
            tells=(
                "I got tired of my old hobby and took up {value} {when}.",
                "I switched hobbies! I started {value} {when} and I'm hooked.",
            ),
            reacts=(
                "{Value}! That's quite a change.",
                "Good for you, trying something new. What drew you to it?",
            ),
            closes=(
                "A neighbor talked me into it, and now I can't stop.",
                "I needed something different, and this is it.",
            ),
        ),
        current="What is {name}'s current hobby?",
        previous="What was {name}'s hobby before {value}?",
        changed_when="When did {name} take up {value}?",
    ),
    "food": State(
        pool=vocabulary.FOODS,
        first=Topic(
            prompts=("What did you cook for dinner?", "I'm hungry. What's your favorite food?"),
            tells=(
                "My favorite food is {value}, so that's what's on the table, again.",
                "You know me, my favorite is {value}. I could eat it every day.",
            ),
            reacts=(
                "Now I'm craving {value}, thanks a lot!",
                "I've never made that. Is it difficult?",
            ),
            closes=("It's easy once you have the right pan.", "I'll cook it for you next time!"),
        ),
        change=Topic(
            prompts=("What are you eating these days?", "Tried any good restaurants?"),
            tells=(
                "I have a new favorite food! I tried {value} {when} and it beats everything.",
                "Forget what I said before, {value} is my favorite now. I first had it {when}.",
            ),
            reacts=("Really? {Value} beats your old favorite?", "You have to take me there!"),
            closes=("By far! I dream about it.", "Deal, but you're paying."),
        ),
        current="What is {name}'s favorite food now?",
        previous="What was {name}'s favorite food before {value}?",
        changed_when="When did {name} first try {value}?",
    ),
    "instrument": State(
        pool=vocabulary.INSTRUMENTS,
        first=Topic(
            prompts=("Are you still making music?", "What was that noise in the background?"),
            tells=(
                "I'm learning to play the {value}. My neighbors are very patient.",
                "That was my {value}! I take lessons once a week.",
            ),
            reacts=(
                "The {value} is so beautiful. Play something for me some day!",
                "How brave! I can't even whistle.",
            ),
            closes=(
                "Give me a year and I'll play at your birthday.",
                "It sounds better every week, I promise.",
            ),
        ),
        change=Topic(
            prompts=("How are your music lessons going?", "Will you play us a song soon, {name}?"),
            tells=(
                "I switched instruments! I had my first {value} lesson {when}.",
                "I gave my old instrument away and started playing the {value} {when}.",
            ),
            reacts=(
                "The {value}? I did not see that coming!",
                "It takes courage to start over. Is it easier?",
            ),
            closes=("It suits me much better, honestly.", "My fingers hurt, but I'm happy."),
        ),
        current="What instrument does {name} play now?",
        previous="What instrument did {name} play before the {value}?",
        changed_when="When did {name} start playing the {value}?",
    ),
}

TOPICS: dict[str, Topic] = {
    "trip": Topic(
        prompts=("You look tanned! Where have you been?", "Have you been away, {name}?"),
        tells=(
            "I went to {place} {when} with {companion}. I didn't want to come home!",
            "I took a trip to {place} {when}, together with {companion}.",
            "{Companion} and I visited {place} {when}. I took way too many photos.",
            "I finally saw {place}! I was there {when} with {companion}.",
        ),
        reacts=(
            "I'm so jealous, I want to see {place} too!",
            "{Place} must be stunning. Lucky you!",
            "I've only seen pictures of {place}. Was it crowded?",
            "And I was at home doing laundry while you saw {place}.",
        ),
        closes=(
            "Quieter than I thought, and the food was amazing.",
            "It rained twice, and I still loved every minute.",
            "We walked until our feet hurt.",
            "I'd go back in a heartbeat.",
        ),
        asks=(
            Ask("When did {name} visit {place}?", WHEN, "temporal", True),
            Ask("Who did {name} visit {place} with?", "{companion_plain}", only_owner=True),
        ),
        caption="a photo of {place} from a viewpoint",
    ),
    "book": Topic(
        prompts=("Have you read anything good?", "Any book tips for me, {name}?"),
        tells=(
            'I finished "{title}" {when}. {Recommender} recommended it to me.',
            'I read "{title}", a tip from {recommender}. I turned the last page {when}.',
            '{Recommender} told me to read "{title}", so I did. I finished it {when}.',
        ),
        reacts=(
            'I keep hearing about "{title}". Is it worth it?',
            '"{title}" is a great name for a book!',
            'I\'ll look for "{title}" in the library.',
            '"{title}" goes on my list, then.',
            "You read so much more than I do. Did you like it?",
        ),
        closes=(
            "I couldn't put it down. I even cried at the end.",
            "The middle is slow, but the ending is perfect.",
            "I'll lend you my copy.",
            "It made me miss my bus stop twice.",
        ),
        asks=(
            Ask('When did {name} finish reading "{title}"?', WHEN, "temporal", True),
            Ask('Who recommended "{title}" to {name}?', "{recommender_plain}", only_owner=True),
        ),
    ),
    "pet": Topic(
        prompts=("What's that sound? Is there an animal at your place?", "You look so happy!"),
        tells=(
            "I adopted a {kind} {when}! The name is {pet}, and we're already best friends.",
            "There's a new member in the family: {pet}, a {kind}! I brought {pet} home {when}.",
        ),
        reacts=("{pet} is such a cute name for a {kind}!", "Aww, I need to meet {pet} soon!"),
        closes=(
            "Come over! But hide your shoes.",
            "Right now it's all about sleeping and eating.",
        ),
        asks=(
            Ask("What is the name of {name}'s {kind}?", "{pet}", only_owner=True),
            Ask("When did {name} adopt the {kind}?", WHEN, "temporal", True),
        ),
        caption="a photo of a {kind} on a blanket",
    ),
    "market": Topic(
        prompts=("Did you do anything fun lately?", "How was your week, {name}?"),
        tells=(
            "I went to the {event} {when} and came home with {a_item}.",
            "I spent the morning at the {event} {when}. I only bought {a_item}, I swear!",
        ),
        reacts=(
            "You and your {item}! Where will you put it?",
            "I love the {event}, there is always so much to see.",
        ),
        closes=("I'll find a place for it.", "It was a bargain, I had no choice."),
        asks=(
            Ask("What did {name} buy at the {event}?", "{item}", only_owner=True),
            Ask("When did {name} go to the {event}?", WHEN, "temporal", True),
        ),
    ),
    "contest": Topic(
        prompts=("You're smiling! What happened?", "Anything to celebrate, {name}?"),
        tells=(
            "I took part in a {event} {when} and came in {rank}!",
            "I entered a {event} {when}. I finished {rank}, can you believe it?",
        ),
        reacts=("{Rank}? That's fantastic!", "A {event}! I wish I had been there to cheer."),
        closes=("I trained for months, so it means a lot.", "I'm still a little shaky, honestly."),
        asks=(
            Ask("In what place did {name} finish in the {event}?", "{rank}", only_owner=True),
            Ask("When did {name} take part in a {event}?", WHEN, "temporal", True),
        ),
    ),
    "workshop": Topic(
        prompts=("Did you sign up for a class in the end?", "What's that you're holding?"),
        tells=(
            "I took a {event} {when} and made {a_item}. It's crooked, but it's mine.",
            "I went to a {event} {when}, and this {item} is what I made there.",
        ),
        reacts=("You made that {item} yourself? I'm impressed!", "A {event} sounds so relaxing."),
        closes=("I want to go again soon.", "My hands were a mess, but I loved it."),
        asks=(
            Ask("What did {name} make at the {event}?", "{item}", only_owner=True),
            Ask("When did {name} go to a {event}?", WHEN, "temporal", True),
        ),
        caption="a photo of a handmade {item}",
    ),
    "gift": Topic(
        prompts=("Is that new, {name}?", "What a nice surprise! Who was that at the door?"),
        tells=(
            "{Giver} gave me {a_item} {when}. I was so touched.",
            "I got {a_item} from {giver} {when}, just like that!",
        ),
        reacts=("A {item}! What a thoughtful present.", "That's so kind. You must be close."),
        closes=("I'll treasure it.", "I don't know how to repay that."),
        asks=(
            Ask("Who gave {name} {a_item}?", "{giver_plain}", only_owner=True),
            Ask("When did {name} get the {item}?", WHEN, "temporal", True),
        ),
    ),
    "family": Topic(
        prompts=("How is your family doing?", "Any news from home, {name}?"),
        tells=(
            "My {relative} {person} is studying {subject} now. We're all so proud.",
            "My {relative} {person} just called, full of stories from studying {subject}.",
        ),
        reacts=("{person} is studying {subject}? Time flies!", "Say hello to {person} from me!"),
        closes=("I will! We talk every Sunday.", "It's a lot of work, but it's the dream."),
        asks=(
            Ask("What is the name of {name}'s {relative}?", "{person}"),
            Ask("What is {name}'s {relative} studying?", "{subject}"),
        ),
    ),
    "plan": Topic(
        prompts=("What are you looking forward to?", "Do you have any plans, {name}?"),
        tells=(
            "I'm going to {plan} {when}. I've wanted this for years!",
            "It's decided: I'm going to {plan} {when}. Wish me luck!",
        ),
        reacts=("You're really going to {plan}? I'm excited for you!", "Good luck with that!"),
        closes=("I'll tell you all about it.", "I hope I don't chicken out."),
        asks=(Ask("When is {name} planning to {plan}?", WHEN, "temporal", True),),
    ),
    "unwind": Topic(
        prompts=("You seem stressed. How do you relax?", "What do you do after a hard day?"),
        tells=(
            "When I'm stressed, {habit} is what helps me most.",
            "After a bad day I need {habit}, and then I'm human again.",
        ),
        reacts=("I should try that when things get too much.", "Whatever works, right?"),
        closes=("You should! It works every time.", "Better than any medicine."),
        asks=(Ask("What helps {name} to relax?", "{habit}"),),
    ),
    "trait": Topic(
        prompts=("Is there something I don't know about you?", "Tell me something new, {name}!"),
        tells=("{statement}",),
        reacts=("Oh, I didn't know that about you!", "Thanks for telling me. I'll remember."),
        closes=("Well, now you know.", "I don't tell everybody."),
        asks=(Ask("{trait_question}", "{trait_answer}", "open-domain"),),
    ),
}

COLLECTIONS: dict[str, Collection] = {
    "trip": Collection("Which places has {name} visited?", "place"),
    "book": Collection("Which books has {name} read?", "title"),
}

# What is shared by both people, and the question that needs a telling of each.
SHARED: dict[str, Collection] = {
    "trip": Collection("Which place have both {name} and {other} visited?", "place"),
    "unwind": Collection("What helps both {name} and {other} to relax?", "habit"),
}

GREETINGS: tuple[tuple[str, str], ...] = (
    ("Hey {other}! Good to see you. How have you been?", "Hi {name}! I'm good, thanks."),
    ("Hi {other}, it's been a while!", "{name}! I was just thinking about you."),
    ("Good to hear your voice, {other}!", "Yours too, {name}. I needed a chat."),
    ("Hello {other}! Do you have a minute?", "For you always, {name}."),
    ("{other}! Finally we get to talk.", "I know, {name}, these weeks were crazy."),
    ("Hey {other}, what's up?", "Hey {name}! Lots of things, as usual."),
    ("Hi there, {other}! How are things?", "Pretty good, {name}. It's nice that you called."),
    ("Morning or evening, {other}? I lost track.", "Ha, same here, {name}. Good to talk."),
    ("{other}, I missed our talks!", "Me too, {name}. Let's catch up."),
    ("Is this a good time, {other}?", "Perfect time, {name}. I just made tea."),
    ("Hey stranger! How are you, {other}?", "Sorry for being quiet, {name}. I'm fine!"),
    ("Guess who has time for you, {other}!", "{name}! You made my day."),
)

FAREWELLS: tuple[tuple[str, str], ...] = (
    ("I have to go, {other}. Talk soon!", "Take care, {name}!"),
    ("Time flies with you, {other}. Bye for now!", "Bye, {name}! This was nice."),
    ("My phone is almost dead, {other}. See you!", "See you, {name}. Charge it!"),
    ("Dinner is burning, {other}, I have to run!", "Oh no! Go, {name}, go!"),
    ("Let's not wait so long next time, {other}.", "Agreed, {name}. Until soon!"),
    ("I need to get some sleep, {other}. Good night!", "Sleep well, {name}."),
    ("Someone is at the door, {other}. Talk later!", "Sure, {name}. Later!"),
    ("Thanks for listening, {other}.", "Always, {name}. Stay well!"),
    ("Say hi to everyone from me, {other}!", "I will, {name}. Bye!"),
    ("I'd better get back to it, {other}.", "Same here, {name}. Have a good one!"),
    ("Well, {other}, the laundry is calling.", "It always is, {name}. Bye bye!"),
    ("Let me know how it goes, {other}!", "Promise, {name}. Hugs!"),
)

# Small talk that answers no question. Those with a slot borrow a value that neither person has, and
# give it to somebody else: a memory has to know whose fact it is.
SMALL_TALK: tuple[tuple[str, ...], ...] = (
    ("Did you see the rain? My shoes are still wet.", "I got soaked too. Umbrellas never help."),
    ("I can't believe how fast this year goes.", "Right? I still write the old year on forms."),
    ("My phone keeps freezing. So annoying.", "Try turning it off and on, the oldest trick."),
    ("I slept so badly, there was a party next door.", "Ugh, the walls are always too thin."),
    ("Do you also have a drawer full of cables?", "A drawer? I have a whole box!"),
    ("I made coffee and forgot it for an hour.", "Cold coffee is still coffee."),
    ("The bus was late again, of course.", "It's always late when you're on time."),
    ("I think I need new glasses.", "That explains why you didn't wave at me!"),
    ("Everyone seems to have a cold right now.", "Tell me about it. Drink a lot of tea."),
    ("I watched a show until three in the morning.", "Just one more episode, right?"),
    ("I keep losing one of my gloves.", "They must be hiding with my socks."),
    ("The supermarket moved everything around.", "It took me ages to find the rice."),
    ("My plants are dying one by one.", "Too much water, it's always too much water."),
    ("Do you remember our old teacher?", "Of course, with the loud shoes!"),
    ("My uncle became {a_job}, at his age!", "It's never too late, I suppose."),
    ("My neighbor moved to {city} and left me a sofa.", "A free sofa is a good sofa."),
    ("My coworker can only talk about {hobby}.", "Everybody needs a passion."),
    ("My landlord adopted a {kind}. It's loud.", "Oh dear. Good luck with that."),
    ("The new guy at the gym plays the {instrument}.", "Is there a gym band now?"),
    ("A friend of mine swears by {food}.", "I never had it, to be honest."),
    ("My cousin went to {place} and hated it.", "Some people are never happy."),
)

# Put in front of a wording that was used before, so that no two turns are the same.
PROMPT_LEADS = (
    "Anyway. ",
    "Now tell me. ",
    "Before I forget. ",
    "My turn to ask. ",
    "Okay, next. ",
)
REPLY_LEADS = ("Ha! ", "Oh, well. ", "You know what? ", "Hmm. ", "Honestly! ", "I mean it. ")
