"""How people tell of what happened to them in English. Only data; see `forms`.

An event is told once with its day (`{when}`), its value and one detail, which `ask_more` asks for.
"""

from __future__ import annotations

from memograd.data.lifelog.forms import Forms, FormWording

COMPANIONS = (
    "an old schoolmate", "two colleagues", "the neighbours", "a cousin", "the choir",
    "a friend from university", "the whole family", "nobody else", "an aunt",
)  # fmt: skip

EVENTS: dict[str, FormWording] = {
    "visit": FormWording(
        pool=(
            "Krakow", "Edinburgh", "Bruges", "Siena", "Tallinn", "Chicago", "Seville", "Heidelberg",
            "Quebec", "Ljubljana", "Avignon", "Bath", "Dubrovnik", "Kyoto", "Santa Fe", "Riga",
            "Nantes", "York", "Granada", "Trieste", "Malmö",
        ),
        details=COMPANIONS,
        tell=Forms(
            (
                "{who} came back {when} from a trip to {v} with {d}",
                "{who} travelled to {v} {when} with {d}",
                "{when} {who} set off for {v} with {d}",
            ),
            ("{who} was in {v} {when} together with {d}",),
        ),
        noun=Forms(("{whose} trip to {v}",), ("{whose} days in {v}",)),
        ask=Forms(("Which trip did {who} make on {day}?",), ("Which city was {who} in on {day}?",)),
        ask_more=Forms(
            ("Who went along on {whose} trip to {v}?",), ("In whose company did {who} see {v}?",)
        ),
        ask_when=Forms(("When was {whose} trip to {v}?",),
            ("What was the date when {who} was in {v}?",)),
    ),
    "check_up": FormWording(
        pool=(
            "a swollen ankle", "a stubborn cough", "a strange mole", "dizzy spells",
            "an ear infection",
            "knee pain", "a rash", "a stiff neck", "heartburn", "a toothache", "blurred vision",
            "a sprained wrist", "chest tightness", "hip pain", "a burning throat",
        ),
        details=(
            "to rest for a week", "to drink more water", "to get an MRI", "to take antibiotics",
            "to come back in a month", "to do stretching exercises", "to avoid sugar",
            "to see a specialist", "to use a cream",
        ),
        tell=Forms(
            (
                "{who} went to the doctor {when} because of {v} and was told {d}",
                "{who} had {v} looked at {when}, and the doctor's advice was {d}",
            ),
            ("because of {v}, {who} saw a doctor {when}, who advised {him} {d}",),
        ),
        noun=Forms(("{whose} doctor's visit because of {v}",),
            ("the day {v} took {who} to a doctor",)),
        ask=Forms(("Why did {who} see the doctor on {day}?",),
            ("What was the reason for {whose} doctor's visit on {day}?",)),
        ask_more=Forms(
            ("What did the doctor tell {who} to do about {v}?",),
            ("What was the advice for {whose} {v}?",)
        ),
        ask_when=Forms(("When did {who} see a doctor because of {v}?",),
            ("On which date was {who} examined for {v}?",)),
    ),
    "concert": FormWording(
        pool=(
            "the Velvet Otters", "Luna Parade", "the Brass Monks", "Silent Harbour", "Mira Delgado",
            "the Paper Kites Choir", "Northern Static", "the Cellar Quartet", "Ola & the Owls",
            "Copper Rain", "the Tin Whistles", "Blue Hour Trio", "Static Garden", "Ivy Marlowe",
            "the Lantern Orchestra",
        ),
        details=(
            "the town hall", "the open-air stage", "the jazz cellar", "the old brewery",
            "the cathedral",
            "the harbour festival", "the university", "the opera house", "the city park",
        ),
        tell=Forms(
            (
                "{who} went to a concert of {v} at {d} {when}",
                "{who} heard {v} play at {d} {when}",
            ),
            ("{when} {who} saw {v} live at {d}",),
        ),
        noun=Forms(("{whose} evening with {v}",), ("the concert of {v} that {who} went to",)),
        ask=Forms(("Whose concert did {who} go to on {day}?",),
            ("Which act did {who} see live on {day}?",)),
        ask_more=Forms(("Where did {who} hear {v}?",),
            ("At which venue was {who} when {v} played?",)),
        ask_when=Forms(("When did {who} go to the concert of {v}?",),
            ("On what day did {who} see {v}?",)),
    ),
    "purchase": FormWording(
        pool=(
            "a bread machine", "a telescope", "a leather jacket", "a rowing machine", "a rug",
            "noise-cancelling headphones", "a folding bike", "an armchair", "a tent",
            "a sewing machine",
            "a record player", "hiking boots", "an espresso machine", "a wardrobe", "a projector",
            "a raincoat", "a toaster oven", "a hammock",
        ),
        details=("$40", "$120", "$65", "$310", "$89", "$540", "$25", "$199", "$750"),
        tell=Forms(
            ("{who} bought {v} for {d} {when}", "{when} {who} treated {self} to {v} for {d}"),
            ("{who} paid {d} for {v} {when}",),
        ),
        noun=Forms(("{whose} purchase of {v}",), ("the day {who} paid for {v}",)),
        ask=Forms(("What did {who} buy on {day}?",), ("Which purchase did {who} make on {day}?",)),
        ask_more=Forms(("How much did {who} pay for {v}?",),
            ("What was the price of {v} that {who} bought?",)),
        ask_when=Forms(("When did {who} buy {v}?",),
            ("What was the date when {who} purchased {v}?",)),
    ),
    "dinner": FormWording(
        pool=(
            "an old flame", "the new neighbours", "a former teacher", "Uncle Bernard", "the band",
            "a pen friend from Chile", "the running group", "a retired judge", "the landlord",
            "a cousin from Canada", "two exchange students", "the godparents",
        ),
        details=(
            "the Thai place", "a rooftop bar", "the pizzeria on the corner", "a sushi bar",
            "the old mill", "a steakhouse", "the market hall", "a Lebanese restaurant", "the pier",
        ),
        tell=Forms(
            ("{who} had dinner with {v} at {d} {when}", "{who} met {v} for dinner {when} at {d}"),
            ("{when} {who} dined with {v} at {d}",),
        ),
        noun=Forms(("{whose} dinner with {v}",), ("the evening {who} dined with {v}",)),
        ask=Forms(("Who did {who} have dinner with on {day}?",),
            ("Who was at the table with {who} on {day}?",)),
        ask_more=Forms(("Where did {who} have dinner with {v}?",),
            ("In which place did {who} dine with {v}?",)),
        ask_when=Forms(("When did {who} have dinner with {v}?",),
            ("What day did {who} dine with {v}?",)),
    ),
    "injury": FormWording(
        pool=(
            "a broken wrist", "a concussion", "a torn ligament", "a cut on the thumb",
            "a bruised rib",
            "a dislocated shoulder", "a burnt hand", "a broken toe", "a black eye",
            "a chipped tooth",
            "a pulled hamstring", "a twisted knee",
        ),
        details=(
            "skiing", "moving a sofa", "playing football", "falling off a ladder", "cooking",
            "slipping on ice", "a bike crash", "jumping off a wall", "wrestling with the dog",
        ),
        tell=Forms(
            ("{who} got {v} from {d} {when}", "{when} {who} ended up with {v} from {d}"),
            ("{who} suffered {v} {when}, caused by {d}",),
        ),
        noun=Forms(("{whose} injury, {v}",), ("the day {who} suffered {v}",)),
        ask=Forms(("What injury did {who} get on {day}?",), ("What did {who} suffer on {day}?",)),
        ask_more=Forms(("How did {who} get {v}?",),
            ("What was the cause of {whose} injury, {v}?",)),
        ask_when=Forms(("When did {who} get {v}?",), ("On which day did {who} suffer {v}?",)),
    ),
    "interview": FormWording(
        pool=(
            "the aquarium", "Halden Bank", "the radio station", "a law firm",
            "the botanical garden",
            "Kite Robotics", "the national archive", "a bakery chain", "the airport",
            "Solis Energy",
            "a toy museum", "the tourist office",
        ),
        details=(
            "very well", "badly", "better than expected", "so-so", "terribly", "smoothly",
            "rather stiffly", "brilliantly", "unevenly",
        ),
        tell=Forms(
            ("{who} had a job interview at {v} {when} and it went {d}",),
            ("{who} was interviewed for a post at {v} {when}, which went {d}",),
        ),
        noun=Forms(("{whose} interview at {v}",), ("the talk {who} had at {v}",)),
        ask=Forms(("Where did {who} have a job interview on {day}?",),
            ("Who invited {who} to an interview on {day}?",)),
        ask_more=Forms(("How did {whose} interview at {v} go?",),
            ("What was the outcome of {whose} talk at {v}?",)),
        ask_when=Forms(("When was {whose} interview at {v}?",),
            ("What day was {who} interviewed at {v}?",)),
    ),
    "gift": FormWording(
        pool=(
            "a silk scarf", "a pocket watch", "concert tickets", "a cactus", "a chess set",
            "a handmade quilt", "a fountain pen", "a puzzle", "a ukulele", "a tea set",
            "a signed poster", "a kite", "a cookbook", "a snow globe", "a photo book",
        ),
        details=(
            "a grandmother", "the boss", "a secret admirer", "the godfather", "the class",
            "an aunt",
            "a neighbour", "the team", "an exchange student",
        ),
        tell=Forms(
            ("{who} was given {v} by {d} {when}", "{who} got {v} as a present from {d} {when}"),
            ("{when} {who} unwrapped {v}, a gift from {d}",),
        ),
        noun=Forms(("{whose} present, {v}",), ("the day {who} unwrapped {v}",)),
        ask=Forms(("What present did {who} get on {day}?",),
            ("Which gift did {who} unwrap on {day}?",)),
        ask_more=Forms(("Who gave {v} to {who}?",),
            ("Where did {v} that {who} was given come from?",)),
        ask_when=Forms(("When was {who} given {v}?",), ("On what date did {who} receive {v}?",)),
    ),
    "lost": FormWording(
        pool=(
            "a wallet", "an umbrella", "a library card", "a silver ring", "a gym bag", "a scarf",
            "a camera", "an earring", "a bicycle helmet", "a notebook", "a house key", "a hat",
        ),
        details=(
            "on the tram", "at the cinema", "in the park", "at the airport", "on the beach",
            "in a taxi", "at the supermarket", "in the changing room", "at the library",
        ),
        tell=Forms(
            ("{who} lost {v} {d} {when}", "{when} {who} left {v} {d} and never got it back"),
            ("{who} noticed {when} that {v} had gone missing {d}",),
        ),
        noun=Forms(("the loss of {v} by {who}",), ("the day {v} of {whose} disappeared",)),
        ask=Forms(("What did {who} lose on {day}?",),
            ("Which thing of {whose} went missing on {day}?",)),
        ask_more=Forms(("Where did {who} lose {v}?",),
            ("At which place did {whose} loss of {v} happen?",)),
        ask_when=Forms(("When did {who} lose {v}?",),
            ("On which day did {v} of {whose} go missing?",)),
    ),
    "exam": FormWording(
        pool=(
            "the first-aid course", "the theory test", "the French exam", "the sailing licence",
            "the maths resit", "the wine seminar", "the fishing licence", "the coding bootcamp",
            "the accounting course", "the diving certificate", "the piano exam", "the bar exam",
        ),
        details=("with distinction", "just barely", "at the second try", "with full marks",
                 "with a B", "without preparing"),
        tell=Forms((), ("{who} passed {v} {d} {when}", "{when} {who} got through {v} {d}")),
        noun=Forms((), ("{whose} success in {v}",)),
        ask=Forms((), ("Which exam or course did {who} pass on {day}?",)),
        ask_more=Forms((), ("How did {who} pass {v}?",)),
        ask_when=Forms((), ("When did {who} pass {v}?",)),
    ),
    "repair": FormWording(
        pool=(
            "the boiler", "the roof", "the washing machine", "the garden gate", "the fridge",
            "the bathroom tap", "the front door", "the doorbell", "the dishwasher", "the radiator",
            "the chimney", "the blinds",
        ),
        details=("$60", "$210", "$95", "$430", "$150", "$75"),
        tell=Forms((), ("{who} had {v} repaired for {d} {when}",
            "{when} {who} got {v} fixed, which cost {d}")),
        noun=Forms((), ("{whose} repair of {v}",)),
        ask=Forms((), ("What did {who} have repaired on {day}?",)),
        ask_more=Forms((), ("How much did {whose} repair of {v} cost?",)),
        ask_when=Forms((), ("When did {who} have {v} repaired?",)),
    ),
}  # fmt: skip
