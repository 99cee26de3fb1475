"""What is written down: items, raw turns, operations, events and the scopes they belong to."""
