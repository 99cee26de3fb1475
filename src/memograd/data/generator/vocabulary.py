"""The pools that generated facts are drawn from, large enough that two conversations share few.

Only data. No value is drawn twice within a conversation, except where both people are meant to
share it.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


NAMES = _words("""
    Ada, Alma, Amir, Anton, Aria, Ben, Bianca, Boris, Carla, Cedric, Chloe, Clara, Dalia, Damon,
    Diego, Edith, Elena, Elias, Emil, Esther, Farid, Felix, Fiona, Flora, Gavin, Greta, Hanna,
    Hector, Hugo, Ida, Igor, Ingrid, Iris, Ivan, Jade, Jasper, Joel, Julia, Kai, Keira, Kofi,
    Lars, Leah, Leon, Lina, Lucas, Mabel, Malik, Marta, Mei, Milo, Mina, Nadia, Nina, Noor,
    Oscar, Otto, Paula, Petra, Quinn, Rafael, Rhea, Robin, Rosa, Ruben, Sami, Selma, Simon,
    Stella, Tara, Theo, Tobias, Uma, Vera, Victor, Wanda, Xavier, Yara, Yusuf, Zoe
""")

JOBS = _words("""
    paralegal, plumber, baker, bus driver, florist, dental hygienist, carpenter, tour guide,
    librarian, data analyst, firefighter, barista, speech therapist, electrician, pastry chef,
    park ranger, welder, midwife, sound engineer, translator, tax advisor, kindergarten teacher,
    pharmacist, locksmith, bookbinder, train conductor, beekeeper, tailor, radio host, surveyor,
    swim coach, zookeeper, optician, graphic designer, harbor pilot, museum curator, nurse,
    journalist, gardener, bike mechanic, architect, yoga teacher, stage manager, lab technician,
    flight attendant, police officer, social worker, butcher
""")

CITIES = _words("""
    Lisbon, Oslo, Dublin, Prague, Vienna, Seattle, Denver, Boston, Austin, Montreal, Toronto,
    Chicago, Helsinki, Krakow, Porto, Seville, Bologna, Lyon, Bergen, Glasgow, Bristol, Leeds,
    Antwerp, Rotterdam, Hamburg, Leipzig, Zurich, Geneva, Athens, Sofia, Tallinn, Riga, Vilnius,
    Budapest, Portland, Atlanta, Phoenix, Memphis, Nashville, Tucson, Halifax, Calgary, Perth,
    Brisbane, Auckland, Osaka, Taipei, Busan
""")

PLACES = _words("""
    Iceland, the Lake District, Yosemite, Cape Town, Marrakesh, the Dolomites, Bali, Kyoto,
    Petra, Malta, the Grand Canyon, Patagonia, Sicily, Corsica, the Black Forest, Madeira,
    Zanzibar, Machu Picchu, the Scottish Highlands, Sardinia, Tasmania, the Azores, Niagara
    Falls, Lapland, Crete, Cappadocia, Yellowstone, the Isle of Skye, Jamaica, Costa Rica, the
    Everglades, Brittany, Cornwall, Santorini, Havana, Istanbul, Venice, the Faroe Islands,
    Mount Fuji, Banff, Joshua Tree, the Amalfi Coast
""")

HOBBIES = _words("""
    pottery, chess, birdwatching, knitting, archery, rock climbing, calligraphy, salsa dancing,
    fencing, gardening, woodworking, embroidery, stargazing, kayaking, origami, candle making,
    bouldering, judo, model trains, crossword puzzles, photography, tap dancing, fishing, baking
    bread, roller skating, watercolor painting, geocaching, improv theater, weightlifting, ice
    skating, coin collecting, metal detecting, leather crafting, magic tricks, table tennis,
    beekeeping, mushroom hunting, surfing
""")

FOODS = _words("""
    ramen, lasagna, paella, falafel, pho, tacos, sushi, pierogi, gnocchi, moussaka, bibimbap,
    risotto, goulash, dumplings, enchiladas, pad thai, shakshuka, ratatouille, jambalaya, gumbo,
    couscous, ceviche, fish and chips, butter chicken, mac and cheese, onion soup, spring rolls,
    potato pancakes, baklava, chili, poke bowls, tiramisu, arepas, biryani, borscht, carbonara,
    katsu curry, lentil soup
