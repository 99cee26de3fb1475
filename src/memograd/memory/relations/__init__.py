"""A trained model of how a message relates to what is remembered, and of what is worth keeping."""

from memograd.memory.relations.labels import CLOSING, RELATIONS, WORTHS
from memograd.memory.relations.model import RelationModel, load_relation_model

__all__ = ["CLOSING", "RELATIONS", "WORTHS", "RelationModel", "load_relation_model"]
