"""Names and relations in English, sentences around facts, and talk that is worth nothing.

Only data; see `forms`.
"""

from __future__ import annotations

from memograd.data.lifelog.english.attributes import CITIES, HOBBIES, JOBS, LIKES
from memograd.data.lifelog.forms import Forms, Frames, Parts, Role, Said, Trifle

WOMEN = Forms(
    (
        "Ann", "Mary", "Olivia", "Priya", "Carmen", "Ingrid", "Leila", "Rosa", "Hannah", "Mei",
        "Fiona", "Zoe", "Nadia", "Grace", "Elena", "Amara", "Judith", "Tessa", "Bianca", "Yuki",
        "Sofia", "Agnes", "Daria", "Colette",
    ),
    ("Clara", "Noor", "Beatrice", "Kira", "Matilda", "Renata", "Sunita", "Wendy", "Esther", "Luz",
     "Vera", "Marisol"),
)  # fmt: skip
MEN = Forms(
    (
        "Tom", "Carlos", "Henry", "Omar", "Jakob", "Ravi", "Victor", "Sean", "Marco", "Felix",
        "Pedro", "Anton", "Kofi", "Hugo", "Daniel", "Ivan", "Leon", "Yusuf", "Simon", "Akira",
        "Gareth", "Emil", "Bruno", "Walter",
    ),
    ("Oscar", "Nikolai", "Desmond", "Elias", "Tariq", "Julian", "Mateo", "Owen", "Stefan", "Basil",
     "Kenji", "Rufus"),
)  # fmt: skip
PETS = Forms(
    ("Biscuit", "Pepper", "Luna", "Waffles", "Shadow", "Ginger", "Pickles", "Rocket", "Mochi",
        "Hazel",
     "Cleo", "Ziggy"),
    ("Nacho", "Tilly", "Domino", "Pumpkin", "Figaro", "Olive"),
)  # fmt: skip
ROLES = (
    Role("sister", "adult", "f"), Role("brother", "adult", "m"), Role("mother", "adult", "f"),
    Role("father", "adult", "m"), Role("cousin", "adult"), Role("colleague", "adult"),
    Role("neighbour", "adult"), Role("best friend", "adult"), Role("roommate", "adult"),
    Role("aunt", "adult", "f"), Role("uncle", "adult", "m"), Role("daughter", "child", "f"),
    Role("son", "child", "m"), Role("niece", "child", "f"), Role("nephew", "child", "m"),
    Role("dog", "pet"), Role("cat", "pet"), Role("rabbit", "pet"), Role("parrot", "pet"),
)  # fmt: skip


