"""What comes before reinforcement: supervised and preference training, reward model, merging."""
