"""How people tell of their lives in English: the lasting attributes. Only data; see `forms`.

Invariant: every form of a value names it, so that its text answers the question.
"""

from __future__ import annotations

from memograd.data.lifelog.forms import Forms, FormWording

JOBS = (
    "nurse", "plumber", "translator", "pastry chef", "bus driver", "librarian", "physiotherapist",
    "data analyst", "primary school teacher", "electrician", "florist", "tax adviser",
    "graphic designer", "paramedic", "beekeeper", "sound engineer", "notary", "tailor",
    "museum guide", "software tester", "carpenter", "real estate agent", "speech therapist",
    "warehouse manager", "journalist", "optician", "security guard", "landscape gardener",
    "pharmacist", "tram conductor",
)  # fmt: skip
CITIES = (
    "Boston", "Lisbon", "Gdansk", "Leeds", "Portland", "Valencia", "Utrecht", "Denver", "Galway",
    "Bergen", "Austin", "Turin", "Lyon", "Halifax", "Graz", "Bristol", "Tampere", "Savannah",
    "Porto", "Zagreb", "Ghent", "Duluth", "Cork", "Aarhus", "Tucson", "Brno", "Lille", "Perth",
    "Bilbao", "Salzburg",
)  # fmt: skip
STREETS = (
    "14 Elm Street", "7 Harbour Lane", "233 Maple Avenue", "58 Mill Road", "9 Chapel Close",
    "120 Orchard Way", "41 Station Road", "6 Birch Court", "77 King's Walk", "312 Lakeside Drive",
    "25 Baker's Hill", "18 Quarry Street", "3 Willow Green", "64 Abbey Road", "205 Juniper Terrace",
    "11 Fountain Square", "92 Ridge Avenue", "36 Tannery Row",
)  # fmt: skip
COMPANIES = (
    "Northgate Clinic", "Bluefin Foods", "the Harper Institute", "Castle & Sons", "Meridian Labs",
    "the city council", "Larkspur Media", "Oakfield Primary", "Tern Logistics", "Vega Studios",
    "the Old Town Theatre", "Pinewood Hospital", "Sable Insurance", "Orbit Software",
    "the Riverside Centre",
)  # fmt: skip
DOCTORS = (
    "Dr. Okafor", "Dr. Lindqvist", "Dr. Moreau", "Dr. Patel", "Dr. Novak", "Dr. Haddad",
    "Dr. Castellano", "Dr. Yamada", "Dr. Petrov", "Dr. Brandt", "Dr. O'Leary", "Dr. Silva",
    "Dr. Kowalski", "Dr. Amari", "Dr. Whitfield",
)  # fmt: skip
PLACES = (
    "Iceland", "Crete", "Morocco", "Madeira", "Vietnam", "Scotland", "Sicily", "Japan",
    "the Azores", "Norway", "Peru", "Slovenia", "Malta", "Costa Rica", "Georgia", "Corsica",
    "New Zealand", "Sardinia",
)  # fmt: skip
MONTHS_AHEAD = (
    "in spring", "in early summer", "over Easter", "in the autumn holidays", "between Christmas"
    " and New Year", "in late August",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
COURSES = (
    "pottery", "salsa", "piano", "drawing", "fencing", "swimming", "guitar", "ballet", "judo",
    "photography", "violin", "cooking", "chess", "tap dance", "cello", "archery", "sewing",
    "singing", "horse riding", "karate", "saxophone",
)  # fmt: skip
GYMS = (
    "Iron Works", "Pulse Fitness", "the Riverside Gym", "Core Club", "Gravity Boulders",
    "the YMCA", "Flex Factory", "Summit Fitness", "the Boxing Loft", "Aqua Gym", "Tempo Studio",
    "Kettle House",
)  # fmt: skip
LIKES = (
    "jazz", "spicy food", "old maps", "thunderstorms", "crime novels", "black-and-white films",
    "mango ice cream", "long train rides", "board games", "opera", "roller coasters", "lemonade",
    "musicals", "flea markets", "sour candy", "country music", "science fiction", "ginger tea",
    "wildflowers", "stand-up comedy", "vintage cars", "blue cheese", "street art", "trivia nights",
    "snow", "marzipan", "detective shows", "lavender", "techno", "documentaries",
)  # fmt: skip
DISLIKES = (
    "cilantro", "phone calls", "crowded shops", "horror films", "early mornings", "olives",
    "surprise parties", "scented candles", "heat waves", "reality shows", "raisins", "loud music",
    "airports", "mushrooms", "small talk", "liquorice", "video calls", "wool sweaters", "elevators",
    "fireworks", "karaoke", "cold soup", "clowns", "stuffy rooms",
)  # fmt: skip
ALLERGIES = (
    "peanuts", "shellfish", "penicillin", "cat hair", "birch pollen", "bee stings", "latex",
    "strawberries", "dust mites", "sesame", "ibuprofen", "kiwi", "soy", "eggs", "grass pollen",
    "walnuts", "nickel", "mustard", "celery", "mould", "aspirin",
)  # fmt: skip
HOBBIES = (
    "birdwatching", "bouldering", "baking bread", "knitting", "rowing", "restoring furniture",
    "astronomy", "model trains", "kite surfing", "calligraphy", "geocaching", "beach volleyball",
    "origami", "trail running", "stamp collecting", "woodcarving", "badminton", "gardening",
    "ice skating", "quilting", "magic tricks", "canoeing", "juggling", "coin collecting",
)  # fmt: skip

ATTRIBUTES: dict[str, FormWording] = {
    "job": FormWording(
        pool=JOBS,
        details=COMPANIES,
        tell=Forms(
            (
                "{who} [work|works] as {a_v}",
                "{who} [am|is] {a_v} by profession",
                "{who} [make|makes] {his} living as {a_v}",
                "{whose} job is being {a_v}",
            ),
            ("{who} [earn|earns] {his} money as {a_v}", "professionally, {who} [am|is] {a_v}"),
        ),
        change=Forms(
            (
                "{who} [work|works] as {a_v} now",
                "{who} switched jobs {when} and [am|is] {a_v} now",
                "{who} quit being {a_old} and [have|has] become {a_v}",
                "{who} started a new job as {a_v} {when}",
            ),
            (
                "{who} changed careers {when}, from {old} to {v}",
                "{who} [have|has] been hired as {a_v} and left the old job",
            ),
        ),
        more=Forms(
            ("{who} [work|works] as {a_v} at {d}", "{whose} job as {a_v} is with {d}"),
            ("it is at {d} that {who} [work|works] as {a_v}",),
        ),
        ask=Forms(
            (
                "What does {who} do for work?",
                "What is {whose} job?",
                "What does {who} work as?",
            ),
            ("What is {whose} profession?", "How does {who} earn a living?"),
        ),
        ask_more=Forms(("Where does {who} work?",), ("Who is {whose} employer?",)),
        ask_when=Forms(
            ("When did {who} change jobs?",), ("On which day did {who} start working as {a_v}?",)
        ),
        ask_before=Forms(
            ("What was {whose} job before becoming {a_v}?",),
            ("What did {who} work as before the current job?",),
        ),
        topic=Forms(("what {who} [do|does] for work",), ("{whose} profession",)),
    ),
    "home": FormWording(
        pool=CITIES,
        tell=Forms(
            (
                "{who} [live|lives] in {v}",
                "{whose} home is in {v}",
                "{who} [have|has] a flat in {v}",
            ),
            ("{v} is where {who} [live|lives]", "{who} [reside|resides] in {v}"),
        ),
        change=Forms(
            (
                "{who} [live|lives] in {v} now",
                "{who} moved to {v} {when}",
                "{who} [have|has] left {old} and moved to {v}",
                "{who} moved from {old} to {v} {when}",
            ),
            (
                "{who} relocated to {v} {when}",
                "{whose} new home is in {v}, no longer in {old}",
            ),
        ),
        ask=Forms(
            ("Where does {who} live?", "In which city does {who} live?", "Where is {whose} home?"),
            ("What city does {who} reside in?", "Which place does {who} call home?"),
        ),
        ask_when=Forms(("When did {who} move to {v}?",), ("What was the day of {whose} move?",)),
        ask_before=Forms(
            ("Where did {who} live before moving to {v}?",),
            ("Which city did {who} leave for {v}?",)
        ),
        topic=Forms(("where {who} [live|lives]",), ("which city {who} [am|is] living in",)),
    ),
    "address": FormWording(
        pool=STREETS,
        tell=Forms(
            (
                "{whose} address is {v}",
                "{who} [live|lives] at {v}",
                "mail for {whom} goes to {v}",
            ),
            ("parcels reach {whom} at {v}", "{who} can be found at {v}"),
        ),
        change=Forms(
            (
                "{whose} new address is {v}",
                "{who} moved house {when} and [live|lives] at {v}",
                "{who} [have|has] moved from {old} to {v}",
            ),
            ("since {whose} move, the address is {v}", "{who} swapped {old} for {v}"),
        ),
        ask=Forms(
            ("What is {whose} address?", "Which address does {who} live at?"),
            ("Where should a parcel for {who} be sent?", "At what address can {who} be found?"),
        ),
        ask_when=Forms(("When did {who} move house?",)),
        ask_before=Forms(
            ("What was {whose} address before {v}?",), ("What was {whose} previous address?",)
        ),
        topic=Forms(("{whose} address",), ("the address where {who} [live|lives]",)),
    ),
    "diet": FormWording(
        pool=(
            "vegetarian", "vegan", "gluten-free", "low-carb", "kosher", "halal", "dairy-free",
            "low-salt", "sugar-free", "pescatarian", "paleo", "Mediterranean",
        ),
        tell=Forms(
            (
                "{who} [keep|keeps] to a {v} diet",
                "{who} [eat|eats] strictly {v}",
                "{whose} diet is {v}",
            ),
            ("at the table, {who} [am|is] strictly {v}", "{who} [follow|follows] a {v} diet"),
        ),
        change=Forms(
            (
                "{who} switched to a {v} diet {when}",
                "{who} [have|has] given up the {old} diet and [eat|eats] {v} now",
                "{who} [have|has] started to eat {v}",
            ),
            ("{who} went {v} {when}", "instead of {old}, {who} [eat|eats] {v} these days"),
        ),
        ask=Forms(
            ("What diet does {who} follow?", "Which kind of food should be cooked for {who}?"),
            ("What is {whose} diet?", "Does {who} keep to a special diet, and which?"),
        ),
        ask_when=Forms(("When did {who} change {his} diet?",), ("When did {who} go {v}?",)),
        end=Forms(
            ("{who} gave up the {v} diet and [eat|eats] everything again",),
            ("{who} [am|is] off the {v} diet and back to eating anything",),
        ),
        topic=Forms(("{whose} diet",), ("what {who} [eat|eats] and [do|does] not eat",)),
    ),
    "medication": FormWording(
        keys=dict.fromkeys(
            ("blood pressure", "hay fever", "migraines", "asthma", "back pain", "insomnia"),
            (
                "Lortavin", "Medizol", "Braxol", "Tenorin", "Calmeda", "Ventrasol", "Dolamin",
                "Nexidine", "Zolvera", "Prilox", "Sanapir", "Quietal",
            ),
        ),
        details=("every morning", "twice a day", "before going to bed", "with every meal",
                 "every other day", "only when it gets bad"),
        tell=Forms(
            (
                "{who} [take|takes] {v} for {his} {k}",
                "the doctor has put {whom} on {v} for {k}",
                "against {his} {k}, {who} [take|takes] {v}",
            ),
            ("{v} is what {who} [use|uses] against {k}", "{who} [have|has] {v} for {his} {k}"),
        ),
        change=Forms(
            (
                "{who} [take|takes] {v} for {his} {k} now, not {old}",
                "{who} switched from {old} to {v} for {his} {k} {when}",
                "{whose} doctor replaced the old medicine for {k} with {v}",
            ),
            ("for {k}, {who} changed to {v} {when}", "{v} has replaced {old} against {whose} {k}"),
        ),
        more=Forms(
            ("{who} [take|takes] {v} for {his} {k} {d}",),
            ("{v}, {whose} medicine for {k}, has to be taken {d}",),
        ),
        end=Forms(
            (
                "{who} [have|has] stopped taking {v} for {his} {k}",
                "{who} [do|does] not need {v} for {k} any more",
            ),
            ("{who} came off {v}, the {k} is gone",),
        ),
        ask=Forms(
            ("What does {who} take for {k}?", "Which medicine does {who} take against {k}?"),
            ("What medication is {who} on for {k}?",),
        ),
        ask_more=Forms(
            ("When does {who} take {v}?",), ("How often does {who} have to take {v}?",)
        ),
        ask_when=Forms(
            ("When did {who} change the medicine for {k}?",),
            ("On what day did {who} begin with {v}?",),
        ),
        topic=Forms(
            ("which medicine {who} [take|takes] for {k}",), ("{whose} medication for {k}",)
        ),
    ),
    "doctor": FormWording(
        keys=dict.fromkeys(("dentist", "family doctor", "eye doctor", "dermatologist"), DOCTORS),
        tell=Forms(
            (
                "{whose} {k} is {v}",
                "{who} [go|goes] to {v}, {his} {k}",
                "{who} [have|has] a good {k}, {v}",
            ),
            ("as {k}, {who} [see|sees] {v}", "the {k} who looks after {whom} is {v}"),
        ),
        change=Forms(
            (
                "{whose} new {k} is {v}",
                "{who} [have|has] changed {his} {k} from {old} to {v}",
                "{who} found another {k} {when}, {v}",
            ),
            ("{v} is {whose} {k} from now on", "{whose} {k} used to be {old}, now it is {v}"),
        ),
        ask=Forms(
            ("Who is {whose} {k}?", "Which {k} does {who} go to?"),
            ("What is the name of {whose} {k}?",),
        ),
        ask_before=Forms(
            ("Who was {whose} {k} before {v}?",), ("Which {k} did {who} see until the change?",)
        ),
        topic=Forms(("who {whose} {k} is",), ("the name of {whose} {k}",)),
    ),
    "car": FormWording(
        pool=(
            "Volvo", "Fiat Panda", "Toyota Yaris", "Skoda", "Mini", "Subaru", "Renault Zoe",
            "Honda Jazz", "Ford pickup", "Tesla", "Citroen", "Mazda", "Jeep", "Kia", "Saab",
        ),
        details=("dark green", "silver", "bright red", "white", "navy blue", "yellow"),
        tell=Forms(
            ("{who} [drive|drives] a {v}", "{whose} car is a {v}", "{who} [own|owns] a {v}"),
            ("the car in front of {whose} house is {his} {v}", "{who} [get|gets] around in a {v}"),
        ),
        change=Forms(
            (
                "{who} traded the {old} for a {v} {when}",
                "{who} [drive|drives] a {v} now",
                "{whose} new car is a {v}",
            ),
            ("{who} replaced {his} {old} with a {v}", "{who} got a {v} as {his} new car {when}"),
        ),
        more=Forms(
            ("{whose} {v} is {d}", "{who} [drive|drives] a {d} {v}"),
            ("the colour of {whose} {v} is {d}",),
        ),
        end=Forms(
            ("{who} sold {his} {v} and [have|has] no car now",),
            ("{who} gave up the {v} and [do|does] without a car",),
        ),
        ask=Forms(
            ("What car does {who} drive?", "Which car does {who} have?"),
            ("What is {whose} car?",),
        ),
        ask_more=Forms(("What colour is {whose} car?",), ("Which colour does {whose} {v} have?",)),
        ask_when=Forms(("When did {who} get the {v}?",), ("When did {who} change cars?",)),
        topic=Forms(("which car {who} [drive|drives]",), ("{whose} car",)),
    ),
    "commute": FormWording(
        pool=(
            "by bike", "by tram", "on foot", "by bus", "by ferry", "by train", "on a scooter",
            "in a car pool", "by metro", "on inline skates", "by motorbike", "by taxi",
        ),
        tell=Forms(
            ("{who} [get|gets] to work {v}", "{who} usually [commute|commutes] {v}"),
            ("{whose} way to work is done {v}", "most mornings {who} [travel|travels] {v} to work"),
        ),
        change=Forms(
            (
                "{who} [get|gets] to work {v} now, not {old} any more",
                "since the timetable changed, {who} [commute|commutes] {v}",
            ),
            ("these days {who} [go|goes] to work {v} instead of {old}",),
        ),
        ask=Forms(("How does {who} get to work?",), ("How does {who} commute?",)),
    ),
    "study": FormWording(
        pool=(
            "marine biology", "law", "architecture", "nursing", "Spanish literature", "economics",
            "geology", "computer science", "theology", "music history", "civil engineering",
            "psychology", "Chinese medicine", "statistics", "fashion design",
        ),
        tell=Forms(
            (
                "{who} [study|studies] {v} in the evenings",
                "{who} [am|is] enrolled in {v}",
                "{who} [am|is] doing a degree in {v}",
            ),
            ("{v} is {whose} subject at university", "{who} [am|is] at college for {v}"),
        ),
        change=Forms(
            (
                "{who} changed {his} subject from {old} to {v}",
                "{who} [have|has] switched to a degree in {v} {when}",
            ),
            ("{who} dropped {old} and [study|studies] {v} instead",),
        ),
        end=Forms(
            ("{who} [have|has] dropped out of {his} {v} degree",
                "{who} broke off {his} {v} studies"),
            ("{who} [have|has] left university without finishing {v}",),
        ),
        ask=Forms(
            ("What does {who} study?", "Which degree is {who} doing?"),
            ("What is {whose} subject at university?",),
        ),
        ask_before=Forms(
            ("What did {who} study before {v}?",), ("Which subject did {who} give up for {v}?",)
        ),
        topic=Forms(("what {who} [study|studies]",), ("{whose} degree",)),
    ),
    "school": FormWording(
        pool=(
            "Oakfield Primary", "St. Bride's School", "the Montessori school", "Hillcrest School",
            "the Waldorf school", "Lakeview Academy", "Parkside School", "the French school",
            "Kingsmead School", "Rosewood Academy", "Beacon School", "Northfield School",
        ),
        details=("third grade", "fifth grade", "first grade", "fourth grade", "second grade",
                 "sixth grade"),
        tell=Forms(
            ("{who} [go|goes] to {v}", "{who} [am|is] a pupil at {v}"),
            ("{whose} school is {v}", "{who} [attend|attends] {v}"),
        ),
        change=Forms(
            (
                "{who} changed schools {when} and [go|goes] to {v} now",
                "{who} [have|has] moved from {old} to {v}, a better school for {him}",
            ),
            ("{who} left {old} and started at {v} {when}",),
        ),
        more=Forms(
            ("{who} [am|is] in {d} at {v}",), ("at {v}, {who} [have|has] just entered {d}",)
        ),
        ask=Forms(
            ("Which school does {who} go to?", "Where does {who} go to school?"),
            ("What is {whose} school?",),
        ),
        ask_more=Forms(("What grade is {who} in?",), ("Which grade does {who} attend?",)),
        ask_when=Forms(("When did {who} change schools?",), ("When did {who} start at {v}?",)),
        topic=Forms(("which school {who} [go|goes] to",), ("the name of {whose} school",)),
    ),
    "lessons": FormWording(
        pool=COURSES,
        tell=Forms(
            (
                "{who} [take|takes] {v} lessons",
                "{who} [have|has] {v} lessons every week",
                "{who} [have|has] signed up for {v} lessons",
            ),
            ("{who} [am|is] learning in a {v} class", "every week {who} [go|goes] to a {v} class"),
        ),
        end=Forms(
            ("{who} [have|has] quit the {v} lessons",
                "{who} [do|does] not go to {v} lessons any more"),
            ("{who} dropped out of the {v} class",),
        ),
        ask=Forms(
            ("Which lessons does {who} take?", "What kind of lessons does {who} have?"),
            ("What classes does {who} attend?",),
        ),
    ),
    "gym": FormWording(
        pool=GYMS,
        tell=Forms(
            ("{who} [work|works] out at {v}", "{who} [am|is] a member of {v}, the gym"),
            ("for exercise {who} [go|goes] to {v}", "{who} [train|trains] at {v}"),
        ),
        change=Forms(
            (
                "{who} changed gyms, from {old} to {v}",
                "{who} joined another gym {when}, {v}",
            ),
            ("{whose} new gym is {v}",),
        ),
        end=Forms(
            ("{who} quit the gym, {v}", "{who} [have|has] cancelled {his} membership at {v}"),
            ("{who} [am|is] no longer a member at {v}, {he} gave up the gym",),
        ),
        ask=Forms(
            ("Which gym does {who} go to?", "Where does {who} work out?"),
            ("What is the name of {whose} gym?",),
        ),
        ask_when=Forms(("When did {who} join {v}?",)),
        topic=Forms(("which gym {who} [go|goes] to",), ("{whose} gym",)),
    ),
    "phone_number": FormWording(
        pool=(
            "555-0142", "555-0178", "555-0103", "555-0119", "555-0166", "555-0131", "555-0190",
            "555-0155", "555-0127", "555-0184", "555-0148", "555-0111", "555-0173", "555-0162",
            "555-0136", "555-0195", "555-0107", "555-0151",
        ),
        tell=Forms(
            ("{whose} phone number is {v}", "{who} can be reached at {v}"),
            ("the number to call {whom} at is {v}", "{whose} mobile is {v}"),
        ),
        change=Forms(
            (
                "{whose} new phone number is {v}",
                "{who} got a new number {when}, {v}",
                "{whose} number is not {old} any more but {v}",
            ),
            ("{whose} number changed to {v}", "{who} should be called at {v}, no longer at {old}"),
        ),
        ask=Forms(
            ("What is {whose} phone number?", "At which number can {who} be reached?"),
            ("What number should be dialled to reach {who}?",),
        ),
        topic=Forms(("{whose} phone number",), ("the number {who} can be called at",)),
    ),
    "code": FormWording(
        keys=dict.fromkeys(
            ("wifi password", "front door code", "alarm code", "locker code", "voicemail PIN"),
            (
                "4711", "8302", "bluewhale9", "1965", "7780", "pancake42", "0419", "tulip77",
                "6254", "3391", "comet18", "2046",
            ),
        ),
        tell=Forms(
            ("{whose} {k} is {v}", "the {k} at {whose} place is {v}"),
            ("{v} is {whose} {k}", "for the record, {whose} {k} reads {v}"),
        ),
        change=Forms(
            (
                "{whose} {k} has been changed to {v}",
                "{whose} {k} is {v} now, {old} no longer works",
                "{who} changed the {k} {when}, it is {v}",
            ),
            ("{who} set a new {k}, {v}", "{who} replaced the {k} {old} with {v}"),
        ),
        ask=Forms(
            ("What is {whose} {k}?", "Which {k} does {who} have?"),
            ("What does {whose} {k} read?",),
        ),
        ask_when=Forms(("When did {who} change the {k}?",)),
        topic=Forms(("{whose} {k}",), ("what {whose} {k} is",)),
    ),
    "place": FormWording(
        keys=dict.fromkeys(
            ("spare key", "passport", "tax folder", "first-aid kit", "camping stove", "sewing kit",
             "old photo albums"),
            (
                "under the blue flowerpot", "in the top desk drawer", "in the cellar",
                "behind the bookshelf", "in the shoe cabinet", "in the garage",
                "in the kitchen cupboard", "under the bed", "in the hall closet", "in the attic",
                "in the green suitcase", "on the wardrobe",
            ),
        ),
        tell=Forms(
            ("{who} [keep|keeps] the {k} {v}", "{whose} {k} can be found {v}"),
            ("{v} is where {who} [keep|keeps] the {k}", "{who} [store|stores] the {k} {v}"),
        ),
        change=Forms(
            (
                "{who} moved the {k}, now it can be found {v}",
                "{who} [keep|keeps] the {k} {v} now and not {old}",
                "{who} put the {k} somewhere else {when}, {v}",
            ),
            ("{whose} {k} went to a new spot, {v}",
                "since {whose} big tidy-up the {k} can be found {v}"),
        ),
        ask=Forms(
            ("Where does {who} keep the {k}?", "Where can {whose} {k} be found?"),
            ("Where did {who} put the {k}?",),
        ),
        topic=Forms(("where {who} [keep|keeps] the {k}",), ("the place of {whose} {k}",)),
    ),
    "appointment": FormWording(
        keys=dict.fromkeys(
            ("dentist appointment", "eye test", "vaccination", "blood test", "haircut",
             "passport appointment", "X-ray", "hearing test"),
            (),
        ),
        tell=Forms(
            (
                "{who} [have|has] {a_k} {v}",
                "{whose} {k} is {v}",
                "there is {a_k} in store for {whom} {v}",
            ),
            ("{a_k} is in {whose} calendar, {v}", "{who} [am|is] due for {a_k} {v}"),
        ),
        change=Forms(
            (
                "{whose} {k} has been moved, it is {v} now",
                "{who} had to put off the {k}, the new date is {v}",
                "{who} rescheduled the {k}, it takes place {v}",
            ),
            ("the practice shifted {whose} {k}, it is going to be {v}",
             "{whose} {k} will not be as planned but {v}"),
        ),
        end=Forms(
            ("{who} [have|has] cancelled the {k}", "{whose} {k} was called off for good"),
            ("{whose} {k} is not going to happen, it was cancelled",),
        ),
        ask=Forms(
            ("For which day is {whose} {k} planned?", "What is the date of {whose} {k}?"),
            ("On what date was {whose} {k} to take place?",),
        ),
    ),
    "trip_plan": FormWording(
        pool=PLACES,
        details=MONTHS_AHEAD,
        tell=Forms(
            (
                "{who} [am|is] planning a trip to {v}",
                "{who} [want|wants] to travel to {v} this year",
                "{whose} next holiday goes to {v}",
            ),
            ("{who} [have|has] set {his} heart on a trip to {v}",
                "{v} is where {who} [am|is] headed on {his} next vacation"),
        ),
        change=Forms(
            (
                "{who} [am|is] going to {v} instead of {old} on {his} next holiday",
                "{whose} travel plans changed, the trip goes to {v}",
            ),
            ("rather than {old}, {who} [have|has] picked {v} for {his} trip",),
        ),
        more=Forms(
            ("{whose} trip to {v} is going to be {d}", "{who} [am|is] travelling to {v} {d}"),
            ("{who} fixed the time for the trip to {v}, it is {d}",),
        ),
        end=Forms(
            ("{who} cancelled the trip to {v} and [stay|stays] at home",),
            ("{whose} holiday in {v} fell through",),
        ),
        ask=Forms(
            ("Where does {who} plan to travel?", "Where is {who} going on the next holiday?"),
            ("What is the destination of {whose} next trip?",),
        ),
        ask_more=Forms(("When is {whose} trip to {v}?",),
            ("At what time of year does {who} travel to {v}?",)),
        topic=Forms(("{whose} travel plans",), ("where {who} [want|wants] to travel",)),
    ),
    "contact": FormWording(
        pool=(
            "by e-mail", "by text message", "by phone after six", "in the morning", "on weekends",
            "through the office", "by voice message", "during lunch break", "only in urgent cases",
            "by letter", "before nine", "on WhatsApp",
        ),
        tell=Forms(
            ("{who} [prefer|prefers] to be contacted {v}", "the best way to reach {whom} is {v}"),
            ("{who} [want|wants] messages to come {v}", "{who} would rather be reached {v}"),
        ),
        change=Forms(
            (
                "from now on {who} [want|wants] to be contacted {v}",
                "{who} [prefer|prefers] to be contacted {v} now, not {old}",
            ),
            ("{who} changed {his} mind and [like|likes] to be reached {v} instead",),
        ),
        ask=Forms(
            ("How does {who} want to be contacted?",), ("What is the best way to reach {who}?",)
        ),
        topic=Forms(("how {who} [want|wants] to be contacted",), ("{whose} contact preference",)),
    ),
    "favourite": FormWording(
        keys={
            "colour": ("teal", "orange", "burgundy", "mint green", "purple", "mustard yellow",
                       "turquoise", "charcoal grey", "coral"),
            "ice cream": ("pistachio", "lemon", "hazelnut", "vanilla", "stracciatella", "coconut",
                          "salted caramel", "cherry", "yoghurt"),
            "restaurant": ("Casa Lupo", "the Golden Wok", "Bistro Marchand", "Taverna Ilios",
                           "the Copper Pot", "Sakura House", "Green Fork", "Café Amsel",
                           "Nonna Pia"),
            "drink": ("oat latte", "apple spritzer", "mint tea", "tonic water", "hot chocolate",
                      "ginger ale", "iced coffee", "tomato juice", "chai"),
            "season": ("spring", "late summer", "autumn", "winter", "early summer", "Advent"),
            "flower": ("peonies", "sunflowers", "tulips", "dahlias", "orchids", "cornflowers",
                       "daffodils", "lilies", "poppies"),
        },
        tell=Forms(
            ("{whose} favourite {k} is {v}", "the {k} that {who} [like|likes] best is {v}"),
            ("no {k} beats {v} in {whose} eyes", "{whose} number one {k} is {v}"),
        ),
        change=Forms(
            (
                "{whose} favourite {k} is {v} now",
                "{who} [have|has] gone off {old}, {his} favourite {k} is {v} these days",
            ),
            ("in place of {old}, {whose} favourite {k} has become {v}",),
        ),
        ask=Forms(
            ("What is {whose} favourite {k}?", "Which {k} does {who} like best?"),
            ("Which is the {k} that {who} loves most?",),
        ),
    ),
    "savings": FormWording(
        pool=(
            "a camper van", "a cello", "a new kitchen", "a sailing boat", "a wedding",
            "a greenhouse",
            "a cargo bike", "a language school year", "a drum kit", "a summer cottage",
            "solar panels", "a piano",
        ),
        tell=Forms(
            ("{who} [am|is] saving up for {v}", "{who} [put|puts] money aside for {v}"),
            ("every month {who} [set|sets] something aside, {his} goal is {v}",),
        ),
        change=Forms(
            ("{who} [am|is] saving up for {v} now instead of {old}",
                "{whose} savings are meant for {v} now"),
            ("the money {who} [save|saves] is no longer for {old} but for {v}",),
        ),
        end=Forms(
            ("{who} gave up saving for {v}",), ("{who} buried the dream of {v} and stopped saving",)
        ),
        ask=Forms(("What is {who} saving for?",),
            ("What does {who} want to buy with {his} savings?",)),
        topic=Forms(("what {who} [am|is] saving for",), ("{whose} savings goal",)),
    ),
    "birthday": FormWording(
        pool=(
            "3 March", "17 July", "29 October", "8 January", "21 May", "12 December", "5 April",
            "26 August", "14 February", "30 June", "19 September", "2 November", "11 May",
            "24 March", "7 October", "16 January", "28 July", "9 September",
        ),
        tell=Forms(
            ("{whose} birthday is on {v}", "{who} [have|has] {his} birthday on {v}"),
            ("{who} [celebrate|celebrates] {his} birthday on {v}", "{who} was born on {v}"),
        ),
        ask=Forms(
            ("When is {whose} birthday?", "On which day does {who} have a birthday?"),
            ("What day was {who} born on?",),
        ),
        topic=Forms(("{whose} birthday",), ("the day {who} was born",)),
    ),
    "team": FormWording(
        pool=(
            "the Harbour Hawks", "Rovers United", "the Silver Foxes", "the Dockers",
            "City Athletic",
            "the Red Comets", "the Night Owls", "Valley Rangers", "the Ice Bears", "Port Wanderers",
            "the Tigers", "Albion",
        ),
        tell=Forms(
            ("{who} [support|supports] {v}", "{who} [am|is] a fan of {v}"),
            ("{whose} team is {v}", "{whose} heart beats for {v}"),
        ),
        change=Forms(
            ("{who} [am|is] a fan of {v} now and no longer of {old}",),
            ("{who} gave up on {old} and [cheer|cheers] for {v}",),
        ),
        ask=Forms(("Which team does {who} support?",), ("Which club does {who} cheer for?",)),
    ),
    "book": FormWording(
        pool=(
            "The Glass Orchard", "Letters from Oslo", "A Winter Abroad", "The Salt Road",
            "Nine Lanterns", "The Quiet Cartographer", "Paper Moons", "The Last Ferry",
            "House of Finches", "Midnight Allotment", "Blue Ledger", "The Clockmaker's Niece",
        ),
        tell=Forms(
            ("{who} [am|is] reading '{v}'", "the book on {whose} bedside table is '{v}'"),
            ("{who} [am|is] in the middle of the novel '{v}'",),
        ),
        change=Forms(
            ("{who} finished '{old}' and [am|is] reading '{v}' now",
                "{who} started a new book, '{v}'"),
            ("after '{old}', {who} [have|has] turned to '{v}'",),
        ),
        ask=Forms(("What is {who} reading?",), ("Which book is {who} in the middle of?",)),
    ),
    "wakes": FormWording(
        pool=(
            "at five", "at half past five", "at six", "at half past six", "at seven",
            "at a quarter past seven", "at half past seven", "at eight", "at nine",
        ),
        tell=Forms(
            ("{who} usually [get|gets] up {v}", "{whose} alarm rings {v}"),
            ("on working days {who} [am|is] out of bed {v}",),
        ),
        change=Forms(
            ("{who} [get|gets] up {v} now instead of {old}",),
            ("{who} [have|has] set the alarm anew, it rings {v}",),
        ),
        ask=Forms(("What time does {who} get up?",), ("When does {whose} day begin?",)),
    ),
    "rent": FormWording(
        pool=(
            "$950", "$1,120", "$780", "$1,340", "$1,050", "$890", "$1,480", "$1,215", "$830",
            "$1,600", "$1,275", "$990",
        ),
        tell=Forms(
            ("{who} [pay|pays] {v} rent a month", "{whose} rent is {v}"),
            ("the flat costs {whom} {v} a month", "every month {v} goes out for {whose} rent"),
        ),
        change=Forms(
            ("{whose} rent went from {old} to {v}",
                "{whose} landlord changed the rent to {v} {when}"),
            ("{who} now [have|has] to pay {v} a month for the flat",),
        ),
        ask=Forms(
            ("How much rent does {who} pay?", "What is {whose} rent?"),
            ("What does {whose} flat cost a month?",),
        ),
        topic=Forms(("{whose} rent",), ("what {who} [pay|pays] for the flat",)),
    ),
    "boss": FormWording(
        pool=(
            "Ms. Pereira", "Mr. Lund", "Mrs. Achebe", "Mr. Carver", "Ms. Rinaldi", "Mr. Sato",
            "Mrs. Dunne", "Mr. Weber", "Ms. Ortiz", "Mr. Bailey", "Ms. Nguyen", "Mrs. Holm",
        ),
        tell=Forms(
            ("{whose} boss is {v}", "{who} [report|reports] to {v} at work"),
            ("the person in charge of {whose} team is {v}",),
        ),
        change=Forms(
            ("{whose} new boss is {v}", "{who} got a new boss {when}, {v} instead of {old}"),
            ("{v} took over from {old} as {whose} boss",),
        ),
        ask=Forms(("Who is {whose} boss?", "Who does {who} report to?"),
            ("Who is in charge of {whose} team?",)),
    ),
    "meeting": FormWording(
        keys=dict.fromkeys(
            ("team meeting", "choir practice", "book club", "yoga class", "poker night",
             "physiotherapy"),
            ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        ),
        details=("at six in the evening", "at noon", "at nine", "at half past seven", "at four",
                 "at a quarter to eight"),
        tell=Forms(
            ("{whose} {k} is on {v}s", "{who} [have|has] {k} every {v}"),
            ("{v} is the day of {whose} {k}", "each {v}, {who} [go|goes] to {k}"),
        ),
        change=Forms(
            ("{whose} {k} has been moved from {old}s to {v}s", "{whose} {k} is on {v}s now"),
            ("{who} now [have|has] {k} on {v}s instead",),
        ),
        more=Forms(("{whose} {k} is on {v}s {d}",), ("{who} [have|has] {k} on {v}s, always {d}",)),
        end=Forms(
            ("{who} [have|has] stopped going to {k} on {v}s",), ("{who} left the {v} {k} for good",)
        ),
        ask=Forms(
            ("On which day is {whose} {k}?", "What day of the week does {who} have {k}?"),
            ("Which weekday is {whose} {k}?",),
        ),
        ask_more=Forms(("At what time is {whose} {k}?",), ("What hour does {whose} {k} begin?",)),
    ),
    "pet_food": FormWording(
        pool=(
            "dry salmon food", "rice with chicken", "lamb pellets", "tuna in jelly", "raw beef",
            "grain-free turkey", "duck and potato food", "diet kibble", "sardines", "rabbit stew",
            "pumpkin mash", "oat biscuits",
        ),
        tell=Forms(
            ("{who} only [eat|eats] {v}", "{who} [get|gets] {v} to eat"),
            ("{whose} bowl is always filled with {v}",),
        ),
        change=Forms(
            ("the vet changed {whose} food to {v}", "{who} [get|gets] {v} instead of {old} now"),
            ("{who} will not touch {old} any more and [am|is] fed {v}",),
        ),
        ask=Forms(("What does {who} eat?", "What food does {who} get?"), ("What is {who} fed?",)),
    ),
    "pet_bed": FormWording(
        pool=(
            "on the sofa", "in a basket by the stove", "on the windowsill", "in the bathtub",
            "under the piano", "in the laundry basket", "on the doormat", "in the hallway",
            "on the balcony", "at the foot of the bed", "in a cardboard box", "behind the curtain",
        ),
        tell=Forms(("{who} [sleep|sleeps] {v}",), ("{whose} sleeping place is {v}",)),
        change=Forms(("{who} [sleep|sleeps] {v} now",),
            ("{who} [have|has] moved to a new spot for the night, {v}",)),
        ask=Forms(("Where does {who} sleep?",), ("Where does {who} spend the night?",)),
    ),
    "likes": FormWording(
        pool=LIKES,
        tell=Forms(
            ("{who} [love|loves] {v}", "{who} really [like|likes] {v}",
                "{who} [am|is] very fond of {v}"),
            ("{who} cannot get enough of {v}", "{v} will always make {whom} happy"),
        ),
        end=Forms(
            ("{who} [do|does] not like {v} any more", "{who} [have|has] gone off {v}"),
            ("{who} lost {his} taste for {v}",),
        ),
        ask=Forms(
            ("What does {who} like?", "What is {who} fond of?"), ("What makes {who} happy?",)
        ),
    ),
    "dislikes": FormWording(
        pool=DISLIKES,
        tell=Forms(
            ("{who} [hate|hates] {v}", "{who} cannot stand {v}",
                "{who} really [dislike|dislikes] {v}"),
            ("{who} [go|goes] out of {his} way to avoid {v}",
                "{v}, that is what {who} can do without"),
        ),
        end=Forms(
            ("{who} [do|does] not mind {v} any more",),
            ("{who} made {his} peace with {v}",),
        ),
        ask=Forms(("What does {who} dislike?", "What can {who} not stand?"),
            ("What does {who} try to avoid?",)),
    ),
    "allergy": FormWording(
        pool=ALLERGIES,
        tell=Forms(
            (
                "{who} [am|is] allergic to {v}",
                "{who} [have|has] an allergy to {v}",
                "{who} cannot go near {v}, {he} [am|is] allergic",
            ),
            ("{who} must avoid {v} because of an allergic rash",
                "{whose} body reacts badly to {v}, an allergy"),
        ),
        end=Forms(
            (
                "it turned out that {who} [am|is] not allergic to {v} after all",
                "{who} [have|has] got rid of {his} allergy to {v}",
            ),
            ("a new test showed that {who} [tolerate|tolerates] {v} without any allergy",),
        ),
        ask=Forms(
            ("What is {who} allergic to?", "Which allergies does {who} have?"),
            ("What must {who} avoid because of an allergy?",),
        ),
    ),
    "hobby": FormWording(
        pool=HOBBIES,
        tell=Forms(
            (
                "{whose} hobby is {v}",
                "{who} [spend|spends] {his} free time on {v}",
                "{who} [am|is] really into {v} these days",
            ),
            ("{who} [have|has] taken up {v}", "on days off, {who} [am|is] busy with {v}"),
        ),
        end=Forms(
            ("{who} [have|has] given up {v}",
                "{who} [have|has] no time for {v} any more and stopped"),
            ("{v} is a thing of the past for {whom}",),
        ),
        ask=Forms(
            ("What are {whose} hobbies?", "What does {who} do in {his} free time?"),
            ("How does {who} spend days off?",),
        ),
    ),
    "languages": FormWording(
        pool=(
            "Portuguese", "Swahili", "Finnish", "Arabic", "Polish", "Japanese", "Welsh", "Turkish",
            "Dutch", "Korean", "Greek", "Hindi", "Catalan", "Russian", "Hebrew",
        ),
        tell=Forms(
            ("{who} [speak|speaks] {v}", "{who} [am|is] learning {v}"),
            ("{who} can hold a conversation in {v}",),
        ),
        end=Forms(("{who} stopped learning {v}",), ("{who} [have|has] forgotten all {his} {v}",)),
        ask=Forms(("Which languages does {who} speak or learn?",),
            ("What foreign languages does {who} know?",)),
    ),
    "emergency": FormWording(
        pool=(
            "Mrs. Falk", "Uncle Desmond", "Mr. Iyer", "Aunt Philippa", "Ms. Kerr", "Mr. Toth",
            "Cousin Marta", "Mrs. Bloom", "Mr. Ostrow", "Ms. Vidal", "Grandma Jo", "Mr. Finch",
        ),
        tell=Forms((), ("{whose} emergency contact is {v}",
            "in an emergency that concerns {whom}, {v} should be called")),
        change=Forms((), ("{whose} emergency contact is {v} now",
            "{who} made {v} {his} emergency contact instead of {old}")),
        ask=Forms((), ("Who is {whose} emergency contact?",
            "Who should be called if something happens to {who}?")),
        topic=Forms((), ("{whose} emergency contact",)),
    ),
    "shoe_size": FormWording(
        pool=("6", "7", "8", "9", "10", "11", "12", "5", "4", "13", "3", "2"),
        tell=Forms((), ("{who} [wear|wears] size {v} shoes", "{whose} shoe size is {v}")),
        change=Forms((), ("{who} [need|needs] size {v} shoes now, {old} is wrong for {him}",)),
        ask=Forms((), ("What is {whose} shoe size?",)),
    ),
    "subscription": FormWording(
        pool=(
            "Filmbox", "the Morning Herald", "Soundwave", "the veggie box", "Cloudpack",
            "Puzzle Monthly", "Streamly", "the wine club", "Nature Digest", "AudioTales",
            "the flower service", "Chess Weekly",
        ),
        tell=Forms((), ("{who} [have|has] a subscription to {v}", "{who} subscribed to {v}")),
        end=Forms((), ("{who} cancelled {his} subscription to {v}", "{who} unsubscribed from {v}")),
        ask=Forms((), ("What has {who} subscribed to?",)),
    ),
    "insurance": FormWording(
        pool=(
            "Sable Insurance", "Greenshield", "Union Mutual", "Harbor Life", "Alpine Care",
            "Beacon Mutual", "Trident", "Clover Health", "First Keystone", "Juno", "Atlas",
            "Medora",
        ),
        tell=Forms((), ("{who} [am|is] insured with {v}", "{whose} health insurance is {v}")),
        change=Forms((), ("{who} switched {his} insurance from {old} to {v} {when}",
            "{who} [am|is] insured with {v} now")),
        ask=Forms((), ("Which insurance does {who} have?", "Who is {who} insured with?")),
        ask_when=Forms((), ("When did {who} switch insurance?",)),
        ask_before=Forms((), ("Who was {who} insured with before {v}?",)),
        topic=Forms((), ("{whose} insurance",)),
    ),
    "computer": FormWording(
        pool=(
            "ThinkPad", "MacBook", "Chromebook", "gaming PC", "Surface tablet", "Linux laptop",
            "iMac", "refurbished Dell", "Framework laptop", "Asus Zenbook", "Raspberry Pi", "iPad",
        ),
        tell=Forms((), ("{who} [use|uses] {a_v} as {his} computer", "{whose} computer is {a_v}")),
        change=Forms((), ("{who} replaced {his} {old} with {a_v}",
            "{who} [work|works] on {a_v} now")),
        ask=Forms((), ("What computer does {who} use?",)),
        ask_before=Forms((), ("What computer did {who} have before the {v}?",)),
    ),
    "volunteering": FormWording(
        pool=(
            "the food bank", "the animal shelter", "the fire brigade", "the repair café",
            "the hospice", "the library", "the refugee centre", "the youth club", "the Red Cross",
            "the community garden", "the night shelter", "the sea rescue",
        ),
        tell=Forms((), ("{who} [volunteer|volunteers] at {v}",
            "{who} [help|helps] out at {v} without pay")),
        change=Forms((), ("{who} [volunteer|volunteers] at {v} now, not at {old}",)),
        end=Forms((), ("{who} no longer [volunteer|volunteers] at {v}",)),
        ask=Forms((), ("Where does {who} volunteer?",)),
        topic=Forms((), ("where {who} [volunteer|volunteers]",)),
    ),
    "pet_fear": FormWording(
        pool=(
            "the vacuum cleaner", "thunder", "umbrellas", "the hair dryer", "balloons",
            "the postman",
            "stairs", "big trucks", "drones", "mirrors", "the doorbell", "geese",
        ),
        tell=Forms((), ("{who} [am|is] scared of {v}", "{who} [hide|hides] from {v}")),
        end=Forms((), ("{who} [am|is] no longer afraid of {v}",)),
        ask=Forms((), ("What is {who} afraid of?",)),
    ),
}  # fmt: skip
