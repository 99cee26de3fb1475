"""A trained model of how a message relates to what is remembered, and of what is worth keeping."""

from memograd.memory.relations.model import RelationModel, load_relation_model
from memograd.memory.relations.thresholds import Thresholds
from memograd.memory.relations.weights import CLOSING, RELATIONS, WORTHS

__all__ = ["CLOSING", "RELATIONS", "WORTHS", "RelationModel", "Thresholds", "load_relation_model"]
