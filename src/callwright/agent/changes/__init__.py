"""File changes: diffs, patches, checkpoints and undo."""
