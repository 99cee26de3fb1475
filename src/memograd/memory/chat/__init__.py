"""Chat models as the memory uses them: one protocol, one OpenAI-compatible endpoint."""
