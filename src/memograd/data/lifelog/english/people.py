"""Names and relations in English. Only data; see `forms`."""

from __future__ import annotations

from memograd.data.lifelog.forms import Forms, Role

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