FRAMES = Frames(
    said=Forms(
        (
            "By the way, {clause}.",
            "You should know that {clause}.",
            "Did I mention that {clause}?",
            "News from my side: {clause}.",
            "Oh, and {clause}.",
        ),
        (
            "Just so you know, {clause}.",
            "What I meant to tell you is that {clause}.",
            "Funny, I never said that {clause}.",
        ),
    ),
    text=Forms(
        (
            "{speaker} said that {clause}.",
            "{speaker} mentioned that {clause}.",
            "According to {speaker}, {clause}.",
            "{speaker} says that {clause}.",
        ),
        ("{speaker} let it be known that {clause}.", "From {speaker}: {clause}."),
    ),
    hidden=Forms(
        (
            "What a week, I am worn out and the dishes are still waiting.",
            "The bus was late again and I stood in the rain for ages.",
            "Sorry for the late reply, my inbox is a jungle.",
            "I could sleep for three days.",
            "Ha, you always make me laugh.",
            "I finally tidied up the kitchen, that took half the day.",
            "The neighbours are drilling again, I can hardly hear myself think.",
            "Coffee first, then the world.",
        ),
        (
            "Today has been one of those days, nothing went to plan.",
            "I am sitting by the window with a cup of tea.",
            "My phone nearly died in the middle of the street.",
            "Goodness, how time flies.",
        ),
    ),
    again=Forms(
        ("As I said, {clause}.", "I think I told you, {clause}.", "Well, you know, {clause}."),
        ("Like I told you before, {clause}.", "You may remember, {clause}."),
    ),
    corrected=Parts(
        (
            Said("No wait, I got that wrong: {clause}.", "{speaker} corrected this: {clause}."),
            Said(
                "Sorry, I mixed something up. In fact {clause}.",
                "{speaker} had mixed something up, in fact {clause}.",
            ),
            Said("Correction, not {old}: {clause}.", "It is not {old}, as said before: {clause}."),
            Said(
                "Hang on, I said {old}, but {clause}.", "Not {old}, a slip of the tongue: {clause}."
            ),
        ),
        (
            Said("Scratch that, {clause}.", "{speaker} took back what was just said, {clause}."),
            Said(
                "My mistake, {old} was nonsense, {clause}.",
                "{old} was {speaker}'s mistake, actually {clause}.",
            ),
        ),
    ),
    hearsay=Parts(
        (
            Said(
                "{gossip} keeps telling everyone that {clause}, which is not true.",
                "{gossip} keeps telling everyone that {clause}, which is not true.",
            ),
            Said(
                "There is a silly rumour that {clause}. Don't believe it.",
                "There is a false rumour that {clause}.",
            ),
            Said(
                "{gossip} thinks that {clause}, but always gets such things wrong.",
                "{gossip} wrongly thinks that {clause}.",
            ),
            Said(
                "I heard from {gossip} that {clause}, but nobody could confirm it.",
                "{gossip} claimed that {clause}, which nobody confirmed.",
            ),
        ),
        (
            Said(
                "Would you believe it, {gossip} swore that {clause}. Complete nonsense.",
                "{gossip} swore that {clause}, complete nonsense.",
            ),
            Said(
                "{gossip} must have dreamt that {clause}.",
                "{gossip} must have dreamt that {clause}, says {speaker}.",
            ),
        ),
    ),
    gossip=Forms(
        (
            "someone at the bakery",
            "the man from the kiosk",
            "an old classmate",
            "the hairdresser",
            "a guy at the party",
            "the caretaker",
        ),
        ("the woman from downstairs", "some colleague's brother", "the taxi driver"),
    ),
    forget_topic=Parts(
        (
            Said("Please forget {topic}.", "{speaker} asked to forget {topic}."),
            Said(
                "Please delete {topic} from all you know.",
                "{speaker} asked to delete {topic} from what is known.",
            ),
            Said(
                "Could you erase what I told you about {topic}?",
                "{speaker} asked to erase what was said about {topic}.",
            ),
        ),
        (
            Said("Strike {topic} from your notes, please.", "{speaker} wants {topic} struck off."),
            Said(
                "I would rather you did not remember {topic}.",
                "{speaker} does not want {topic} to be remembered.",
            ),
        ),
    ),
    forget_clause=Parts(
        (
            Said("Please forget that {clause}.", "{speaker} asked to forget that {clause}."),
            Said(
                "I should not have told you that {clause}. Delete it, please.",
                "{speaker} asked to delete the fact that {clause}.",
            ),
        ),
        (
            Said(
                "Do me a favour and don't remember that {clause}.",
                "{speaker} does not want it remembered that {clause}.",
            ),
        ),
    ),
    introduced=Forms(
        (
            "{whose} {role} is named {name}",
            "{whose} {role} is called {name}",
            "the name of {whose} {role} is {name}",
        ),
        ("{name} is {whose} {role}", "{whose} {role} goes by the name of {name}"),
    ),
    ask_name=Forms(
        ("What is the name of {whose} {role}?", "What is {whose} {role} called?"),
        ("By what name does {whose} {role} go?",),
    ),
    ask_both=Forms(("{one} And {two}",), ("{one} Besides, {two}",)),
    ask_first=Forms(
        ("What happened first, {one} or {two}?",), ("Which was earlier, {one} or {two}?",)
    ),
)