""")

INSTRUMENTS = _words("""
    cello, banjo, clarinet, trumpet, harp, ukulele, accordion, flute, violin, oboe, saxophone,
    trombone, mandolin, drums, bassoon, harmonica, double bass, piano, viola, French horn,
    xylophone, bagpipes, tuba, recorder, sitar, organ, lute, electric guitar
""")

KINDS = _words("""
    tortoise, parrot, beagle, hamster, ferret, corgi, rabbit, greyhound, guinea pig, poodle,
    gecko, canary, kitten, dachshund, hedgehog, cockatiel, labrador, chinchilla, terrier,
    goldfish, husky, mouse
""")

PETS = _words("""
    Biscuit, Pepper, Mochi, Waffles, Pickle, Sesame, Noodle, Clover, Ziggy, Maple, Bandit,
    Cosmo, Dumpling, Hazel, Juniper, Kiwi, Luna, Marble, Nacho, Olive, Peanut, Rocket, Shadow,
    Tofu, Turnip, Velvet, Widget, Ginger, Pumpkin, Sprout, Button, Cricket, Dusty, Echo, Fudge,
    Gizmo, Hopper, Jellybean, Miso, Truffle
""")

TITLE_FIRST = _words("""
    Glass, Silent, Crooked, Winter, Paper, Hidden, Amber, Broken, Distant, Salt, Velvet,
    Burning, Hollow, Copper, Midnight, Wandering, Painted, Forgotten, Marble, Northern, Scarlet,
    Sleeping, Stolen, Tidal, Restless, Golden, Quiet, Iron, Lonely, Misty
""")

TITLE_SECOND = _words("""
    Orchard, Harbor, Clockmaker, Garden, Lighthouse, Letters, River, Bridge, Atlas, Kingdom,
    Staircase, Meadow, Mirror, Library, Voyage, Island, Bells, Compass, Carnival, Cathedral,
    Window, Forest, Lantern, Piano, Railway, Summer, Tower, Valley, Violinist, Wolves
""")

COMPANIONS = ("my cousin", "my neighbor", "my roommate", "my old friend", "my coworker", "my boss")

RECOMMENDERS = _words("""
    my sister-in-law, my therapist, my dentist, my barber, my doctor, my godmother, my landlord, my
    old teacher, my uncle, my book club, my colleague, my grandfather, my mail carrier
""")

GIVERS = _words("""
    my aunt, my grandmother, my neighbor, my godfather, my best friend, my choir, my
    mother-in-law, my old roommate, my team at work, my father
""")

# No word that tells a man from a woman: any name must fit.
RELATIVES = _words("twin, oldest child, youngest child, godchild, grandchild")

SUBJECTS = _words("""
    marine biology, law, philosophy, medicine, archaeology, economics, nursing, astronomy,
    linguistics, film, chemistry, civil engineering, geology, theology, computer science,
    psychology, fashion design, music theory, forestry, veterinary medicine, history,
    mathematics, political science, acting
""")

MARKETS = _words("""
    flea market, antique fair, farmers market, craft fair, book fair, Christmas bazaar, garage
    sale, street festival, charity auction, plant sale, record fair, night market, church
    bazaar, harbor market
""")

ITEMS = _words("""
    wool blanket, copper kettle, leather journal, desk lamp, silver bracelet, wooden chessboard,
    teapot, old typewriter, patchwork quilt, straw hat, rocking chair, pocket watch, vinyl
    record, picnic basket, velvet armchair, globe, music box, umbrella, fountain pen, cast-iron
    pan, hammock, birdhouse, telescope, porcelain doll, denim jacket, floor mirror, spice rack,
    snow globe, film camera, bookshelf, wind chime
""")

CONTESTS = _words("""
    chess tournament, pie contest, half marathon, spelling bee, photo contest, bike race, poetry
    slam, chili cook-off, swimming meet, dance battle, karaoke contest, quiz night, sandcastle
    contest, ski race, triathlon, darts tournament, short story contest, rowing regatta, trivia
    championship, talent show
