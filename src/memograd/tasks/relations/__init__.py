"""relations: how a message relates to what is remembered, and what in it is worth keeping."""
