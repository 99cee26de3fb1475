"""Answering questions about conversations from what a memory retrieves."""
