"""Memory operations chosen by a language model that writes them down as text."""
