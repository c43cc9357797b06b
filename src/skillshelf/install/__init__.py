"""Get skills from sources, lock them, bring them up to date, and publish them."""
