"""Everything that changes a memory: remembering, edits, erasing, answers, compaction, transfer."""
