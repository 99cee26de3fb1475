"""Tool-using agents: environments of one's own, in process or behind the gateway."""
