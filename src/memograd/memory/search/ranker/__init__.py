"""The trained ranking of candidates from all lists: features, weights, probabilities."""
