"""The task memory-construct: chunks are read one by one, a memory is built, questions are asked.

`case` says what is read and asked, `memory_book` is the memory that is built, `answer_format` how a
model says what to do with it, `walk` shows it one chunk after another and scores the questions, and
`credit` says which answer of the model is owed what. Mem-alpha (arXiv:2509.25911) is where the task
comes from.
"""
