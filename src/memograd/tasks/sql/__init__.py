"""The SQL agent: a question in Chinese, SELECT statements over a medical database, an answer.

    question ──> query_database_by_sql(sql) ──> rows ──> ... ──> answer
                  `sandbox`: reads, never writes, never for long

`questions` are read, split, and made prompts and gold attempts of, `tool` is the environment and
reads what an agent did out of its conversation, `compare` says whether a result is the gold result,
`rewards` are numbers made of both, `sample` is a database of our own with questions.
"""