""")

RANKS = _words("first, second, third, fourth, fifth, sixth, seventh, tenth")

WORKSHOPS = (
    ("glassblowing workshop", "vase"),
    ("weaving class", "scarf"),
    ("silversmithing class", "ring"),
    ("soap making class", "bar of lavender soap"),
    ("mosaic workshop", "tray"),
    ("sewing class", "apron"),
    ("basket weaving workshop", "basket"),
    ("bookbinding workshop", "notebook"),
    ("felting class", "hat"),
    ("stained glass workshop", "lampshade"),
    ("wood carving class", "spoon"),
    ("printmaking class", "poster"),
    ("macrame workshop", "plant hanger"),
    ("blacksmithing workshop", "hook"),
    ("ceramics class", "bowl"),
    ("jewelry workshop", "necklace"),
    ("leather workshop", "wallet"),
    ("quilting class", "pillow"),
)


PLANS = _words("""
    run a marathon, go skydiving, adopt a highland cow, open a small bakery, record an album,
    hike the coast trail, take a pilot lesson, sleep in a tree house, sing in a choir concert,
    repaint the whole apartment, give a talk at a conference, start a podcast, learn to sail,
    host a street party, visit a space museum, join a rowing club, take a driving test, shave my
    head for charity, volunteer at a shelter, enroll in night school, build a pizza oven
""")

HABITS = _words("""
    a long bath, a walk in the woods, baking cookies, lifting weights, playing video games, a
    cup of mint tea, cleaning the kitchen, listening to jazz, doing puzzles, swimming laps,
    writing in a diary, deep breathing, feeding the ducks, watching old cartoons, a nap on the
    sofa, pulling weeds, ironing shirts, singing loudly
""")

# What somebody says about themselves, a question that needs a thought more, and its answer.
TRAITS = (
    (
        "I haven't eaten meat in ten years, I'm a strict vegetarian.",
        "Would {name} order a steak at a restaurant?",
        "Likely no",
    ),
    (
        "I'm terribly allergic to cats. One minute and I can't breathe.",
        "Would {name} feel comfortable in a house full of cats?",
        "Likely no",
    ),
    (
        "I'm so afraid of heights that I can't even climb a ladder.",
        "Would {name} enjoy a ride in a hot-air balloon?",
        "Likely no",
    ),
    (
        "I get up at five every morning, even on Sundays. I love the quiet.",
        "Would {name} be awake at six on a Sunday morning?",
        "Likely yes",
    ),
    (
        "I never learned how to swim, and deep water scares me.",
        "Would {name} enjoy scuba diving?",
        "Likely no",
    ),
    (
        "I've never missed a home game of my football team, rain or shine.",
        "Would {name} be happy about tickets to a football match?",
        "Likely yes",
    ),
    (
        "I collect everything about space, I even named my car after a moon.",
        "Would {name} enjoy a visit to a planetarium?",
        "Likely yes",
    ),
    (
        "I don't drink any alcohol, not even at weddings.",
        "Would {name} like a bottle of wine as a present?",
        "Likely no",
    ),
    (
        "I grew up with horses, and I still ride whenever I can.",
        "Would {name} enjoy a weekend on a ranch?",
        "Likely yes",
    ),
    (
        "Loud music gives me a headache, so I never go to clubs.",
        "Would {name} enjoy a heavy metal concert?",
        "Likely no",
    ),
    (
        "I cry at every romantic movie, and I've seen them all.",
        "Would {name} enjoy watching a love story?",
        "Likely yes",
    ),
    (
        "I speak three languages and I'm learning a fourth, just for fun.",
        "Would {name} be interested in a Spanish course?",
        "Likely yes",
    ),
    (
        "I can't stand the cold, I wear two sweaters in October.",
        "Would {name} enjoy a winter camping trip?",
        "Likely no",
    ),
    (
        "I solve a crossword every day before breakfast.",
        "Would {name} be pleased with a book of riddles?",
        "Likely yes",
    ),
)
