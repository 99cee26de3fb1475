"""The medical database that comes with memograd, and questions about it.

135 drugs and 158 diseases in Chinese, in tables `drugs_info` and `disease` with the seed project's
columns. Names, ICD-10 codes, symptoms and doses are from faker-healthcare-provider (MIT, see
LICENSE-faker-healthcare); what is said of a class of drugs (`classes.json`) was written for this
project. It is for training and tests, not for treating anybody.

`build` writes the SQLite file at first use, `templates` the questions.
"""
