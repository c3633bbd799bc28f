"""File changes: diffs, patches, checkpoints, undo."""
