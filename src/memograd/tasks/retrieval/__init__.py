"""The task retrieval: a question, the candidates of all lists, which of them hold the answer?"""
