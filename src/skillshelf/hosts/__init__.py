"""What each agent host sees, why, and how to link a skill for it."""