_TRAIN_TALK = (
    Said("Good morning! How did you sleep?", "{speaker} asked how the night had been.",
        either=True),
    Said("Haha, same here!", "{speaker}: Haha, same here!", either=True),
    Said("How was your weekend?", "{speaker} asked how the weekend was.", either=True),
    Said("That sounds lovely, I'm happy for you.", "{speaker} found that lovely.", either=True),
    Said("Can you recommend a good film?", "{speaker} asked for a film recommendation."),
    Said("Thanks a lot, that helps me.", "{speaker} said thanks."),
    Said("What do you think I should cook tonight?", "{speaker} asked what to cook tonight."),
    Said("Do you know what the weather will be like?", "{speaker} asked about the weather."),
    Said("I can't believe it is nearly the weekend.",
        "{speaker} is surprised it is nearly weekend.", either=True),
    Said("Let's talk about something more cheerful.", "{speaker} wants to change the subject."),
    Said("Wow, really?", "{speaker}: Wow, really?", either=True),
    Said("Talk to you soon!", "{speaker} said goodbye.", either=True),
    Said("Could you explain how compound interest works?", "{speaker} asked to explain interest."),
    Said("Tell me a joke, will you?", "{speaker} wanted to hear a joke."),
    Said("Hm, let me think about that for a while.", "{speaker} wants to think about it."),
    Said("How many cups are there in a litre?", "{speaker} asked how many cups make a litre."),
    Said("Some people are just impossible.", "{speaker}: Some people are just impossible."),
    Said("I wonder what it is like to be {v}.", "{speaker} wonders what it is like to be {v}.",
         tuple(f"a {job}" if job[0] not in "aeio" else f"an {job}" for job in JOBS)),
    Said("Is {v} worth a visit, what do you think?",
        "{speaker} asked whether {v} is worth a visit.", CITIES),
    Said("Imagine living in {v}, wouldn't that be something?",
        "{speaker} daydreamed about living in {v}.", CITIES),
    Said("Do you know anybody who does {v}?", "{speaker} asked who does {v}.", HOBBIES),
    Said("What do people see in {v}, anyway?", "{speaker} asked what people see in {v}.", LIKES),
    Said("My horoscope says I will move to {v}, how silly.",
        "{speaker} laughed about a horoscope that promised a move to {v}.", CITIES),
    Said("If I won the lottery I would take a year off.",
        "{speaker} would take a year off after a lottery win."),
    Said("Remind me, what were we talking about?", "{speaker} asked what the talk had been about.",
        either=True),
    Said("Fingers crossed!", "{speaker}: Fingers crossed!", either=True),
    Said("Could you translate 'thank you' into Italian for me?",
        "{speaker} asked for a translation into Italian."),
    Said("Write me a short poem about the sea, please.",
        "{speaker} asked for a poem about the sea."),
    Said("You are right, I should not worry so much.", "{speaker} agreed not to worry so much."),
    Said("I read that {v} is a very old city.", "{speaker} read that {v} is a very old city.",
        CITIES),
)  # fmt: skip
_TEST_TALK = (
    Said("Hello again, how are things?", "{speaker} asked how things are.", either=True),
    Said("Oh my, you can say that again.", "{speaker}: Oh my, you can say that again.",
        either=True),
    Said("Any plans for the evening?", "{speaker} asked about plans for the evening.", either=True),
    Said("Which podcast would you suggest for a long drive?",
        "{speaker} asked for a podcast suggestion."),
    Said("Much appreciated!", "{speaker}: Much appreciated!", either=True),
    Said("How do I get red wine out of a shirt?", "{speaker} asked how to remove a wine stain."),
    Said("See you next time, take care.", "{speaker} said farewell.", either=True),
    Said("I suppose everyone has days like that.",
        "{speaker}: I suppose everyone has days like that.", either=True),
    Said("What would it take to become {v}, I ask myself.", "{speaker} mused about becoming {v}.",
         tuple(f"a {job}" if job[0] not in "aeio" else f"an {job}" for job in JOBS)),
    Said("Is it true that it rains a lot in {v}?", "{speaker} asked whether it rains a lot in {v}.",
        CITIES),
    Said("Isn't {v} frightfully expensive?", "{speaker} asked whether {v} is expensive.", HOBBIES),
    Said("Somebody ought to write a song about {v}.",
        "{speaker} thinks somebody should write a song about {v}.", LIKES),
    Said("In another life I would have been born in {v}.",
        "{speaker} imagined having been born in {v}.", CITIES),
    Said("How tall is the Eiffel Tower?", "{speaker} asked for the height of the Eiffel Tower."),
    Said("Make me a list of five easy soups, please.", "{speaker} asked for five soups."),
    Said("No idea, to be honest.", "{speaker}: No idea, to be honest.", either=True),
)  # fmt: skip

SMALL_TALK = Parts(_TRAIN_TALK, _TEST_TALK)

FOODS = (
    "a cheese sandwich", "lentil soup", "leftover pasta", "a tuna salad", "two bananas",
    "fried rice",
    "a bagel", "tomato soup", "an omelette", "cold pizza", "a burrito", "noodles",
)  # fmt: skip
SHOWS = (
    "a quiz show", "an old western", "the news", "a cooking show", "a football match",
    "a nature film", "half a detective film", "cartoons", "a talk show",
)  # fmt: skip

TRIFLES = Parts(
    (
        Trifle("{who} had {v} for lunch today", FOODS),
        Trifle("it rained all morning where {who} was"),
        Trifle("{who} watched {v} last night", SHOWS),
        Trifle("{who} missed the bus this morning"),
        Trifle("{who} [am|is] a bit tired today"),
        Trifle("{who} had to queue for twenty minutes at the post office"),
        Trifle("{who} had three cups of coffee before noon"),
        Trifle("{who} spilled some milk on the table"),
        Trifle("{who} waited ages for the elevator today"),
        Trifle("{who} just ate {v}", FOODS),
        Trifle("the traffic was dreadful when {who} went home"),
        Trifle("{who} slept in this morning"),
    ),
    (
        Trifle("{who} ate {v} on the go today", FOODS),
        Trifle("it was windy when {who} went out"),
        Trifle("{who} fell asleep in front of {v}", SHOWS),
        Trifle("{who} stubbed a toe on the door today"),
        Trifle("{who} ran out of milk this morning"),
        Trifle("{who} [have|has] been yawning all day"),
    ),
)
