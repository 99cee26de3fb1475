"""Verifiable text: rows with a prompt, rewards from columns."""
